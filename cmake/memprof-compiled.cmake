# memprof::compiled: memprof::memprof with captures, profiles and reports compiled once, in a static library, so that all other
# files of a program compile in a fraction of the time. It is built with the program, by the program's compiler and flags. One
# file for both ways: add_subdirectory, and find_package(memprof COMPONENTS compiled).
set(memprof_compiled_FOUND TRUE)
if(TARGET memprof::compiled)
  return()
endif()

add_library(memprof_compiled STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/memprof.cpp)
add_library(memprof::compiled ALIAS memprof_compiled)
target_link_libraries(memprof_compiled PUBLIC memprof::memprof)
target_compile_definitions(memprof_compiled PUBLIC MEMPROF_SEPARATE_COMPILATION=1)
set_target_properties(memprof_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON) # shared libraries may link it
