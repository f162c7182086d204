# all_headers(TARGET): the target can include <all_headers.hpp>, which includes every header of
# DeepJIT that needs no other library.
function(all_headers target)
  get_target_property(directories DeepJIT::headers INTERFACE_INCLUDE_DIRECTORIES)
  string(REGEX REPLACE "\\$<BUILD_INTERFACE:([^>]*)>" "\\1" directories "${directories}")
  list(GET directories 0 directory)
  file(GLOB_RECURSE headers RELATIVE ${directory} ${directory}/deep_jit/*.hpp)
  list(FILTER headers EXCLUDE REGEX "backend/cuda/|python/|python_api.hpp")
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>")
  list(JOIN headers "\n" text)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/generated/all_headers.hpp "#pragma once\n${text}\n")
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()
