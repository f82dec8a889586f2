include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)
# The toolkit: headers beside those of the library; what is compiled, once in each project that uses it, beside the package's files. AUTO
# without nlohmann/json leaves it to the projects that find the package.
set(toolkit_package_file)
if(MEMPROF_TOOLKIT)
  file(GLOB_RECURSE toolkit_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/toolkit ${PROJECT_SOURCE_DIR}/toolkit/*.hpp ${PROJECT_SOURCE_DIR}/toolkit/*.cpp)
  foreach(file IN LISTS toolkit_files)
    cmake_path(GET file PARENT_PATH room)
    if(file MATCHES "\\.hpp$")
      set(folder ${CMAKE_INSTALL_INCLUDEDIR}/memprof/toolkit)
    else()
      set(folder ${package_directory}/toolkit)
    endif()
    install(FILES ${PROJECT_SOURCE_DIR}/toolkit/${file} DESTINATION ${folder}/${room} COMPONENT toolkit)
  endforeach()
  set(toolkit_package_file ${PROJECT_SOURCE_DIR}/cmake/memprof-toolkit.cmake)
  install(FILES ${toolkit_package_file} DESTINATION ${package_directory} COMPONENT toolkit)
endif()
install(TARGETS memprof EXPORT memprof-targets COMPONENT headers)
install(EXPORT memprof-targets NAMESPACE memprof:: DESTINATION ${package_directory} COMPONENT headers)

# Any 0.x may break the interface of the one before.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/memprof-config-version.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
set(package_files memprof-config.cmake memprof-compiled.cmake memprof.cpp memprof-json.cmake memprof-torch.cmake memprof-torch-cuda.cmake
  memprof-torch-compiled.cmake memprof_torch.cpp memprof_torch_no_dispatch.cpp memprof-toml.cmake memprof-zstd.cmake)
list(TRANSFORM package_files PREPEND ${PROJECT_SOURCE_DIR}/cmake/)
install(
  FILES ${package_files} ${PROJECT_SOURCE_DIR}/cmake/memprof.dynamic-list ${PROJECT_BINARY_DIR}/memprof-config-version.cmake
  DESTINATION ${package_directory} COMPONENT headers)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${package_directory} COMPONENT headers RENAME copyright)

# The build tree is a package too: memprof_DIR is the build folder.
export(EXPORT memprof-targets NAMESPACE memprof:: FILE ${PROJECT_BINARY_DIR}/memprof-targets.cmake)
foreach(file IN LISTS package_files toolkit_package_file)
  file(COPY ${file} DESTINATION ${PROJECT_BINARY_DIR})
endforeach()

# pkg-config finds its prefix from where the file lies, unless a folder was given as an absolute path.
set(pkgconfig_directory ${CMAKE_INSTALL_DATAROOTDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_DATAROOTDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pkgconfig_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH to_prefix /${pkgconfig_directory} /)
  string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
  set(pkgconfig_prefix "\${pcfiledir}/${to_prefix}")
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pkgconfig_include)
cmake_path(ABSOLUTE_PATH package_directory BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pkgconfig_data)
foreach(folder IN ITEMS prefix include data)
  string(REPLACE " " "\\ " pkgconfig_${folder} "${pkgconfig_${folder}}")
endforeach()
foreach(module IN ITEMS memprof memprof-json)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${pkgconfig_directory} COMPONENT headers)
endforeach()
