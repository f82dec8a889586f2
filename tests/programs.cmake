# Tests that are programs: labelled after their folder.

file(GLOB noexcept_sources CONFIGURE_DEPENDS noexcept/*.cpp)
if(NOT MEMPROF_TESTS)
  foreach(source IN LISTS noexcept_sources)
    cmake_path(GET source STEM name)
    add_executable(noexcept_${name} ${source} odr.cpp odr_second_unit.cpp odr_disabled_unit.cpp)
    target_link_libraries(noexcept_${name} PRIVATE memprof::memprof)
    add_test(NAME "noexcept: ${name}" COMMAND noexcept_${name})
    set_tests_properties("noexcept: ${name}" PROPERTIES LABELS noexcept)
  endforeach()
  return()
endif()

find_package(Catch2 3 QUIET)
if(NOT Catch2_FOUND)
  message(WARNING "skipped: the tests, because Catch2 3 was not found (./dev test installs it on Debian)")
  return()
endif()
include(Catch)

# The umbrella in several units of every test executable: a definition that is not inline fails the link.
add_library(memprof_odr OBJECT odr.cpp odr_second_unit.cpp odr_disabled_unit.cpp)
target_link_libraries(memprof_odr PRIVATE memprof::memprof)

# memprof_add_test(<target> <label> <source>...): every TEST_CASE becomes a test of ctest.
function(memprof_add_test target label)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  # What ./dev unpacked in place of installing it.
  target_include_directories(${target} SYSTEM PRIVATE ${PROJECT_SOURCE_DIR}/build/packages/usr/include)
  target_link_libraries(${target} PRIVATE memprof_odr Catch2::Catch2WithMain)
  target_compile_definitions(${target} PRIVATE MEMPROF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET memprof::json)
    target_link_libraries(${target} PRIVATE memprof::json)
  else()
    target_link_libraries(${target} PRIVATE memprof::memprof)
  endif()
  if(TARGET nano_gpt)
    target_link_libraries(${target} PRIVATE nano_gpt)
  endif()
  # Names are listed when ctest runs, not when the target is built: cross-compiled or sanitized programs may not run there.
  catch_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${label} SKIP_RETURN_CODE 4)
endfunction()

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS unit/*.cpp)
if(unit_sources)
  memprof_add_test(memprof_unit_tests unit ${unit_sources})
endif()

foreach(folder IN ITEMS integration property)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    memprof_add_test(memprof_${folder}_${name} ${folder} ${source})
  endforeach()
endforeach()

foreach(folder IN ITEMS dso process_life dhat)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endforeach()
