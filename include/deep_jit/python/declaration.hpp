// What a kernel's declaration says about its parameters: names and types, as far as text can
// tell. Only a help for packing arguments: sizes come from the compiled kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/str.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

enum class ParameterKind : std::uint8_t {
    unknown,  ///< a structure, or a type whose name says nothing: packed by size
    pointer,
    const_pointer,  ///< to memory that the kernel only reads
    boolean,
    signed_integer,
    unsigned_integer,
    floating,
    bfloat16,
};

struct Declared {
    std::string name;  ///< empty when there is none
    std::string type;
    ParameterKind kind = ParameterKind::unknown;
    std::uint32_t size = 0;  ///< bytes; 0: unknown
};

namespace detail {

struct BuiltinType {
    const char* name;
    ParameterKind kind;
    std::uint32_t size;
};

// `char` is signed or not: by size.
inline constexpr BuiltinType kBuiltinTypes[] = {
    {"bool", ParameterKind::boolean, 1},
    {"signed char", ParameterKind::signed_integer, 1},
    {"unsigned char", ParameterKind::unsigned_integer, 1},
    {"short", ParameterKind::signed_integer, 2},
    {"unsigned short", ParameterKind::unsigned_integer, 2},
    {"int", ParameterKind::signed_integer, 4},
    {"unsigned int", ParameterKind::unsigned_integer, 4},
    {"long", ParameterKind::signed_integer, 8},
    {"unsigned long", ParameterKind::unsigned_integer, 8},
    {"long long", ParameterKind::signed_integer, 8},
    {"unsigned long long", ParameterKind::unsigned_integer, 8},
    {"float", ParameterKind::floating, 4},
    {"double", ParameterKind::floating, 8},
    {"int8_t", ParameterKind::signed_integer, 1},
    {"int16_t", ParameterKind::signed_integer, 2},
    {"int32_t", ParameterKind::signed_integer, 4},
    {"int64_t", ParameterKind::signed_integer, 8},
    {"uint8_t", ParameterKind::unsigned_integer, 1},
    {"uint16_t", ParameterKind::unsigned_integer, 2},
    {"uint32_t", ParameterKind::unsigned_integer, 4},
    {"uint64_t", ParameterKind::unsigned_integer, 8},
    {"size_t", ParameterKind::unsigned_integer, 8},
    {"ptrdiff_t", ParameterKind::signed_integer, 8},
    {"uint", ParameterKind::unsigned_integer, 4},
    {"half", ParameterKind::floating, 2},
    {"__half", ParameterKind::floating, 2},
    {"_Float16", ParameterKind::floating, 2},
    {"nv_bfloat16", ParameterKind::bfloat16, 2},
    {"__nv_bfloat16", ParameterKind::bfloat16, 2},
    {"bfloat16_t", ParameterKind::bfloat16, 2},
};

inline bool is_name(std::string_view token) {
    return !token.empty() && str::is_word_char(token[0]) && !(token[0] >= '0' && token[0] <= '9');
}

/// Words and single punctuation characters ("::" is one). Comments, literals and preprocessor
/// lines are left out.
inline std::vector<std::string> tokens_of(std::string_view text) {
    std::vector<std::string> out;
    bool line_start = true;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const auto rest = text.substr(i);
        const auto skip_to = [&](std::string_view end, std::size_t from) {
            const auto at = text.find(end, from);
            i = at == std::string_view::npos ? text.size() : at + end.size();
        };
        if (c == '\n') {
            line_start = true;
            ++i;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            ++i;
        } else if (rest.starts_with("//")) {
            i = std::min(text.find('\n', i), text.size());
        } else if (rest.starts_with("/*")) {
            skip_to("*/", i + 2);
        } else if (c == '#' && line_start) {
            // Up to a line end without a backslash before it.
            while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
            i = std::min(i, text.size());
        } else if (rest.starts_with("R\"")) {
            const auto open = std::min(text.find('(', i), text.size());
            skip_to(")" + std::string(text.substr(i + 2, open - i - 2)) + "\"", open);
            out.emplace_back("\"\"");
            line_start = false;
        } else if (c == '"' ||
                   (c == '\'' && (out.empty() || i == 0 || !str::is_word_char(text[i - 1])))) {
            for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i)
                if (text[i] == '\\')
                    ++i;
            i = std::min(i + 1, text.size());
            out.emplace_back("\"\"");
            line_start = false;
        } else {
            std::size_t size = 1;
            if (str::is_word_char(c))
                while (i + size < text.size() && str::is_word_char(text[i + size])) ++size;
            else if (rest.starts_with("::"))
                size = 2;
            out.emplace_back(text.substr(i, size));
            line_start = false;
            i += size;
        }
    }
    return out;
}

/// Index behind the bracket that closes the one at `open`; the number of tokens when none does.
inline std::size_t behind_bracket(const std::vector<std::string>& tokens, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < tokens.size(); ++i) {
        if (tokens[i] == "(" || tokens[i] == "[" || tokens[i] == "{")
            ++depth;
        if ((tokens[i] == ")" || tokens[i] == "]" || tokens[i] == "}") && --depth == 0)
            return i + 1;
    }
    return tokens.size();
}

inline std::string join_type(const std::vector<std::string>& tokens) {
    std::string out;
    for (const auto& token : tokens) {
        if (!out.empty() && str::is_word_char(out.back()) && str::is_word_char(token[0]))
            out += ' ';
        out += token;
    }
    return out;
}

/// `long unsigned`, `short int` and the like, as one spelling of each; else the name itself.
inline std::string plain_type(std::vector<std::string> tokens) {
    if (tokens.size() > 2 && tokens[0] == "std" && tokens[1] == "::")
        tokens.erase(tokens.begin(), tokens.begin() + 2);
    const auto count = [&](const char* word) {
        return std::count(tokens.begin(), tokens.end(), word);
    };
    if (count("double") + count("float") > 0)
        return join_type(tokens);
    if (count("unsigned") + count("signed") + count("long") + count("short") + count("int") +
            count("char") <
        static_cast<std::ptrdiff_t>(tokens.size()))
        return join_type(tokens);
    const std::string base = count("char") > 0    ? "char"
                             : count("short") > 0 ? "short"
                             : count("long") > 1  ? "long long"
                             : count("long") > 0  ? "long"
                                                  : "int";
    if (count("unsigned") > 0)
        return "unsigned " + base;
    return base == "char" && count("signed") > 0 ? "signed char" : base;
}

inline bool is_type_word(std::string_view token) {
    for (const char* word : {"unsigned", "signed", "long", "short", "int", "char", "float",
                             "double", "bool", "void", "auto"})
        if (token == word)
            return true;
    return false;
}

/// One parameter: `const float* __restrict__ input`, or without the name.
inline Declared read_parameter(std::vector<std::string> tokens) {
    Declared out;
    const auto equals = std::find(tokens.begin(), tokens.end(), "=");
    tokens.erase(equals, tokens.end());
    for (const char* word : {"__restrict__", "__restrict", "restrict", "__grid_constant__",
                             "volatile", "struct", "__gm__"})
        tokens.erase(std::remove(tokens.begin(), tokens.end(), word), tokens.end());
    bool array = false;
    while (!tokens.empty() && tokens.back() == "]") {
        std::size_t open = tokens.size();
        while (open > 0 && tokens[open - 1] != "[") --open;
        tokens.resize(open > 0 ? open - 1 : 0);
        array = true;
    }
    int words = 0;
    for (const auto& token : tokens) words += is_name(token) && token != "const";
    if (words > 1 && is_name(tokens.back()) && !is_type_word(tokens.back()) &&
        tokens.back() != "const" && tokens[tokens.size() - 2] != "::") {
        out.name = tokens.back();
        tokens.pop_back();
    }
    if (array)
        tokens.emplace_back("*");
    out.type = join_type(tokens);
    if (std::find(tokens.begin(), tokens.end(), "(") != tokens.end() ||
        std::find(tokens.begin(), tokens.end(), "&") != tokens.end())
        return out;             // a pointer to a function, or a reference
    if (out.type == "GM_ADDR")  // Ascend C's name for an address
        tokens = {"void", "*"};
    const auto star = std::find(tokens.rbegin(), tokens.rend(), "*");
    if (star != tokens.rend()) {
        // What stands before the last star is pointed to.
        const auto end = star.base() - 1;
        auto begin = tokens.begin();
        for (auto i = begin; i != end; ++i)
            if (*i == "*")
                begin = i + 1;
        int depth = 0;
        bool constant = false;
        for (auto i = begin; i != end; ++i) {
            depth += (*i == "<") - (*i == ">");
            constant = constant || (depth == 0 && *i == "const");
        }
        out.kind = constant ? ParameterKind::const_pointer : ParameterKind::pointer;
        out.size = sizeof(void*);
        return out;
    }
    tokens.erase(std::remove(tokens.begin(), tokens.end(), "const"), tokens.end());
    const auto plain = plain_type(tokens);
    for (const auto& builtin : kBuiltinTypes)
        if (plain == builtin.name) {
            out.kind = builtin.kind;
            out.size = builtin.size;
        }
    return out;
}

/// The parameters between the brackets at `open` and its partner.
inline std::vector<Declared> read_parameters(const std::vector<std::string>& tokens,
                                             std::size_t open) {
    std::vector<Declared> out;
    const std::size_t end = behind_bracket(tokens, open) - 1;
    std::vector<std::string> one;
    int depth = 0;
    for (std::size_t i = open + 1; i < end; ++i) {
        const auto& token = tokens[i];
        depth += (token == "<" || token == "(" || token == "[" || token == "{");
        depth -= (token == ">" || token == ")" || token == "]" || token == "}");
        if (token == "," && depth == 0) {
            out.push_back(read_parameter(std::move(one)));
            one.clear();
        } else {
            one.push_back(token);
        }
    }
    if (!one.empty() && !(out.empty() && one.size() == 1 && one[0] == "void"))
        out.push_back(read_parameter(std::move(one)));
    return out;
}

}  // namespace detail

/// The parameters of the only kernel in a source; nothing when there is none, or more than one.
inline std::optional<std::vector<Declared>> parameters_in_source(std::string_view source) {
    const auto tokens = detail::tokens_of(source);
    const auto kernel = std::find(tokens.begin(), tokens.end(), "__global__");
    if (kernel == tokens.end() || std::find(kernel + 1, tokens.end(), "__global__") != tokens.end())
        return std::nullopt;
    for (auto i = static_cast<std::size_t>(kernel - tokens.begin()) + 1; i + 1 < tokens.size();) {
        if (tokens[i] == "{" || tokens[i] == ";")
            return std::nullopt;
        if (tokens[i + 1] != "(" || !detail::is_name(tokens[i])) {
            ++i;
            continue;
        }
        // __launch_bounds__(256) and its like stand before the name.
        if (tokens[i].starts_with("__") && tokens[i].ends_with("__")) {
            i = detail::behind_bracket(tokens, i + 1);
            continue;
        }
        return detail::read_parameters(tokens, i + 1);
    }
    return std::nullopt;
}

/// The parameters in a demangled name, such as "void ns::f<4>(float*, float const*, int)".
inline std::optional<std::vector<Declared>> parameters_in_name(std::string_view demangled) {
    const auto tokens = detail::tokens_of(demangled);
    // The last bracket at the outermost level.
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < tokens.size();) {
        if (tokens[i] != "(") {
            ++i;
            continue;
        }
        open = i;
        i = detail::behind_bracket(tokens, i);
    }
    if (!open)
        return std::nullopt;
    return detail::read_parameters(tokens, *open);
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
