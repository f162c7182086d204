#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace dj_stand_in {

namespace {

constexpr std::int64_t kKiB = 1024;
constexpr Soc kSocs[] = {
    {"Ascend950PR_9599", 3510, 36, 72, 256 * kKiB, 134217728},
    {"Ascend950DT_9582", 3510, 28, 56, 256 * kKiB, 134217728},
    {"Ascend910B1", 2201, 24, 48, 192 * kKiB, 201326592},
    {"Ascend910B2", 2201, 24, 48, 192 * kKiB, 201326592},
    {"Ascend910B3", 2201, 20, 40, 192 * kKiB, 201326592},
    {"Ascend910B4", 2201, 20, 40, 192 * kKiB, 100663296},
    {"Ascend910_9362", 2201, 20, 40, 192 * kKiB, 176160768},
    {"Ascend910_9391", 2201, 24, 48, 192 * kKiB, 201326592},
    {"Ascend310P3", 2002, 8, 7, 256 * kKiB, 16777216},
    {"Ascend910B", 1001, 32, 0, 256 * kKiB, 33554432},
};

const char* env_or(const char* name, const char* fallback) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : fallback;
}

/// "9.1.0" -> 90100.
int version_number(const std::string& text) {
    std::istringstream in(text);
    int out = 0;
    for (const int scale : {10000, 100, 1}) {
        int part = 0;
        if (in >> part)
            out += part * scale;
        in.ignore(1);
    }
    return out;
}

}  // namespace

Settings Settings::from_environment() {
    Settings out;
    const std::string name = env_or("DJ_STAND_IN_CANN_SOC", kSocs[0].name);
    const auto* found = std::find_if(std::begin(kSocs), std::end(kSocs),
                                     [&](const Soc& soc) { return name == soc.name; });
    if (found == std::end(kSocs))
        throw std::runtime_error("DJ_STAND_IN_CANN_SOC: the stand-in knows no " + name);
    out.soc = *found;
    out.devices = std::atoi(env_or("DJ_STAND_IN_CANN_DEVICES", "1"));
    out.version = version_number(env_or("DJ_STAND_IN_CANN_VERSION", "9.1.0"));
    if (out.version < 90100)
        out.no_attributes.insert(601);
    std::istringstream list(env_or("DJ_STAND_IN_CANN_NO_ATTRIBUTES", ""));
    for (std::string word; std::getline(list, word, ',');)
        out.no_attributes.insert(std::atoi(word.c_str()));
    return out;
}

}  // namespace dj_stand_in
