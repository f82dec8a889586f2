# memprof::toolkit: what reads, analyses and draws recordings, <memprof/toolkit/...>. It is compiled once, in a static library that is
# built with the program, by the program's compiler and flags. One file for both roads: add_subdirectory (through the option
# MEMPROF_TOOLKIT) and find_package(memprof COMPONENTS toolkit). Where protozero is found, the toolkit reads profiles of XLA, and has
# the second name memprof::protozero.
#
# Where nlohmann/json is missing there is no target, and memprof_toolkit_NOT_FOUND_MESSAGE says so; memprof_protozero_FOUND and
# memprof_protozero_NOT_FOUND_MESSAGE are about the readers for XLA.
set(memprof_toolkit_FOUND FALSE)
set(memprof_protozero_FOUND FALSE)
if(TARGET memprof::protozero)
  set(memprof_protozero_FOUND TRUE)
endif()
if(TARGET memprof::toolkit)
  set(memprof_toolkit_FOUND TRUE)
  return()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/memprof-compiled.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/memprof-json.cmake)
if(NOT memprof_json_FOUND)
  set(memprof_toolkit_NOT_FOUND_MESSAGE "${memprof_json_NOT_FOUND_MESSAGE}")
  set(memprof_protozero_NOT_FOUND_MESSAGE "${memprof_json_NOT_FOUND_MESSAGE}")
  return()
endif()

# In the source tree, in a build tree that serves as a package, and installed.
foreach(folder IN ITEMS ../toolkit toolkit_include/memprof/toolkit toolkit)
  set(toolkit_sources_folder ${CMAKE_CURRENT_LIST_DIR}/${folder})
  if(EXISTS ${toolkit_sources_folder})
    break()
  endif()
endforeach()
file(GLOB_RECURSE toolkit_sources CONFIGURE_DEPENDS ${toolkit_sources_folder}/*.cpp)

# protozero is headers alone, and has no package file.
if(NOT DEFINED MEMPROF_PROTOZERO OR MEMPROF_PROTOZERO)
  find_path(memprof_protozero_headers protozero/varint.hpp)
  mark_as_advanced(memprof_protozero_headers)
endif()
if(memprof_protozero_headers AND (NOT DEFINED MEMPROF_PROTOZERO OR MEMPROF_PROTOZERO))
  set(memprof_protozero_FOUND TRUE)
else()
  set(memprof_protozero_NOT_FOUND_MESSAGE
    "protozero was not found (Debian: libprotozero-dev); set memprof_protozero_headers or CMAKE_PREFIX_PATH")
  list(FILTER toolkit_sources EXCLUDE REGEX "/(format/xla/[a-z_]+|analysis/hlo_[a-z_]+)\\.cpp$")
endif()

# elfutils reads debug information: the names of stacks with inlined calls, files and lines.
if(NOT DEFINED MEMPROF_LIBDW OR MEMPROF_LIBDW)
  find_path(memprof_libdw_headers elfutils/libdwfl.h)
  find_library(memprof_libdw_library dw)
  mark_as_advanced(memprof_libdw_headers memprof_libdw_library)
endif()

# The page alone, for programs that want no more than that and do not wait for the rest.
set(toolkit_page_sources ${toolkit_sources})
list(FILTER toolkit_page_sources INCLUDE REGEX "/(page/[a-z0-9_]+|format/gzip|analysis/program_name)\\.cpp$")
list(FILTER toolkit_page_sources EXCLUDE REGEX "picture|gnuplot|waterfall|comparison")
list(REMOVE_ITEM toolkit_sources ${toolkit_page_sources})
add_library(memprof_toolkit_page STATIC EXCLUDE_FROM_ALL ${toolkit_page_sources})
add_library(memprof::toolkit_page ALIAS memprof_toolkit_page)

add_library(memprof_toolkit STATIC EXCLUDE_FROM_ALL ${toolkit_sources})
add_library(memprof::toolkit ALIAS memprof_toolkit)
target_link_libraries(memprof_toolkit PUBLIC memprof_toolkit_page)
# What it needs of the library is not compiled in each of its files.
target_link_libraries(memprof_toolkit_page PUBLIC memprof::json memprof::compiled)
set_target_properties(memprof_toolkit memprof_toolkit_page PROPERTIES POSITION_INDEPENDENT_CODE ON) # shared libraries may link them
# Compiled alone, a file spends most of its time on what it includes. -DCMAKE_UNITY_BUILD=OFF still does that.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_target_properties(memprof_toolkit memprof_toolkit_page PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 48)
endif()
if(memprof_toolkit_include_folder) # not installed beside the library's headers
  target_include_directories(memprof_toolkit_page PUBLIC ${memprof_toolkit_include_folder})
elseif(EXISTS ${CMAKE_CURRENT_LIST_DIR}/toolkit_include)
  target_include_directories(memprof_toolkit_page PUBLIC ${CMAKE_CURRENT_LIST_DIR}/toolkit_include)
endif()
if(memprof_libdw_headers AND memprof_libdw_library AND (NOT DEFINED MEMPROF_LIBDW OR MEMPROF_LIBDW))
  target_include_directories(memprof_toolkit SYSTEM PRIVATE ${memprof_libdw_headers})
  target_link_libraries(memprof_toolkit PRIVATE ${memprof_libdw_library})
  target_compile_definitions(memprof_toolkit PRIVATE MEMPROF_TOOLKIT_LIBDW=1)
else()
  message(STATUS "skipped: functions that were inlined, files and lines of stacks, which need elfutils (libdw-dev on Debian)")
  target_compile_definitions(memprof_toolkit PRIVATE MEMPROF_TOOLKIT_LIBDW=0)
endif()
if(memprof_protozero_FOUND)
  add_library(memprof::protozero ALIAS memprof_toolkit)
  target_include_directories(memprof_toolkit SYSTEM PUBLIC ${memprof_protozero_headers})
endif()
set(memprof_toolkit_FOUND TRUE)
