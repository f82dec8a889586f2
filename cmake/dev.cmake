# What only developers of memprof need; a project that uses memprof never reads this file.
cmake_minimum_required(VERSION 3.24)

option(MEMPROF_TESTS "Build the tests that need Catch2" ON)
set(MEMPROF_UNIT_TESTS ON CACHE STRING "Build the unit tests and tests/dso (which is built with all other tests, too): ON, OFF, or \
CORE, no more than the unit tests of the recording, the trace and the ledger, and scenarios with threads")
option(MEMPROF_FUZZERS "Build the programs that mutate files at random" ON)
option(MEMPROF_LIBFUZZER "Fuzz with libFuzzer as well, which needs clang" OFF)
option(MEMPROF_SINGLE_THREADED_TESTS "Build the scenarios without threads, the property tests and the examples" ON)
option(MEMPROF_THREADED_TESTS "Build the scenarios with threads, processes and files" ON)
option(MEMPROF_BENCHMARKS "Build the benchmarks" OFF)
set(MEMPROF_VERIFY_HEADERS ON CACHE STRING "Compile every header: ON, each alone; TOGETHER, all in one unit; OFF")
option(MEMPROF_SINGLE_HEADER "Compile tests and examples against single_include/ in place of include/" OFF)

option(MEMPROF_LONG_TESTS "Also the tests that take too long for every change (./dev test --long)" OFF)
option(MEMPROF_SEPARATE_COMPILATION "Link tests and examples with memprof::compiled, except where that header-only works is tested" OFF)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # a tenth faster without a garbage collection before a gigabyte is in use
  add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
endif()

if(MEMPROF_SINGLE_HEADER)
  include(cmake/single_header.cmake)
elseif(MEMPROF_VERIFY_HEADERS)
  include(cmake/verify_headers.cmake)
endif()

# Everything below links it, but for the check of the headers in this folder, and the targets of those that set memprof_HEADER_ONLY.
if(MEMPROF_SEPARATE_COMPILATION)
  define_property(TARGET PROPERTY HEADER_ONLY INITIALIZE_FROM_VARIABLE memprof_HEADER_ONLY)
  set(is_header_only $<OR:$<BOOL:$<TARGET_PROPERTY:HEADER_ONLY>>,$<STREQUAL:$<TARGET_PROPERTY:SOURCE_DIR>,${PROJECT_SOURCE_DIR}>>)
  link_libraries("$<$<NOT:${is_header_only}>:memprof_compiled>")
  target_compile_options(memprof_compiled PRIVATE $<$<CONFIG:Debug>:-O1>) # tests spend much of their time in it
  if(TARGET memprof_toolkit)
    target_compile_options(memprof_toolkit PRIVATE $<$<CONFIG:Debug>:-O1>)
    target_compile_options(memprof_toolkit_page PRIVATE $<$<CONFIG:Debug>:-O1>)
  endif()
endif()

if(TARGET memprof_toolkit)
  set_target_properties(memprof_toolkit memprof_toolkit_page PROPERTIES COMPILE_WARNING_AS_ERROR ON) # optimised, compilers warn of more
endif()

enable_testing()
if(MEMPROF_TORCH)
  # Only what needs libtorch: the rest is built by the other presets. Its headers take some twenty seconds a file, and even
  # precompiled some five: files are compiled several to a unit, and share one precompiled header. That has none of memprof's
  # headers: a missing #include would go unnoticed, and torch_no_dispatch.hpp registers its CUDA in each program that includes it.
  function(memprof_link_torch target)
    target_link_libraries(${target} PRIVATE memprof::torch memprof::json)
    if(TARGET memprof::toolkit)
      target_link_libraries(${target} PRIVATE memprof::toolkit)
    endif()
    if(TARGET memprof::torch_cuda)
      target_link_libraries(${target} PRIVATE memprof::torch_cuda)
    endif()
  endfunction()
  function(memprof_share_torch_headers target)
    memprof_link_torch(${target})
    target_precompile_headers(${target} REUSE_FROM memprof_torch_precompiled)
  endfunction()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_precompiled.cpp CONTENT "")
  add_library(memprof_torch_precompiled OBJECT ${PROJECT_BINARY_DIR}/torch_precompiled.cpp)
  memprof_link_torch(memprof_torch_precompiled)
  if(MEMPROF_SEPARATE_COMPILATION)
    target_link_libraries(memprof_torch_precompiled PRIVATE memprof_compiled)
  endif()
  target_precompile_headers(memprof_torch_precompiled PRIVATE <torch/torch.h>)
  add_subdirectory(examples/torch_gpt)
  add_subdirectory(examples/torch_examples)
  add_subdirectory(tests/torch)
  add_subdirectory(tests/torch_step)
  include(tests/documents.cmake)
  add_subdirectory(tests/torch_cuda)
  if(MEMPROF_BENCHMARKS)
    add_subdirectory(benchmarks/torch)
  endif()
  return()
endif()
add_subdirectory(examples) # before the tests: some of them link the library of an example
add_subdirectory(tests)
if(MEMPROF_TESTS AND MEMPROF_FUZZERS)
  add_subdirectory(fuzz)
endif()
if(MEMPROF_BENCHMARKS)
  add_subdirectory(benchmarks)
endif()
