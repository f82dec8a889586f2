# memprof::torch: memprof with <memprof/backend/torch.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_TORCH) and find_package(memprof COMPONENTS torch).
#
# A project that has called find_package(Torch) gets that libtorch. Else it is looked for in Torch_DIR (a folder with
# TorchConfig.cmake), Torch_ROOT and CMAKE_PREFIX_PATH, as find_package would, but without running its configuration: that of the
# usual wheels demands a CUDA toolkit even of programs that use none.
if(TARGET memprof::torch)
  return()
endif()

add_library(memprof_torch INTERFACE)
add_library(memprof::torch ALIAS memprof_torch)
target_link_libraries(memprof_torch INTERFACE memprof::memprof)

if(TARGET torch_cpu AND TARGET c10)
  target_link_libraries(memprof_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(memprof_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(torch_flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(memprof_torch INTERFACE ${torch_flags})
  set(memprof_torch_FOUND TRUE)
  return()
endif()

set(torch_hints ${Torch_ROOT} ${TORCH_ROOT})
if(Torch_DIR)
  cmake_path(ABSOLUTE_PATH Torch_DIR NORMALIZE OUTPUT_VARIABLE torch_root)
  foreach(parent IN ITEMS cmake share torch) # <root>/share/cmake/Torch
    cmake_path(GET torch_root PARENT_PATH torch_root)
  endforeach()
  list(APPEND torch_hints ${torch_root})
endif()
# torch.utils.cmake_prefix_path is <root>/share/cmake.
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND torch_hints ${prefix} ${prefix}/../..)
endforeach()

find_path(memprof_torch_include_directory ATen/ATen.h HINTS ${torch_hints} PATH_SUFFIXES include)
find_path(memprof_torch_api_directory torch/torch.h HINTS ${torch_hints}
  PATH_SUFFIXES include/torch/csrc/api/include)
find_library(memprof_torch_cpu_library torch_cpu HINTS ${torch_hints} PATH_SUFFIXES lib)
find_library(memprof_torch_c10_library c10 HINTS ${torch_hints} PATH_SUFFIXES lib)
mark_as_advanced(memprof_torch_include_directory memprof_torch_api_directory memprof_torch_cpu_library memprof_torch_c10_library)

foreach(part IN ITEMS include_directory api_directory cpu_library c10_library)
  if(NOT memprof_torch_${part})
    set(memprof_torch_FOUND FALSE)
    set(memprof_torch_NOT_FOUND_MESSAGE "libtorch was not found; set Torch_DIR to the folder with its TorchConfig.cmake")
    return()
  endif()
endforeach()
set(memprof_torch_FOUND TRUE)

target_include_directories(memprof_torch SYSTEM INTERFACE
  ${memprof_torch_include_directory} ${memprof_torch_api_directory})
target_link_libraries(memprof_torch INTERFACE ${memprof_torch_cpu_library} ${memprof_torch_c10_library})

# Older wheels were built with the old std::string; a program that disagrees does not link.
cmake_path(GET memprof_torch_include_directory PARENT_PATH torch_root)
set(torch_configuration ${torch_root}/share/cmake/Torch/TorchConfig.cmake)
if(EXISTS ${torch_configuration})
  file(STRINGS ${torch_configuration} torch_abi REGEX "_GLIBCXX_USE_CXX11_ABI=[01]")
  if(torch_abi MATCHES "_GLIBCXX_USE_CXX11_ABI=([01])")
    target_compile_definitions(memprof_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${CMAKE_MATCH_1})
  endif()
endif()
