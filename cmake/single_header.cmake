# Tests include headers of the library by their names (<memprof/trace/label.hpp>), of which there is one in single_include/. Each of
# the others gets a stand-in that includes that one, so the same tests compile against either.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(stand_ins ${PROJECT_BINARY_DIR}/single_header_stand_ins)
file(REMOVE_RECURSE ${stand_ins})
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.hpp)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/single_header.py --stand-ins ${stand_ins}
  COMMAND_ERROR_IS_FATAL ANY)

# The single header cannot be compiled apart.
if(TARGET memprof_toolkit)
  set_target_properties(memprof_toolkit_page PROPERTIES LINK_LIBRARIES memprof::json INTERFACE_LINK_LIBRARIES memprof::json)
endif()

set_target_properties(memprof PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/single_include;${stand_ins}>$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
