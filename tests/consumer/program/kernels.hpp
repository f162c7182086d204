#pragma once

#include <vector>

#define CONSUMER_EXPORT __attribute__((visibility("default")))

/// values * 3, by a kernel that this unit compiles.
CONSUMER_EXPORT std::vector<int> triple(const std::vector<int>& values);
/// Where this unit sees the one object that an inline variable of DeepJIT is.
CONSUMER_EXPORT const void* inline_variable();
