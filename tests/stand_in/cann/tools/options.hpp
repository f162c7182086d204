// The command line of the stand-in bisheng: what the real one is documented or seen to take.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support.hpp"

namespace dj_stand_in {

struct Options {
    std::string input, output;
    std::string arch;  ///< "3510"
    std::string standard = "c++17";
    Strings passed_on;  ///< to the host compiler
    bool aicore_only = false;
    bool compile_only = false;  ///< -c
    bool save_temps = false;
    bool debug = false;
    bool sanitizer = false;
    bool version = false;
};

namespace detail {

inline bool starts(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&list)[N]) {
    for (const auto item : list)
        if (word == item)
            return true;
    return false;
}

template <std::size_t N>
bool starts_with_one_of(std::string_view word, const std::string_view (&list)[N]) {
    for (const auto item : list)
        if (starts(word, item) && word.size() > item.size())
            return true;
    return false;
}

/// Have no meaning on a CPU.
inline constexpr std::string_view kIgnored[] = {"--cce-aicore-lang",
                                                "--asc-aicore-lang",
                                                "--enable-simt",
                                                "--cce-auto-sync",
                                                "--cce-disable-asc-reserved-ubuf",
                                                "--cce-disable-vf-stack-reserved-ubuf",
                                                "--cce-res-usage",
                                                "--cce-disable-kernel-global-attr-check",
                                                "--cce-mask-opt",
                                                "--cce-vf-auto-sync",
                                                "-fcce-simt-lambda"};
inline constexpr std::string_view kIgnoredPrefixes[] = {
    "--cce-auto-sync=",   "--cce-auto-sync-log=", "--cce-aicore-input-parameter-size=",
    "--cce-soc-version=", "--cce-soc-core-type=", "--npu-soc="};
inline constexpr std::string_view kPassedOn[] = {"-O0",       "-O1",         "-O2",
                                                 "-O3",       "-fPIC",       "-fno-exceptions",
                                                 "-fno-rtti", "-ffast-math", "-fno-strict-aliasing",
                                                 "-w"};
inline constexpr std::string_view kBackend[] = {"-enable-hiipu-vf-loop-unroll",
                                                "-cce-aicore-addr-transform"};
inline constexpr std::string_view kBackendPrefixes[] = {
    "-cce-aicore-dcpreload-args=",        "-cce-aicore-stack-size=",
    "-cce-aicore-function-stack-size=",   "-cce-aicore-record-overflow=",
    "-cce-aicore-jump-expand=",           "-cce-aicore-dcci-insert-for-scalar=",
    "-cce-aicore-dcci-before-kernel-end="};
inline constexpr std::string_view kArchs[] = {"3510", "2201", "3002", "2002", "1001",
                                              "3505", "3004", "3003", "3113"};
inline constexpr std::string_view kDebug[] = {"-gdwarf-4", "-gdwarf-5", "-gembed-source",
                                              "-gline-tables-only"};
inline constexpr std::string_view kNotHere[] = {"-dc", "-shared", "-lib", "-E", "-S", "-v"};

inline std::string arch_of(const std::string& value) {
    if (starts(value, "dav-") && is_one_of(value.substr(4), kArchs))
        return value.substr(4);
    throw Refusal("unsupported value '" + value + "' of option '--npu-arch='");
}

/// Of the older spelling, e.g. dav-c220-vec.
inline std::string old_arch_of(const std::string& value) {
    const auto family = value.substr(0, value.find('-', 4));
    if (family == "dav-c310")
        return "3510";
    if (family == "dav-c220")
        return "2201";
    throw Refusal("unsupported value '" + value + "' of option '--cce-aicore-arch='");
}

inline void check_backend_option(const std::string& word) {
    if (!is_one_of(word, kBackend) && !starts_with_one_of(word, kBackendPrefixes))
        throw Refusal("LLVM option parsing: Unknown command line argument '" + word + "'.");
}

class Parser {
public:
    explicit Parser(const Strings& words) : words_(words) {}

    Options parse() {
        while (at_ < words_.size()) {
            const auto word = words_[at_++];
            if (word == "-Xhost-start") {
                while (next(word) != "-Xhost-end") {
                }
            } else if (word != "-Xaicore-start" && word != "-Xaicore-end") {
                take(word);
            }
        }
        return options_;
    }

private:
    const std::string& next(const std::string& option) {
        if (at_ >= words_.size())
            throw Refusal("argument to '" + option + "' is missing (expected 1 value)");
        return words_[at_++];
    }

    void take(const std::string& word) {
        if (word.empty() || word[0] != '-')
            take_input(word);
        else if (!take_toggle(word) && !take_value(word))
            throw Refusal("unknown argument: '" + word + "'");
    }

    void take_input(const std::string& word) {
        if (!options_.input.empty())
            throw Refusal("the stand-in compiles one source at a time");
        options_.input = word;
    }

    bool take_toggle(const std::string& word) {
        if (word == "--version")
            options_.version = true;
        else if (word == "--cce-aicore-only" || word == "--aicore-only")
            options_.aicore_only = true;
        else if (word == "-c")
            options_.compile_only = true;
        else if (word == "-save-temps" || word == "-save-temps=cwd" || word == "--save-temps")
            options_.save_temps = true;
        else if (word == "--sanitizer")
            options_.sanitizer = true;
        else if (word == "-g" || is_one_of(word, kDebug))
            options_.debug = options_.debug || word == "-g" || word == "-gline-tables-only";
        else if (is_one_of(word, kPassedOn) || starts(word, "-W") || starts(word, "-ffp-contract="))
            options_.passed_on.push_back(word);
        else if (is_one_of(word, kNotHere))
            throw Refusal("the stand-in has no '" + word + "'");
        else
            return is_one_of(word, kIgnored) || starts_with_one_of(word, kIgnoredPrefixes);
        return true;
    }

    /// The value of an option that is written `-Xvalue` or `-X value`.
    std::optional<std::string> joined(const std::string& word, std::string_view option) {
        if (word == option)
            return next(word);
        if (starts(word, option))
            return word.substr(option.size());
        return std::nullopt;
    }

    bool take_value(const std::string& word) {
        if (const auto equals = word.find('='); starts(word, "--npu-arch="))
            options_.arch = arch_of(word.substr(equals + 1));
        else if (starts(word, "--cce-aicore-arch="))
            options_.arch = old_arch_of(word.substr(equals + 1));
        else if (starts(word, "-std=") || starts(word, "--std="))
            options_.standard = word.substr(equals + 1);
        else if (starts(word, "--run-mode="))
            check(word.substr(equals + 1) == "npu", "the stand-in has no '" + word + "'");
        else if (word == "-mllvm")
            check_backend_option(next(word));
        else if (word == "-include" || word == "-isystem")
            options_.passed_on.insert(options_.passed_on.end(), {word, next(word)});
        else if (const auto language = joined(word, "-x"))
            check(*language == "asc" || *language == "cce",
                  "language not recognized: '" + *language + "'");
        else if (const auto output = joined(word, "-o"))
            options_.output = *output;
        else
            return take_preprocessor(word);
        return true;
    }

    bool take_preprocessor(const std::string& word) {
        for (const std::string option : {"-I", "-D", "-U"})
            if (const auto value = joined(word, option)) {
                options_.passed_on.insert(options_.passed_on.end(), {option, *value});
                return true;
            }
        return false;
    }

    static void check(bool condition, const std::string& problem) {
        if (!condition)
            throw Refusal(problem);
    }

    const Strings& words_;
    std::size_t at_ = 0;
    Options options_;
};

}  // namespace detail

inline Options parse_options(const Strings& words) {
    auto options = detail::Parser(words).parse();
    if (options.version)
        return options;
    if (options.input.empty())
        throw Refusal("no input files");
    if (!fs::exists(options.input))
        throw Refusal("no such file or directory: '" + options.input + "'");
    if (options.arch.empty())
        throw Refusal("no NPU architecture was given: use '--npu-arch='");
    if (options.sanitizer && !options.debug)
        throw Refusal("'--sanitizer' needs '-g'");
    if (!options.aicore_only && !options.compile_only)
        throw Refusal("the stand-in makes no programs: use '--cce-aicore-only' or '-c'");
    return options;
}

}  // namespace dj_stand_in
