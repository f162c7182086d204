// Values of environment variables: each reads as a bool, an int or a string, or is refused by name;
// the readers agree with each other.
#include <stdlib.h>

#include <deep_jit/utils/env.hpp>

#include "fuzz.hpp"

using deep_jit::ConfigError;
using deep_jit::Env;
using namespace deep_jit_fuzz;

namespace {

/// The value, or nothing after a ConfigError that names the variable and quotes the value.
template <typename T>
std::optional<T> read(const Env& env, const std::string& value) {
    try {
        return env.get<T>("JIT_X");
    } catch (const ConfigError& error) {
        require(contains(error.what(), "FUZZ_JIT_X"), "the message names the variable");
        require(contains(error.what(), "invalid value '" + value + "'"), "and quotes its value");
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string value(text_of(data, size).substr(0, text_of(data, size).find('\0')));
    ::setenv("FUZZ_JIT_X", value.c_str(), 1);
    ::setenv("DJ_JIT_X", "3", 1);
    const Env env("FUZZ");
    require(env.get<std::string>("JIT_X") == value, "a string is taken as it is");

    const auto number = read<int>(env, value);
    const auto flag = read<bool>(env, value);
    if (number)
        require(flag == (*number != 0), "an int is a bool, true unless it is 0");
    const auto trimmed = deep_jit::str::trim(value);
    if (number) {
        require(!trimmed.empty() && trimmed.size() <= value.size(), "an int has digits");
        require(trimmed.find_first_not_of("+-0123456789") == std::string_view::npos,
                "an int has nothing but digits and a sign");
        char* end = nullptr;
        require(std::strtoll(value.c_str(), &end, 10) == *number, "the C library agrees");
    }
    if (flag && !number) {
        // A word, or an integer that an int cannot hold.
        const auto lower = deep_jit::str::to_lower(trimmed);
        const bool word = lower == "true" || lower == "yes" || lower == "false" || lower == "no";
        require(word || trimmed.size() >= 10, "a bool is a word or an integer");
        if (word)
            require(*flag == (lower == "true" || lower == "yes"), "which word");
    }

    // The library's own variable hides the global one, whatever it holds; unset, it does not.
    ::unsetenv("FUZZ_JIT_X");
    require(env.get<int>("JIT_X") == 3, "the global variable is the fall-back");
    return 0;
}
