// Medians, ratios, and where they are written.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/json.hpp>

namespace benchmarks {

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Nanoseconds that `work()` takes.
template <typename Work>
double time_of(Work&& work) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Samples of one call of `work()` in nanoseconds, each the mean of `calls` calls.
template <typename Work>
std::vector<double> samples(int count, int calls, Work&& work) {
    std::vector<double> out;
    for (int i = 0; i < count; ++i)
        out.push_back(time_of([&] {
                          for (int call = 0; call < calls; ++call) work();
                      }) /
                      calls);
    return out;
}

/// Rows as they are measured, printed at once; with `--json=PATH` among the program's arguments,
/// also written there at the end.
class Report {
public:
    Report(int& argc, char** argv) {
        int kept = 1;
        for (int i = 1; i < argc; ++i) {
            const std::string_view argument = argv[i];
            if (argument.starts_with("--json="))
                path_ = argument.substr(7);
            else
                argv[kept++] = argv[i];
        }
        argc = kept;
    }
    Report(const Report&) = delete;
    Report& operator=(const Report&) = delete;
    ~Report() {
        if (path_.empty())
            return;
        deep_jit::json out = deep_jit::json::object();
        for (const auto& [name, row] : rows_) out[name] = row;
        if (deep_jit::try_write_file_sync(path_, out.dump(2) + "\n") != 0)
            std::fprintf(stderr, "cannot write %s\n", path_.c_str());
    }

    /// One row: the median of `values` (nanoseconds). Returns it.
    double add(const std::string& name, const std::vector<double>& values) {
        return add(name, median(values));
    }
    double add(const std::string& name, double nanoseconds) {
        std::printf("%-56s %s\n", name.c_str(), text_of(nanoseconds).c_str());
        write_row(name, nanoseconds);
        return nanoseconds;
    }
    /// The same, with its ratio to another median.
    double add(const std::string& name, const std::vector<double>& values, double reference,
               const std::string& reference_name) {
        const double value = median(values);
        std::printf("%-56s %s   %.2f x %s\n", name.c_str(), text_of(value).c_str(),
                    value / reference, reference_name.c_str());
        auto& row = write_row(name, value);
        row["ratio"] = rounded(value / reference);
        row["ratio_to"] = reference_name;
        return value;
    }
    /// A row that is no time.
    void add_number(const std::string& name, double value, const std::string& unit) {
        std::printf("%-56s %9.4g %s\n", name.c_str(), value, unit.c_str());
        deep_jit::json row = deep_jit::json::object();
        row["value"] = value;
        row["unit"] = unit;
        rows_.emplace_back(name, std::move(row));
    }

private:
    deep_jit::json& write_row(const std::string& name, double nanoseconds) {
        std::fflush(stdout);
        deep_jit::json row = deep_jit::json::object();
        row["median_ns"] = rounded(nanoseconds);
        rows_.emplace_back(name, std::move(row));
        return rows_.back().second;
    }

    /// To four digits.
    static double rounded(double value) {
        char text[32];
        std::snprintf(text, sizeof(text), "%.4g", value);
        return std::strtod(text, nullptr);
    }

    static std::string text_of(double nanoseconds) {
        char text[32];
        if (nanoseconds < 1e4)
            std::snprintf(text, sizeof(text), "%9.1f ns", nanoseconds);
        else if (nanoseconds < 1e7)
            std::snprintf(text, sizeof(text), "%9.1f us", nanoseconds / 1e3);
        else
            std::snprintf(text, sizeof(text), "%9.1f ms", nanoseconds / 1e6);
        return text;
    }

    std::string path_;
    std::vector<std::pair<std::string, deep_jit::json>> rows_;
};

}  // namespace benchmarks
