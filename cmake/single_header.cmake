# Tests include single headers of the library (<memprof/trace/label.hpp>), which are not there in single_include/. Each one that
# was merged into the single header gets a stand-in that includes it, so the same tests compile against either.
set(stand_ins ${PROJECT_BINARY_DIR}/single_header_stand_ins)
file(REMOVE_RECURSE ${stand_ins})
file(GLOB_RECURSE header_names CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.hpp)
foreach(name IN LISTS header_names)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/single_include/${name})
    file(WRITE ${stand_ins}/${name} "#pragma once\n#include <memprof/memprof.hpp>\n")
  endif()
endforeach()

set_target_properties(memprof PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/single_include;${stand_ins}>$<INSTALL_INTERFACE:include>")
