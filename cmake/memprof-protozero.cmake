# memprof::protozero: memprof with <memprof/format/xplane.hpp> and what it is made of. One file for both roads: add_subdirectory
# (through the option MEMPROF_PROTOZERO) and find_package(memprof COMPONENTS protozero). Sets memprof_protozero_FOUND.
if(TARGET memprof::protozero)
  set(memprof_protozero_FOUND TRUE)
  return()
endif()

set(memprof_protozero_FOUND FALSE)
set(memprof_protozero_NOT_FOUND_MESSAGE
  "protozero was not found (Debian: libprotozero-dev); set memprof_protozero_headers or CMAKE_PREFIX_PATH")
# It is headers alone, and has no package file.
find_path(memprof_protozero_headers protozero/varint.hpp)
mark_as_advanced(memprof_protozero_headers)
if(memprof_protozero_headers)
  add_library(memprof_protozero INTERFACE)
  add_library(memprof::protozero ALIAS memprof_protozero)
  target_link_libraries(memprof_protozero INTERFACE memprof::memprof)
  target_include_directories(memprof_protozero SYSTEM INTERFACE ${memprof_protozero_headers})
  set(memprof_protozero_FOUND TRUE)
endif()
