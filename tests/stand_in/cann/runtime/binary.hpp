// A loaded device object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "stand_in/abi.h"

namespace dj_stand_in {

class Binary;

/// A name that ACL finds: a global function. `entry` is null when it is no kernel.
struct Function {
    Binary* binary = nullptr;
    std::string name;
    const KernelEntry* entry = nullptr;
};

class Binary {
public:
    /// Throws Failure (see runtime.hpp), also when it was compiled for another architecture.
    Binary(std::string_view bytes, std::int64_t npu_arch);
    Binary(const Binary&) = delete;
    Binary& operator=(const Binary&) = delete;

    Function* find(std::string_view name);

    int device = -1;  ///< that it was copied to, by the first look-up
    /// The code; whoever runs it keeps it.
    std::shared_ptr<void> library;

private:
    std::map<std::string, Function, std::less<>> functions_;
};

}  // namespace dj_stand_in
