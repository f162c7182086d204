// The library's interface. Its users see neither kernels nor DeepJIT.
#pragma once

#include <string>
#include <vector>

namespace mykernels {

/// Once, before anything else. `library_root` is where the library's `include` folder lies.
void init(const std::string& library_root);

/// y = a * x + y, for sizes that are multiples of 4.
void saxpy(std::vector<float>& y, const std::vector<float>& x, float a);

float sum(const std::vector<float>& values);

}  // namespace mykernels
