// What bisheng reads from a source before the host compiler does.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace dj_stand_in {

/// Where comments and literals are: their characters are blanks in the copy, line ends stay.
inline std::string without_comments(std::string_view source) {
    std::string out(source);
    const auto blank = [&](std::size_t from, std::size_t to) {
        for (; from < to && from < out.size(); ++from)
            if (out[from] != '\n')
                out[from] = ' ';
    };
    for (std::size_t i = 0; i < source.size();) {
        std::size_t end = i + 1;
        if (source.substr(i, 2) == "//") {
            end = std::min(source.find('\n', i), source.size());
            blank(i, end);
        } else if (source.substr(i, 2) == "/*") {
            end = std::min(source.find("*/", i + 2), source.size() - 2) + 2;
            blank(i, end);
        } else if (source[i] == '"' ||
                   (source[i] == '\'' && (i == 0 || std::isalnum(source[i - 1]) == 0))) {
            while (end < source.size() && source[end] != source[i] && source[end] != '\n')
                end += source[end] == '\\' ? 2 : 1;
            end = std::min(end + 1, source.size());
            blank(i, source[end - 1] == '\n' ? end - 1 : end);
        }
        i = end;
    }
    return out;
}

inline bool has_word(std::string_view text, std::string_view word) {
    const auto part_of_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const auto end = at + word.size();
        if ((at == 0 || !part_of_name(text[at - 1])) &&
            (end == text.size() || !part_of_name(text[end])))
            return true;
    }
    return false;
}

/// `extern __ubuf__ T name[];` is the dynamic UB of the launch: a C++ compiler gets
/// `T* name = ...;` instead. On the same line, so that its messages name the right one.
inline std::string with_dynamic_ub(std::string source) {
    const std::string_view word = "extern";
    for (auto plain = without_comments(source);;) {
        std::size_t at = 0, end = 0, bracket = 0;
        for (at = plain.find(word); at != std::string::npos; at = plain.find(word, end)) {
            end = plain.find(';', at);
            if (end == std::string::npos)
                return source;
            bracket = plain.find('[', at);
            const auto statement = std::string_view(plain).substr(at, end - at);
            if (bracket < end && statement.find('(') == std::string_view::npos &&
                statement.find('{') == std::string_view::npos && has_word(statement, "__ubuf__") &&
                plain.find_first_not_of(" \t\n", bracket + 1) == plain.find(']', bracket))
                break;
            end = at + word.size();
        }
        if (at == std::string::npos)
            return source;
        auto name_end = plain.find_last_not_of(" \t\n", bracket - 1) + 1;
        auto name_start = name_end;
        while (std::isalnum(static_cast<unsigned char>(plain[name_start - 1])) != 0 ||
               plain[name_start - 1] == '_')
            --name_start;
        const auto type = source.substr(at + word.size(), name_start - at - word.size());
        const auto name = source.substr(name_start, name_end - name_start);
        source.replace(
            at, end - at,
            type + "* " + name + " = reinterpret_cast<" + type + "*>(::dj_stand_in::dynamic_ub())");
        plain = without_comments(source);
    }
}

/// As in the meta section: 1 no vector functions, 2 SIMD, 3 SIMT, 4 both.
inline int vf_flag_of(std::string_view source) {
    const auto plain = without_comments(source);
    const bool simd = has_word(plain, "__simd_vf__");
    const bool simt = has_word(plain, "__simt_vf__");
    return simd && simt ? 4 : simt ? 3 : simd ? 2 : 1;
}

}  // namespace dj_stand_in
