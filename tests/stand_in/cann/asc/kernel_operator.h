// Ascend C, as far as the test kernels need it.
#pragma once
#pragma GCC system_header

#include "basic_api/kernel_common.h"
#include "basic_api/kernel_operator_data_copy.h"
#include "basic_api/kernel_operator_vec.h"
#include "basic_api/kernel_tensor.h"
#include "basic_api/kernel_tpipe.h"
