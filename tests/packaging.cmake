# Each way to get memprof, taken as a user would take it. What a package manager needs and is not there is skipped.

# A copy of the tree's own install, from a build that was never run.
set(packages ${CMAKE_CURRENT_BINARY_DIR}/packages)

memprof_add_consumer_test("FetchContent" add_subdirectory -DMEMPROF_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DWITH_FETCH_CONTENT=ON -DPROGRAM=marks_only
  -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)

set(configure_headers ${CMAKE_COMMAND} --fresh -S ${PROJECT_SOURCE_DIR} -G ${CMAKE_GENERATOR}
  -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DMEMPROF_DEVELOPMENT=OFF -DMEMPROF_TOOLS=OFF)
memprof_add_static_test("package: the build tree is one" ${configure_headers} -B ${packages}/build_tree)
set_tests_properties("package: the build tree is one" PROPERTIES FIXTURES_SETUP memprof_build_tree)
memprof_add_consumer_test("find_package in the build tree" find_package
  -Dmemprof_DIR=${packages}/build_tree -DWANTED_VERSION=${version} -DWANTED_COMPONENT=json)
memprof_add_consumer_test("find_package of the toolkit in the build tree" find_package
  -Dmemprof_DIR=${packages}/build_tree -DWANTED_VERSION=${version} -DWANTED_COMPONENT=toolkit
  -DCMAKE_PROJECT_memprof_consumer_INCLUDE=${toolkit_hook} -DBUILT_TOOLKIT=${toolkit_folder})
set_tests_properties("consumer: find_package in the build tree" "consumer: find_package of the toolkit in the build tree" PROPERTIES FIXTURES_REQUIRED memprof_build_tree)

memprof_add_static_test("package: absolute folders, with a space in their names"
  ${consumers}/absolute_folders.sh ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR} ${version})

# --- other versions of CMake ------------------------------------------------------------------------------------------

foreach(release IN ITEMS oldest newest)
  set(other_cmake ${PROJECT_SOURCE_DIR}/build/consumers/cmake_${release}/cmake/data/bin/cmake)
  if(EXISTS ${other_cmake})
    set(build ${packages}/cmake_${release})
    memprof_add_static_test("CMake: the ${release} installs memprof and finds it" sh -c "rm -rf '${build}' && \
      '${other_cmake}' --version && '${other_cmake}' -S '${PROJECT_SOURCE_DIR}' -B '${build}/memprof' -DMEMPROF_TOOLS=OFF \
        -G '${CMAKE_GENERATOR}' -DCMAKE_CXX_COMPILER='${CMAKE_CXX_COMPILER}' -DMEMPROF_DEVELOPMENT=OFF && \
      '${other_cmake}' --install '${build}/memprof' --prefix '${build}/prefix' && \
      '${other_cmake}' -S '${consumers}/find_package' -B '${build}/find' -G '${CMAKE_GENERATOR}' \
        -DCMAKE_CXX_COMPILER='${CMAKE_CXX_COMPILER}' '-DCMAKE_PREFIX_PATH=${build}/prefix' -DWANTED_VERSION=${version} -DWANTED_COMPONENT=json && \
      '${other_cmake}' --build '${build}/find' && '${build}/find/consumer' && \
      '${other_cmake}' -S '${consumers}/add_subdirectory' -B '${build}/add' -G '${CMAKE_GENERATOR}' \
        -DCMAKE_CXX_COMPILER='${CMAKE_CXX_COMPILER}' '-DMEMPROF_SOURCE_DIR=${PROJECT_SOURCE_DIR}' -DPROGRAM=marks_only && \
      '${other_cmake}' --build '${build}/add' && '${build}/add/consumer'")
  else()
    message(STATUS "skipped: the test with the ${release} CMake, which is not there")
  endif()
endforeach()

# --- pkg-config -------------------------------------------------------------------------------------------------------

find_program(memprof_pkg_config pkg-config)
mark_as_advanced(memprof_pkg_config)
if(memprof_pkg_config)
  memprof_add_static_test("pkg-config: a program compiles and runs" sh -c "export PKG_CONFIG_PATH='${prefix}/share/pkgconfig' && \
    eval '${CMAKE_CXX_COMPILER}' -std=c++20 '${consumers}/core_only.cpp' -o '${packages}/pkg_config' \
      $('${memprof_pkg_config}' --cflags --libs 'memprof >= ${PROJECT_VERSION}') \
      $('${memprof_pkg_config}' --variable=executable_ldflags memprof) && '${packages}/pkg_config'")
  set_tests_properties("pkg-config: a program compiles and runs" PROPERTIES FIXTURES_REQUIRED installed_memprof)
else()
  message(STATUS "skipped: the test of pkg-config, which is not there")
endif()

# --- Meson, Conan, vcpkg, Debian --------------------------------------------------------------------------------------

set(python_programs ${PROJECT_SOURCE_DIR}/build/consumers/python/bin)
find_program(memprof_meson meson HINTS ${python_programs})
find_program(memprof_conan conan HINTS ${python_programs})
mark_as_advanced(memprof_meson memprof_conan)

if(memprof_meson AND memprof_pkg_config)
  memprof_add_static_test("Meson: a project finds memprof" sh -c "rm -rf '${packages}/meson' && \
    CXX='${CMAKE_CXX_COMPILER}' '${memprof_meson}' setup '${packages}/meson' '${consumers}/meson' --pkg-config-path '${prefix}/share/pkgconfig' && \
    '${memprof_meson}' test -C '${packages}/meson'")
  set_tests_properties("Meson: a project finds memprof" PROPERTIES FIXTURES_REQUIRED installed_memprof)
else()
  message(STATUS "skipped: the test with Meson, which is not there")
endif()

if(memprof_conan)
  set(check_conan ${PROJECT_SOURCE_DIR}/packaging/conan/check.sh ${memprof_conan})
  memprof_add_static_test("Conan: conan create without json" ${check_conan} ${packages}/conan_core -o "&:json=False")
  set(with_built_toolkit)
  if(toolkit_hook)
    set(with_built_toolkit --conf
      "tools.cmake.cmaketoolchain:extra_variables={'CMAKE_PROJECT_memprof_test_package_INCLUDE': '${toolkit_hook}', 'BUILT_TOOLKIT': '${toolkit_folder}'}")
  endif()
  memprof_add_static_test("Conan: conan create with every component"
    ${check_conan} ${packages}/conan_components -o "&:zstd=True" -o "&:toml=True" -o "&:protozero=True" ${with_built_toolkit})
else()
  message(STATUS "skipped: the tests with Conan, which is not there")
endif()

memprof_add_static_test("vcpkg: the steps of the port without features"
  ${CMAKE_COMMAND} -D OUT=${packages}/vcpkg_core -P ${PROJECT_SOURCE_DIR}/packaging/vcpkg/check.cmake)
memprof_add_static_test("vcpkg: the steps of the port, and its example"
  ${CMAKE_COMMAND} -D OUT=${packages}/vcpkg "-DFEATURES=protozero$<SEMICOLON>toml$<SEMICOLON>zstd" -DTOOLKIT_HOOK=${toolkit_hook} -DBUILT_TOOLKIT=${toolkit_folder} -P ${PROJECT_SOURCE_DIR}/packaging/vcpkg/check.cmake)

find_program(memprof_dpkg_deb dpkg-deb)
mark_as_advanced(memprof_dpkg_deb)
if(memprof_dpkg_deb AND MEMPROF_TOOLS AND MEMPROF_JSON)
  memprof_add_static_test("Debian: the packages unpack, compile and run"
    ${PROJECT_SOURCE_DIR}/packaging/debian/check.sh ${PROJECT_BINARY_DIR} ${packages}/debian ${CMAKE_CXX_COMPILER} ${consumers}/core_only.cpp)
else()
  message(STATUS "skipped: the test of the Debian packages, which needs dpkg-deb and the program memprof")
endif()
