// A small JSON value, reader and writer for meta.json and the cache's own records.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <deep_jit/utils/exception.hpp>

namespace deep_jit {

/// JSON value. Objects keep the order in which their members were added. Strings are UTF-8 and
/// may hold any byte; bytes that are not UTF-8 are written as they are.
class json {
public:
    using array_t = std::vector<json>;
    using member_t = std::pair<std::string, json>;
    using object_t = std::vector<member_t>;

    json() = default;
    json(std::nullptr_t) {}
    json(bool value) : value_(value) {}
    template <typename T>
        requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    json(T value) : value_(static_cast<std::int64_t>(value)) {}
    json(double value) : value_(value) {}
    json(std::string value) : value_(std::move(value)) {}
    json(std::string_view value) : value_(std::string(value)) {}
    json(const char* value) : value_(std::string(value)) {}
    json(array_t value) : value_(std::move(value)) {}
    json(object_t value) : value_(std::move(value)) {}
    /// An unset optional is null.
    template <typename T>
    json(const std::optional<T>& value) {
        if (value)
            *this = json(*value);
    }
    template <typename T>
        requires std::is_constructible_v<json, const T&> json(const std::vector<T>& values) {
            array_t out;
            for (const auto& value : values) out.emplace_back(value);
            value_ = std::move(out);
        }

    static json array() { return json(array_t{}); }
    static json object() { return json(object_t{}); }

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_object() const { return std::holds_alternative<object_t>(value_); }
    bool is_array() const { return std::holds_alternative<array_t>(value_); }
    bool is_string() const { return std::holds_alternative<std::string>(value_); }

    /// The value as T (bool, std::int64_t, double, std::string, array_t, object_t), or null when
    /// it is of another kind.
    template <typename T>
    const T* get_if() const {
        return std::get_if<T>(&value_);
    }

    /// Member `key` of an object, or null when there is none or this is no object.
    const json* find(std::string_view key) const {
        if (const auto* members = get_if<object_t>())
            for (const auto& member : *members)
                if (member.first == key)
                    return &member.second;
        return nullptr;
    }

    /// Member `key` as T, or nothing when it is missing or of another kind.
    template <typename T>
    std::optional<T> get(std::string_view key) const {
        const json* member = find(key);
        const T* value = member != nullptr ? member->get_if<T>() : nullptr;
        return value != nullptr ? std::optional<T>(*value) : std::nullopt;
    }

    /// Member `key`, added when missing. A null becomes an object.
    json& operator[](std::string_view key) {
        if (is_null())
            value_ = object_t{};
        auto* members = std::get_if<object_t>(&value_);
        DJ_HOST_ASSERT(members != nullptr, "only a JSON object has members");
        for (auto& member : *members)
            if (member.first == key)
                return member.second;
        members->emplace_back(std::string(key), json());
        return members->back().second;
    }

    /// Adds to an array. A null becomes an array.
    void push_back(json value) {
        if (is_null())
            value_ = array_t{};
        auto* values = std::get_if<array_t>(&value_);
        DJ_HOST_ASSERT(values != nullptr, "only a JSON array can grow");
        values->push_back(std::move(value));
    }

    /// Text of the value; `indent` spaces a level, or one line when it is negative.
    std::string dump(int indent = -1) const {
        std::string out;
        write(out, indent, 0);
        return out;
    }

    /// Reads a whole document. Throws Error with the byte offset where it is not JSON, is nested
    /// deeper than 128 levels, or goes on after the value.
    static json parse(std::string_view text);

    bool operator==(const json&) const = default;

private:
    static void write_string(std::string& out, std::string_view text) {
        static constexpr char kDigits[] = "0123456789abcdef";
        out += '"';
        for (const char c : text) {
            switch (c) {
                case '"': out += "\\\""; break;
                case '\\': out += "\\\\"; break;
                case '\n': out += "\\n"; break;
                case '\r': out += "\\r"; break;
                case '\t': out += "\\t"; break;
                default:
                    if (static_cast<unsigned char>(c) < 0x20) {
                        out += "\\u00";
                        out += kDigits[(c >> 4) & 15];
                        out += kDigits[c & 15];
                    } else {
                        out += c;
                    }
            }
        }
        out += '"';
    }

    static void new_line(std::string& out, int indent, int level) {
        if (indent < 0)
            return;
        out += '\n';
        out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
    }

    void write(std::string& out, int indent, int level) const {
        if (is_null()) {
            out += "null";
        } else if (const auto* flag = get_if<bool>()) {
            out += *flag ? "true" : "false";
        } else if (const auto* integer = get_if<std::int64_t>()) {
            out += str::to_text(*integer);
        } else if (const auto* number = get_if<double>()) {
            // JSON has no infinities
            const auto text = std::isfinite(*number) ? str::to_text(*number) : std::string("null");
            out += text;
            if (text.find_first_not_of("-0123456789") == std::string::npos)
                out += ".0";
        } else if (const auto* text = get_if<std::string>()) {
            write_string(out, *text);
        } else if (const auto* values = get_if<array_t>()) {
            out += '[';
            for (std::size_t i = 0; i < values->size(); ++i) {
                if (i > 0)
                    out += indent < 0 ? ", " : ",";
                new_line(out, indent, level + 1);
                (*values)[i].write(out, indent, level + 1);
            }
            if (!values->empty())
                new_line(out, indent, level);
            out += ']';
        } else if (const auto* members = get_if<object_t>()) {
            out += '{';
            for (std::size_t i = 0; i < members->size(); ++i) {
                if (i > 0)
                    out += indent < 0 ? ", " : ",";
                new_line(out, indent, level + 1);
                write_string(out, (*members)[i].first);
                out += ": ";
                (*members)[i].second.write(out, indent, level + 1);
            }
            if (!members->empty())
                new_line(out, indent, level);
            out += '}';
        }
    }

    std::variant<std::monostate, bool, std::int64_t, double, std::string, array_t, object_t> value_;
};

namespace detail {

class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    json document() {
        json value = read_value(0);
        skip_blanks();
        if (at_ != text_.size())
            fail("text after the value");
        return value;
    }

private:
    static constexpr int kMaxDepth = 128;

    [[noreturn]] void fail(std::string_view why) const {
        throw Error(str::format("Invalid JSON at byte {}: {}", at_, why));
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                      text_[at_] == '\n' || text_[at_] == '\r'))
            ++at_;
    }

    bool take(char c) {
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }

    bool take_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word)
            return false;
        at_ += word.size();
        return true;
    }

    json read_value(int depth) {
        skip_blanks();
        if (at_ == text_.size())
            fail("a value is missing");
        switch (text_[at_]) {
            case '{': return read_object(depth);
            case '[': return read_array(depth);
            case '"': return json(read_string());
            case 't':
                if (take_word("true"))
                    return json(true);
                break;
            case 'f':
                if (take_word("false"))
                    return json(false);
                break;
            case 'n':
                if (take_word("null"))
                    return json();
                break;
            default: return read_number();
        }
        fail("unknown word");
    }

    /// Goes into the object or array that starts here.
    void enter(int depth) {
        if (depth >= kMaxDepth)
            fail("nested too deeply");
        ++at_;
    }

    json read_object(int depth) {
        json::object_t members;
        enter(depth);
        skip_blanks();
        if (take('}'))
            return json(std::move(members));
        do {
            skip_blanks();
            if (at_ == text_.size() || text_[at_] != '"')
                fail("a member name is missing");
            std::string key = read_string();
            skip_blanks();
            if (!take(':'))
                fail("a colon is missing");
            members.emplace_back(std::move(key), read_value(depth + 1));
            skip_blanks();
        } while (take(','));
        if (!take('}'))
            fail("a comma or } is missing");
        return json(std::move(members));
    }

    json read_array(int depth) {
        json::array_t values;
        enter(depth);
        skip_blanks();
        if (take(']'))
            return json(std::move(values));
        do {
            values.push_back(read_value(depth + 1));
            skip_blanks();
        } while (take(','));
        if (!take(']'))
            fail("a comma or ] is missing");
        return json(std::move(values));
    }

    unsigned read_hex4() {
        unsigned value = 0;
        const auto digits = text_.substr(at_, 4);
        const auto result =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 4 || result.ptr != digits.data() + 4)
            fail("four hexadecimal digits are missing");
        at_ += 4;
        return value;
    }

    static void append_utf8(std::string& out, unsigned code) {
        if (code < 0x80) {
            out += static_cast<char>(code);
        } else if (code < 0x800) {
            out += static_cast<char>(0xc0 | (code >> 6));
            out += static_cast<char>(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            out += static_cast<char>(0xe0 | (code >> 12));
            out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
            out += static_cast<char>(0x80 | (code & 0x3f));
        } else {
            out += static_cast<char>(0xf0 | (code >> 18));
            out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
            out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
            out += static_cast<char>(0x80 | (code & 0x3f));
        }
    }

    unsigned read_code_point() {
        const unsigned high = read_hex4();
        if (high >= 0xdc00 && high < 0xe000)
            fail("half a surrogate pair");
        if (high < 0xd800 || high >= 0xdc00)
            return high;
        if (!take_word("\\u"))
            fail("half a surrogate pair");
        const unsigned low = read_hex4();
        if (low < 0xdc00 || low >= 0xe000)
            fail("half a surrogate pair");
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }

    std::string read_string() {
        std::string out;
        ++at_;
        while (true) {
            if (at_ == text_.size())
                fail("a string does not end");
            const char c = text_[at_++];
            if (c == '"')
                return out;
            if (static_cast<unsigned char>(c) < 0x20)
                fail("a control character in a string");
            if (c != '\\') {
                out += c;
                continue;
            }
            if (at_ == text_.size())
                fail("a string does not end");
            switch (text_[at_++]) {
                case '"': out += '"'; break;
                case '\\': out += '\\'; break;
                case '/': out += '/'; break;
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'n': out += '\n'; break;
                case 'r': out += '\r'; break;
                case 't': out += '\t'; break;
                case 'u': append_utf8(out, read_code_point()); break;
                default: fail("unknown escape");
            }
        }
    }

    std::size_t skip_digits() {
        const auto start = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
        return at_ - start;
    }

    json read_number() {
        const auto start = at_;
        bool integral = true;
        take('-');
        const auto digits_start = at_;
        const auto digits = skip_digits();
        if (digits == 0 || (digits > 1 && text_[digits_start] == '0'))
            fail("not a number");
        if (take('.')) {
            integral = false;
            if (skip_digits() == 0)
                fail("digits are missing");
        }
        if (take('e') || take('E')) {
            integral = false;
            if (!take('+'))
                take('-');
            if (skip_digits() == 0)
                fail("digits are missing");
        }
        const char* first = text_.data() + start;
        const char* last = text_.data() + at_;
        if (integral) {
            std::int64_t value = 0;
            if (std::from_chars(first, last, value).ec == std::errc())
                return json(value);
        }
        double value = 0;
        if (std::from_chars(first, last, value).ec != std::errc())
            fail("a number out of range");
        return json(value);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace detail

inline json json::parse(std::string_view text) { return detail::JsonReader(text).document(); }

}  // namespace deep_jit
