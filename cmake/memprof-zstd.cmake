# memprof::zstd: memprof with <memprof/trace/trace_zstd.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_ZSTD) and find_package(memprof COMPONENTS zstd). Sets memprof_zstd_FOUND.
if(TARGET memprof::zstd)
  set(memprof_zstd_FOUND TRUE)
  return()
endif()

set(memprof_zstd_FOUND FALSE)
if(NOT TARGET zstd::libzstd_shared AND NOT TARGET zstd::libzstd_static AND NOT TARGET zstd::libzstd)
  find_package(zstd CONFIG QUIET)
endif()
foreach(library IN ITEMS zstd::libzstd zstd::libzstd_shared zstd::libzstd_static)
  if(TARGET ${library} AND NOT memprof_zstd_FOUND)
    add_library(memprof_zstd INTERFACE)
    add_library(memprof::zstd ALIAS memprof_zstd)
    target_link_libraries(memprof_zstd INTERFACE memprof::memprof ${library})
    set(memprof_zstd_FOUND TRUE)
  endif()
endforeach()
