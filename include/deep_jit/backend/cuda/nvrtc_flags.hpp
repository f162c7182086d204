// Says NVCC's flags to NVRTC: one by one, and those that it has nothing for are refused by name.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/str.hpp>

namespace deep_jit::cuda {

namespace detail {

/// How a flag is said to NVRTC.
enum class FlagKind {
    plain,      ///< the same, without a value
    value,      ///< the same, with a value
    boolean,    ///< the same, with true or false
    list,       ///< the same, once for each value of a list with commas
    implied,    ///< nothing: NVRTC always does so
    host,       ///< nothing: it is for the host compiler, and there is none
    host_list,  ///< flags for the host compiler, which may not change device code
    front_end,  ///< an option of the front end that some have a flag for
};

struct FlagRule {
    std::string_view long_name;   ///< without dashes
    std::string_view short_name;  ///< without the dash; may be empty
    FlagKind kind;
    bool takes_value;
};

// NVCC takes all of these but the last group.
inline constexpr FlagRule kFlagRules[] = {
    {"gpu-architecture", "arch", FlagKind::value, true},
    {"std", "std", FlagKind::value, true},
    {"define-macro", "D", FlagKind::value, true},
    {"undefine-macro", "U", FlagKind::value, true},
    {"include-path", "I", FlagKind::list, true},
    {"system-include", "isystem", FlagKind::list, true},
    {"pre-include", "include", FlagKind::list, true},
    {"ptxas-options", "Xptxas", FlagKind::list, true},
    {"maxrregcount", "maxrregcount", FlagKind::value, true},
    {"use_fast_math", "use_fast_math", FlagKind::plain, false},
    {"ftz", "ftz", FlagKind::boolean, true},
    {"prec-div", "prec-div", FlagKind::boolean, true},
    {"prec-sqrt", "prec-sqrt", FlagKind::boolean, true},
    {"fmad", "fmad", FlagKind::boolean, true},
    {"extra-device-vectorization", "extra-device-vectorization", FlagKind::plain, false},
    {"restrict", "restrict", FlagKind::plain, false},
    {"relocatable-device-code", "rdc", FlagKind::boolean, true},
    {"extensible-whole-program", "ewp", FlagKind::plain, false},
    {"device-debug", "G", FlagKind::plain, false},
    {"generate-line-info", "lineinfo", FlagKind::plain, false},
    {"dopt", "dopt", FlagKind::value, true},
    {"Ofast-compile", "Ofc", FlagKind::value, true},
    {"split-compile", "split-compile", FlagKind::value, true},
    {"jump-table-density", "jtd", FlagKind::value, true},
    {"device-stack-protector", "device-stack-protector", FlagKind::boolean, true},
    {"frandom-seed", "frandom-seed", FlagKind::value, true},
    {"disable-warnings", "w", FlagKind::plain, false},
    {"display-error-number", "err-no", FlagKind::plain, false},
    {"no-display-error-number", "no-err-no", FlagKind::plain, false},
    {"diag-error", "diag-error", FlagKind::value, true},
    {"diag-suppress", "diag-suppress", FlagKind::value, true},
    {"diag-warn", "diag-warn", FlagKind::value, true},
    {"brief-diagnostics", "brief-diag", FlagKind::boolean, true},
    {"optimization-info", "opt-info", FlagKind::value, true},
    {"time", "time", FlagKind::value, true},
    {"fdevice-time-trace", "fdevice-time-trace", FlagKind::value, true},

    {"expt-relaxed-constexpr", "expt-relaxed-constexpr", FlagKind::implied, false},
    {"expt-extended-lambda", "expt-extended-lambda", FlagKind::implied, false},
    {"extended-lambda", "extended-lambda", FlagKind::implied, false},
    {"m64", "m64", FlagKind::implied, false},

    {"optimize", "O", FlagKind::host, true},
    {"threads", "t", FlagKind::host, true},
    {"compiler-bindir", "ccbin", FlagKind::host, true},
    {"allow-unsupported-compiler", "allow-unsupported-compiler", FlagKind::host, false},
    {"compiler-options", "Xcompiler", FlagKind::host_list, true},
    {"cudafe-options", "Xcudafe", FlagKind::front_end, true},

    {"device-as-default-execution-space", "default-device", FlagKind::plain, false},
    {"builtin-move-forward", "builtin-move-forward", FlagKind::boolean, true},
    {"builtin-initializer-list", "builtin-initializer-list", FlagKind::boolean, true},
    {"device-int128", "device-int128", FlagKind::plain, false},
    {"device-float128", "device-float128", FlagKind::plain, false},
    {"minimal", "minimal", FlagKind::plain, false},
    {"no-cache", "no-cache", FlagKind::plain, false},
};

/// Reads one list of flags.
class FlagTranslation {
public:
    explicit FlagTranslation(const std::vector<std::string>& flags) : flags_(flags) {}

    std::vector<std::string> run() {
        for (at_ = 0; at_ < flags_.size(); ++at_) translate(flags_[at_]);
        drop_overridden();
        return std::move(out_);
    }

private:
    void translate(const std::string& flag) {
        if (flag == "--resource-usage" || flag == "-res-usage") {
            out_.emplace_back("--ptxas-options=--verbose");
            return;
        }
        // Warnings of NVCC; that they become errors is something that NVRTC cannot do.
        const std::string_view name = std::string_view(flag).substr(flag.starts_with("--") ? 1 : 0);
        if (name.starts_with("-W") && !name.starts_with("-Werror"))
            return;
        for (const auto& rule : kFlagRules)
            if (apply(rule, flag))
                return;
        refuse(flag, "NVRTC has nothing like it");
    }

    /// True when the flag is of this rule.
    bool apply(const FlagRule& rule, const std::string& flag) {
        std::string value;
        bool has_value = false;
        const auto matches = [&](std::string_view dashes, std::string_view name) {
            const std::string whole = std::string(dashes) + std::string(name);
            if (name.empty() || !flag.starts_with(whole))
                return false;
            const auto rest = std::string_view(flag).substr(whole.size());
            if (rest.empty())
                return true;
            if (!rule.takes_value)
                return false;
            has_value = true;
            // -DX, -I/include, -O3: one letter takes its value as it comes.
            value = rest.front() == '=' && !(name == "D" && dashes == "-") ? rest.substr(1) : rest;
            return rest.front() == '=' || (dashes == "-" && name.size() == 1);
        };
        if (!matches("--", rule.long_name) && !matches("-", rule.short_name))
            return false;
        if (rule.takes_value && !has_value) {
            if (rule.kind == FlagKind::boolean &&
                (at_ + 1 >= flags_.size() ||
                 (flags_[at_ + 1] != "true" && flags_[at_ + 1] != "false"))) {
                value = "true";
            } else {
                if (at_ + 1 >= flags_.size())
                    refuse(flag, "its value is missing");
                value = flags_[++at_];
            }
        }
        say(rule, value);
        return true;
    }

    void say(const FlagRule& rule, const std::string& value) {
        const std::string name = "--" + std::string(rule.long_name);
        switch (rule.kind) {
            case FlagKind::plain: out_.push_back(name); break;
            case FlagKind::value:
            case FlagKind::boolean:
                if (rule.long_name == "gpu-architecture" && !value.starts_with("sm_") &&
                    !value.starts_with("compute_"))
                    refuse(name + "=" + value, "name one architecture, such as sm_90a");
                out_.push_back(name + "=" + value);
                break;
            case FlagKind::list:
                // System directories differ from others in warnings only.
                for (const auto& one : str::split(value, ','))
                    if (!one.empty())
                        out_.push_back(
                            (rule.long_name == "system-include" ? "--include-path" : name) + "=" +
                            one);
                break;
            case FlagKind::host_list:
                for (const auto& one : str::split(value, ','))
                    if (!concerns_host_only(one))
                        refuse("--compiler-options=" + one,
                               "there is no host compiler, and it may change device code");
                break;
            case FlagKind::front_end: say_front_end(value); break;
            case FlagKind::implied:
            case FlagKind::host: break;
        }
    }

    /// Of options that have one value, the last one counts: so it is with NVCC, and NVRTC takes
    /// some of them once only.
    void drop_overridden() {
        std::vector<std::string> kept;
        for (std::size_t i = 0; i < out_.size(); ++i) {
            const auto name = out_[i].substr(0, out_[i].find('='));
            bool overridden = false;
            for (std::size_t j = i + 1; j < out_.size() && has_one_value(name); ++j)
                overridden = overridden || out_[j].starts_with(name + "=");
            if (!overridden)
                kept.push_back(out_[i]);
        }
        out_ = std::move(kept);
    }

    static bool has_one_value(std::string_view name) {
        for (const auto& rule : kFlagRules)
            if (name.substr(2) == rule.long_name)
                return (rule.kind == FlagKind::value || rule.kind == FlagKind::boolean) &&
                       !rule.long_name.ends_with("-macro") && !rule.long_name.starts_with("diag-");
        return false;
    }

    void say_front_end(const std::string& value) {
        for (const auto& one : str::split(value, ',')) {
            if (one == "--display_error_number")
                continue;
            const auto equals = one.find('=');
            const auto what = one.substr(0, equals);
            const bool known =
                what == "--diag_suppress" || what == "--diag_warning" || what == "--diag_error";
            const auto number = equals == std::string::npos ? "" : one.substr(equals + 1);
            if (!known || number.empty() ||
                number.find_first_not_of("0123456789") != std::string::npos)
                refuse("-Xcudafe " + one, "only diagnostics by number can be controlled");
            out_.push_back((what == "--diag_suppress"  ? "--diag-suppress="
                            : what == "--diag_warning" ? "--diag-warn="
                                                       : "--diag-error=") +
                           number);
        }
    }

    /// True for a flag of GCC or Clang that neither defines macros nor changes the language.
    static bool concerns_host_only(std::string_view flag) {
        for (const char* plain :
             {"", "-w", "-pipe", "-pthread", "-fPIC", "-fpic", "-fPIE", "-fpie", "-fconcepts",
              "-fpermissive", "-fno-strict-aliasing", "-fno-plt", "-fno-omit-frame-pointer"})
            if (flag == plain)
                return true;
        for (const char* start : {"-O", "-g", "-fvisibility", "-fdiagnostics-"})
            if (flag.starts_with(start))
                return true;
        return flag.starts_with("-W") && !flag.starts_with("-Wp");
    }

    [[noreturn]] static void refuse(const std::string& flag, std::string_view why) {
        deep_jit::detail::throw_error<ConfigError>(
            "The NVCC flag '{}' cannot be translated for NVRTC: {}. Leave it out, or compile this "
            "kernel with NVCC (CompilerOptions::compiler, JIT_COMPILER)",
            flag, why);
    }

    const std::vector<std::string>& flags_;
    std::size_t at_ = 0;
    std::vector<std::string> out_;
};

}  // namespace detail

/// NVRTC's options for a list of NVCC's flags, in the same order. Throws ConfigError that names
/// the first one that cannot be said.
inline std::vector<std::string> translate_flags(const std::vector<std::string>& nvcc_flags) {
    return detail::FlagTranslation(nvcc_flags).run();
}

}  // namespace deep_jit::cuda
