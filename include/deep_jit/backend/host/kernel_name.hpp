// Guesses from the text of a source how its kernel is named, so that one compiler run can be
// enough. The guess is checked against the symbols of what was compiled; see compile.hpp.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/str.hpp>

namespace deep_jit::host {

namespace detail {

/// The source as words and single punctuation marks; comments, literals and preprocessor lines
/// are gone.
inline std::vector<std::string> tokenize(std::string_view text) {
    std::vector<std::string> out;
    bool line_start = true;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '\n') {
            line_start = true;
            ++i;
        } else if (str::is_blank(c)) {
            ++i;
        } else if (text.substr(i, 2) == "//" || (c == '#' && line_start)) {
            // To the end of the line, where a backslash carries on.
            while (i < text.size() && (text[i] != '\n' || text[i - 1] == '\\')) ++i;
        } else if (text.substr(i, 2) == "/*") {
            const auto end = text.find("*/", i + 2);
            i = end == std::string_view::npos ? text.size() : end + 2;
        } else if (c == 'R' && text.substr(i, 2) == "R\"") {
            const auto open = text.find('(', i);
            const auto close =
                open == std::string_view::npos
                    ? open
                    : text.find(")" + std::string(text.substr(i + 2, open - i - 2)) + "\"", open);
            i = close == std::string_view::npos ? text.size() : text.find('"', close) + 1;
            out.emplace_back("\"\"");
        } else if (c == '"' || c == '\'') {
            for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i)
                if (text[i] == '\\')
                    ++i;
            ++i;
            out.emplace_back("\"\"");
        } else if (str::is_word_char(c)) {
            const auto start = i;
            // A quote between digits groups them.
            while (i < text.size() &&
                   (str::is_word_char(text[i]) || (text[i] == '\'' && c >= '0' && c <= '9')))
                ++i;
            out.emplace_back(text.substr(start, i - start));
        } else {
            out.emplace_back(1, c);
            ++i;
        }
        if (c != '\n' && !str::is_blank(c))
            line_start = false;
    }
    return out;
}

inline bool is_identifier(const std::string& token) {
    return str::is_word_char(token[0]) && !(token[0] >= '0' && token[0] <= '9');
}

/// Index just behind the bracket that closes the one at `i`.
inline std::size_t skip_brackets(const std::vector<std::string>& tokens, std::size_t i) {
    const char open = tokens[i][0];
    const char close = open == '(' ? ')' : open == '{' ? '}' : ']';
    int depth = 0;
    for (; i < tokens.size(); ++i) {
        if (tokens[i][0] == open)
            ++depth;
        else if (tokens[i][0] == close && --depth == 0)
            return i + 1;
    }
    return tokens.size();
}

/// Name in `__global__ void [attributes] NAME (`, from behind `__global__`; empty when it reads
/// otherwise.
inline std::string name_after_global(const std::vector<std::string>& tokens, std::size_t i) {
    while (i + 1 < tokens.size()) {
        if (tokens[i] == "__launch_bounds__" || tokens[i] == "__attribute__" ||
            tokens[i] == "__cluster_dims__" || tokens[i] == "alignas")
            i = skip_brackets(tokens, i + 1);
        else if (tokens[i] == "[")
            i = skip_brackets(tokens, i);
        else if (is_identifier(tokens[i]) && tokens[i + 1] == "(")
            return tokens[i];
        else if (is_identifier(tokens[i]))
            ++i;
        else
            break;
    }
    return "";
}

/// Operands of `&` in the body of `__instantiate_kernel`, from its opening brace.
inline std::vector<std::string> addresses_in_body(const std::vector<std::string>& tokens,
                                                  std::size_t begin) {
    std::vector<std::string> out;
    const auto end = skip_brackets(tokens, begin);
    for (std::size_t i = begin + 1; i < end; ++i) {
        if (tokens[i] != "&" ||
            (tokens[i - 1] != "(" && tokens[i - 1] != "=" && tokens[i - 1] != ","))
            continue;
        std::string name;
        int depth = 0;
        for (++i; i < end; ++i) {
            const char c = tokens[i][0];
            if (c == ';' || (c == ')' && depth == 0))
                break;
            depth += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
            // `::` and other signs of several characters are one token each.
            if (!name.empty() && str::is_word_char(name.back()) && str::is_word_char(c))
                name += ' ';
            name += tokens[i];
        }
        if (!name.empty())
            out.push_back(std::move(name));
    }
    return out;
}

}  // namespace detail

/// The one kernel that the text itself defines (not a template) or instantiates through
/// `__instantiate_kernel`, as a C++ expression. Nothing when there is none, or several.
inline std::optional<std::string> guess_kernel_name(std::string_view source) {
    const auto tokens = detail::tokenize(source);
    std::vector<std::string> found;
    std::vector<std::string> scopes;  // one for each open brace; "" where it is no namespace
    bool templated = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::string& token = tokens[i];
        if (token == "namespace") {
            std::string name;
            for (++i; i < tokens.size() && tokens[i] != "{" && tokens[i] != ";"; ++i)
                if (tokens[i] != "inline")
                    name += tokens[i];
            if (i < tokens.size() && tokens[i] == "{")
                scopes.push_back(std::move(name));
        } else if (token == "{") {
            scopes.emplace_back();
        } else if (token == "}") {
            if (!scopes.empty())
                scopes.pop_back();
            templated = false;
        } else if (token == ";") {
            templated = false;
        } else if (token == "template") {
            templated = true;
        } else if (token == "__global__" && !templated) {
            std::string name = detail::name_after_global(tokens, i + 1);
            for (auto scope = scopes.size(); scope > 0; --scope)
                if (!scopes[scope - 1].empty())
                    name = scopes[scope - 1] + "::" + name;
            // A declaration and its definition are one kernel.
            if (!name.empty() && (found.empty() || found.back() != name))
                found.push_back(std::move(name));
        } else if (token == "__instantiate_kernel") {
            while (i < tokens.size() && tokens[i] != "{" && tokens[i] != ";") ++i;
            if (i < tokens.size() && tokens[i] == "{") {
                for (auto& name : detail::addresses_in_body(tokens, i))
                    found.push_back(std::move(name));
                i = detail::skip_brackets(tokens, i) - 1;
            }
        }
    }
    if (found.size() != 1)
        return std::nullopt;
    return found.front();
}

/// The C++ name of a symbol, or the symbol itself when it is not mangled.
inline std::string demangle(const std::string& symbol) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        ::abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

/// `ns::f<int>` of a demangled `void ns::f<int>(float*, int)`.
inline std::string expression_of(const std::string& demangled) {
    std::string name = demangled;
    if (!name.empty() && name.back() == ')') {
        int depth = 0;
        std::size_t i = name.size();
        while (i > 0) {
            --i;
            if (name[i] == ')')
                ++depth;
            else if (name[i] == '(' && --depth == 0)
                break;
        }
        name.resize(i);
    }
    // Only instances of templates are demangled with their return type.
    if (name.starts_with("void "))
        name.erase(0, 5);
    return name;
}

/// The same for one of several functions of that name: an expression with the parameters' types.
inline std::string overload_of(const std::string& demangled) {
    const std::string name = expression_of(demangled);
    const auto at = demangled.rfind(name);
    const std::string parameters =
        name.empty() || at == std::string::npos ? "" : demangled.substr(at + name.size());
    return "*static_cast<void (*)" + parameters + ">(&" + name + ")";
}

/// `f` of an expression such as `ns::f<int>`, or of a demangled name.
inline std::string base_name(const std::string& expression) {
    std::string name = expression_of(expression);
    name.resize(std::min(name.find('<'), name.size()));
    while (!name.empty() && !str::is_word_char(name.back())) name.pop_back();
    auto start = name.size();
    while (start > 0 && str::is_word_char(name[start - 1])) --start;
    return name.substr(start);
}

}  // namespace deep_jit::host
