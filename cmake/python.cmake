# The module deep_jit._core of the Python package. With scikit-build-core it goes into a wheel; else
# the package lies in <build>/python, for PYTHONPATH.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)

# cuda.h and what it includes: a named directory, NVIDIA's wheels in the environment that runs the
# build, or an installed toolkit. Only the headers: neither toolkit nor driver is needed to build.
if(NOT DEEP_JIT_CUDA_INCLUDE_DIR)
  execute_process(
    COMMAND
      ${Python_EXECUTABLE} -c
      "import glob, sys; print(';'.join(d for p in sys.path for d in glob.glob(p + '/nvidia/*/include')))"
    OUTPUT_VARIABLE wheel_include_dirs
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  foreach(directory IN LISTS wheel_include_dirs
                             ITEMS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
                                   /usr/local/cuda/include /usr/include)
    # NVIDIA's wheel of the runtime is not complete without that of crt.
    if(EXISTS ${directory}/cuda.h AND EXISTS ${directory}/crt/host_defines.h)
      set(DEEP_JIT_CUDA_INCLUDE_DIR ${directory})
      break()
    endif()
  endforeach()
endif()
set(backends host ascend)
if(DEEP_JIT_CUDA_INCLUDE_DIR)
  list(APPEND backends cuda)
else()
  message(WARNING "There are no CUDA headers: the Python package will be without the CUDA backend")
endif()
message(STATUS "Backends of the Python package: ${backends} (${DEEP_JIT_CUDA_INCLUDE_DIR})")

Python_add_library(deep_jit_python MODULE WITH_SOABI src/python/module.cpp)
set_target_properties(deep_jit_python PROPERTIES OUTPUT_NAME _core CXX_VISIBILITY_PRESET hidden)
target_link_libraries(deep_jit_python PRIVATE DeepJIT::headers)
target_compile_options(deep_jit_python PRIVATE -Wall -Wextra)
if(DEEP_JIT_WERROR)
  target_compile_options(deep_jit_python PRIVATE -Werror)
endif()
if(DEEP_JIT_CUDA_INCLUDE_DIR)
  # For all sources: dim3 comes from these headers where they are.
  target_include_directories(deep_jit_python SYSTEM PRIVATE ${DEEP_JIT_CUDA_INCLUDE_DIR})
endif()
foreach(backend IN LISTS backends)
  string(TOUPPER ${backend} upper)
  target_sources(deep_jit_python PRIVATE src/python/${backend}.cpp)
  target_compile_definitions(deep_jit_python PRIVATE DEEP_JIT_WITH_${upper}=1)
endforeach()

if(SKBUILD)
  install(TARGETS deep_jit_python LIBRARY DESTINATION .)
else()
  set(package_dir ${PROJECT_BINARY_DIR}/python/deep_jit)
  set_target_properties(deep_jit_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package_dir})
  file(MAKE_DIRECTORY ${package_dir})
  file(GLOB package_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/deep_jit/*)
  foreach(file IN LISTS package_files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${package_dir}/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${package_dir}/include SYMBOLIC)
endif()
