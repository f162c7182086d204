# Install rules, and the package that find_package(DeepJIT) finds.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/DeepJIT)

install(DIRECTORY include/deep_jit TYPE INCLUDE FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/DeepJIT)
install(TARGETS deep_jit_headers EXPORT DeepJITTargets INCLUDES
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT DeepJITTargets NAMESPACE DeepJIT:: DESTINATION ${package_dir})

configure_package_config_file(cmake/DeepJITConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/DeepJITConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/DeepJITConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/DeepJITConfig.cmake
              ${PROJECT_BINARY_DIR}/DeepJITConfigVersion.cmake DESTINATION ${package_dir})
