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

include(catch.cmake)
if(NOT Catch2_FOUND)
  return()
endif()

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

# The prototype of the caching allocator's model is not part of the project; its test is skipped where it is not there.
set(prototypes ${PROJECT_SOURCE_DIR}/../shared/prototypes/cuda)
if(EXISTS ${prototypes}/cca_sim.hpp)
  target_include_directories(memprof_property_caching_allocator_prototype SYSTEM PRIVATE ${prototypes})
  target_compile_definitions(memprof_property_caching_allocator_prototype PRIVATE MEMPROF_CACHING_ALLOCATOR_PROTOTYPE)
endif()

foreach(folder IN ITEMS dso process_life dhat)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endforeach()
