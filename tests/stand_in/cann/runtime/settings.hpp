// What the stand-in pretends to be: read from the environment when the runtime starts.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace dj_stand_in {

struct Soc {
    const char* name;
    std::int64_t arch;  ///< as --npu-arch names it
    std::int64_t cube_cores;
    std::int64_t vector_cores;
    std::int64_t ub_bytes;  ///< physical, of one vector core
    std::int64_t l2_bytes;

    bool is_950() const { return arch == 3510; }
};

struct Settings {
    Soc soc{};
    int devices = 1;
    int version = 90100;          ///< 90100: CANN 9.1.0
    std::set<int> no_attributes;  ///< device attributes that this CANN does not know

    static Settings from_environment();
};

}  // namespace dj_stand_in
