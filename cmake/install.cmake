include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_DATAROOTDIR}/memprof)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS memprof EXPORT memprof-targets)
install(EXPORT memprof-targets NAMESPACE memprof:: DESTINATION ${package_directory})

# Any 0.x may break the interface of the one before.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/memprof-config-version.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(
  FILES
    ${PROJECT_SOURCE_DIR}/cmake/memprof-config.cmake
    ${PROJECT_SOURCE_DIR}/cmake/memprof-json.cmake
    ${PROJECT_SOURCE_DIR}/cmake/memprof-torch.cmake
    ${PROJECT_SOURCE_DIR}/cmake/memprof-torch-cuda.cmake
    ${PROJECT_SOURCE_DIR}/cmake/memprof-zstd.cmake
    ${PROJECT_SOURCE_DIR}/cmake/memprof.dynamic-list
    ${PROJECT_BINARY_DIR}/memprof-config-version.cmake
  DESTINATION ${package_directory})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${package_directory} RENAME copyright)
