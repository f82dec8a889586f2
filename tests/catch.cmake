# What every test executable that uses Catch2 has in common.

find_package(Catch2 3 QUIET)
if(NOT Catch2_FOUND)
  message(WARNING "skipped: the tests, because Catch2 3 was not found (./dev test installs it on Debian)")
  return()
endif()
include(Catch)

# The umbrella in several units of every test executable: a definition that is not inline fails the link.
if(NOT TARGET memprof_odr)
  set(odr_units odr odr_second_unit odr_disabled_unit)
  list(TRANSFORM odr_units REPLACE "(.+)" "${CMAKE_CURRENT_LIST_DIR}/\\1.cpp")
  add_library(memprof_odr OBJECT ${odr_units})
  target_link_libraries(memprof_odr PRIVATE memprof::memprof)
endif()

# Compares each capture's trace with its profile.
if(NOT TARGET memprof_replay)
  add_library(memprof_replay OBJECT ${CMAKE_CURRENT_LIST_DIR}/replay.cpp)
  target_include_directories(memprof_replay SYSTEM PRIVATE ${PROJECT_SOURCE_DIR}/build/packages/usr/include)
  target_link_libraries(memprof_replay PRIVATE memprof::memprof Catch2::Catch2)
  if(NOT MEMPROF_TORCH) # whose tests have libtorch's headers precompiled, too
    target_precompile_headers(memprof_replay PRIVATE <catch2/catch_test_macros.hpp> <memprof/memprof.hpp> <map> <random> <sstream> <thread>)
  endif()
endif()

# Test executables with the flags of their folder share one precompiled header.
function(memprof_share_test_headers target)
  target_precompile_headers(${target} REUSE_FROM memprof_replay)
endfunction()

# memprof_add_test(<target> <label> <source>...): every TEST_CASE becomes a test of ctest.
function(memprof_add_test target label)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  # What ./dev unpacked in place of installing it.
  target_include_directories(${target} SYSTEM PRIVATE ${PROJECT_SOURCE_DIR}/build/packages/usr/include)
  target_link_libraries(${target} PRIVATE memprof_odr memprof_replay Catch2::Catch2WithMain)
  target_compile_definitions(${target} PRIVATE MEMPROF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET memprof::toolkit)
    target_link_libraries(${target} PRIVATE memprof::toolkit)
  elseif(TARGET memprof::json)
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
