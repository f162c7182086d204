# What tests, benchmarks, examples and fuzz targets share. Users of the library never see it.
option(DEEP_JIT_WERROR "Treat warnings as errors" OFF)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_library(deep_jit_developer INTERFACE)
target_link_libraries(deep_jit_developer INTERFACE DeepJIT::headers)
target_compile_options(deep_jit_developer INTERFACE -Wall -Wextra
                                                    $<$<BOOL:${DEEP_JIT_WERROR}>:-Werror>)
target_compile_definitions(deep_jit_developer
                           INTERFACE DEEP_JIT_REPO_ROOT="${PROJECT_SOURCE_DIR}")

# The headers of CUDA: enough to compile the CUDA backend, which loads the driver when it runs.
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/cuda_home.sh
                OUTPUT_VARIABLE cuda_home OUTPUT_STRIP_TRAILING_WHITESPACE)
find_path(DEEP_JIT_CUDA_INCLUDE_DIR cuda.h
          HINTS ${cuda_home}/include ${cuda_home}/targets/x86_64-linux/include)
add_library(deep_jit_cuda_headers INTERFACE)
if(DEEP_JIT_CUDA_INCLUDE_DIR)
  message(STATUS "CUDA headers: ${DEEP_JIT_CUDA_INCLUDE_DIR}")
  target_include_directories(deep_jit_cuda_headers SYSTEM
                             INTERFACE ${DEEP_JIT_CUDA_INCLUDE_DIR})
  target_compile_definitions(deep_jit_cuda_headers INTERFACE DEEP_JIT_WITH_CUDA=1)
else()
  message(STATUS "CUDA headers: not found, so what needs them is not built")
endif()
