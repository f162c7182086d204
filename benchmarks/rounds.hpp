// Measures things side by side: a round takes a sample of each, rounds are repeated, and what is
// compared are samples of the same round. So a clock that drifts changes all of them alike.
#pragma once

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/utils/json.hpp>

#include "report.hpp"

namespace benchmarks {

/// Called around a sample and not measured.
struct Around {
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
};

class Rounds {
public:
    explicit Rounds(std::string title) : title_(std::move(title)) {}

    /// A sample is the mean time of `batch` calls of `call`. `reference` names what it is compared
    /// with, added before; empty: nothing.
    template <typename Call>
    void add(const std::string& name, const std::string& reference, int batch, Call call,
             Around around = {}) {
        std::size_t against = kNone;
        for (std::size_t i = 0; i < variants_.size(); ++i)
            if (variants_[i].name == reference)
                against = i;
        if (!reference.empty() && against == kNone)
            throw std::logic_error("there is no reference " + reference);
        // Not one std::function for each call: that would be measured as well.
        auto sample = [batch, call = std::move(call)]() mutable {
            return time_of([&] {
                       for (int i = 0; i < batch; ++i) call();
                   }) /
                   batch;
        };
        variants_.push_back({name, against, std::move(sample), std::move(around), {}});
    }

    /// The first `warm_up` rounds are not counted.
    void run(int warm_up, int rounds) {
        for (int round = 0; round < warm_up + rounds; ++round)
            for (std::size_t i = 0; i < variants_.size(); ++i) {
                // Another one begins each round.
                auto& variant = variants_[(i + static_cast<std::size_t>(round)) % variants_.size()];
                variant.around.before();
                const double sample = variant.sample();
                variant.around.after();
                if (round >= warm_up)
                    variant.samples.push_back(sample);
            }
    }

    void print() const {
        std::printf("\n%-42s %12s %12s %9s  %s\n", title_.c_str(), "median ns", "over ns", "ratio",
                    "to");
        for (const auto& variant : variants_) {
            std::printf("%-42s %12.1f", variant.name.c_str(), median(variant.samples));
            if (variant.reference != kNone)
                std::printf(" %+12.1f %9.3f  %s", over(variant), ratio(variant),
                            variants_[variant.reference].name.c_str());
            std::printf("\n");
        }
        std::fflush(stdout);
    }

    /// Rows by their names, as Report writes them.
    void write_to(deep_jit::json& out) const {
        for (const auto& variant : variants_) {
            auto row = deep_jit::json::object();
            row["median_ns"] = median(variant.samples);
            if (variant.reference != kNone) {
                row["ratio"] = ratio(variant);
                row["ratio_to"] = variants_[variant.reference].name;
                row["over_ns"] = over(variant);
            }
            row["rounds"] = static_cast<std::int64_t>(variant.samples.size());
            out[variant.name] = std::move(row);
        }
    }

private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    struct Variant {
        std::string name;
        std::size_t reference;
        std::function<double()> sample;
        Around around;
        std::vector<double> samples;
    };

    /// Medians of the differences and of the quotients within rounds.
    double over(const Variant& variant) const {
        return paired(variant, [](double value, double reference) { return value - reference; });
    }
    double ratio(const Variant& variant) const {
        return paired(variant, [](double value, double reference) { return value / reference; });
    }
    template <typename Combine>
    double paired(const Variant& variant, Combine combine) const {
        const auto& reference = variants_[variant.reference];
        std::vector<double> out;
        for (std::size_t i = 0; i < variant.samples.size(); ++i)
            out.push_back(combine(variant.samples[i], reference.samples[i]));
        return median(std::move(out));
    }

    std::string title_;
    std::vector<Variant> variants_;
};

}  // namespace benchmarks
