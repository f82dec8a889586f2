# An overlay port that lies in memprof's own tree and builds that tree.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    json MEMPROF_JSON
    protozero MEMPROF_PROTOZERO
    toml MEMPROF_TOML
    toolkit MEMPROF_TOOLKIT
    tools MEMPROF_TOOLS
    zstd MEMPROF_ZSTD
)

if(NOT "tools" IN_LIST FEATURES)
  set(VCPKG_BUILD_TYPE release) # headers only: debug and release are the same
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DMEMPROF_DEVELOPMENT=OFF
    -DMEMPROF_INSTALL=ON
    ${feature_options}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup()
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES memprof AUTO_CLEAN)
  # What `memprof run` preloads, beside it.
  file(RENAME "${CURRENT_PACKAGES_DIR}/lib/memprof/libmemprof_preload.so" "${CURRENT_PACKAGES_DIR}/tools/${PORT}/libmemprof_preload.so")
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug" "${CURRENT_PACKAGES_DIR}/lib")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
