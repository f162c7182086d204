# consumer_programs(): what each project here builds, from a DeepJIT::headers that it found in its
# own way.
include(${CMAKE_CURRENT_LIST_DIR}/all_headers.cmake)
set(program_dir ${CMAKE_CURRENT_LIST_DIR})

function(consumer_programs)
  # Two translation units with every header in both.
  add_executable(two_units ${program_dir}/main.cpp ${program_dir}/kernels.cpp)
  # A program and a shared library that both embed the runtime, and know nothing of each other.
  add_library(plugin SHARED ${program_dir}/kernels.cpp)
  add_executable(with_plugin ${program_dir}/main.cpp ${program_dir}/own_jit.cpp)
  target_link_libraries(with_plugin PRIVATE plugin)
  target_compile_definitions(with_plugin PRIVATE WITH_PLUGIN)
  foreach(target two_units plugin with_plugin)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
    target_link_libraries(${target} PRIVATE DeepJIT::headers)
    all_headers(${target})
  endforeach()
  set_target_properties(plugin PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
