# memprof::torch_compiled: memprof::torch and memprof::compiled, with captures of libtorch and NO_DISPATCH compiled once, in a static
# library, as memprof::compiled is. To be included after memprof-torch.cmake and memprof-compiled.cmake. Where there is no
# memprof::torch there is no target, and memprof_torch_compiled_NOT_FOUND_MESSAGE says why.
set(memprof_torch_compiled_FOUND FALSE)
if(NOT TARGET memprof::torch)
  set(memprof_torch_compiled_NOT_FOUND_MESSAGE "${memprof_torch_NOT_FOUND_MESSAGE}")
  return()
endif()
set(memprof_torch_compiled_FOUND TRUE)
if(TARGET memprof::torch_compiled)
  return()
endif()

# Two files: a program that only captures has nothing of the simulation.
add_library(memprof_torch_compiled STATIC EXCLUDE_FROM_ALL
  ${CMAKE_CURRENT_LIST_DIR}/memprof_torch.cpp ${CMAKE_CURRENT_LIST_DIR}/memprof_torch_no_dispatch.cpp)
add_library(memprof::torch_compiled ALIAS memprof_torch_compiled)
target_link_libraries(memprof_torch_compiled PUBLIC memprof::compiled memprof::torch)
target_compile_definitions(memprof_torch_compiled PUBLIC MEMPROF_TORCH_SEPARATE_COMPILATION=1)
set_target_properties(memprof_torch_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON) # shared libraries may link it
