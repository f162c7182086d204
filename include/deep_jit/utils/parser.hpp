// Kept under this path for code that includes it by name.
#pragma once

#include <deep_jit/source/parser.hpp>
