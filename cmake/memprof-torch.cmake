# memprof::torch: memprof with <memprof/backend/torch.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_TORCH) and find_package(memprof COMPONENTS torch).
#
# A project that has called find_package(Torch) gets that libtorch. Else it is looked for in Torch_DIR (a folder with
# TorchConfig.cmake), Torch_ROOT and CMAKE_PREFIX_PATH, or the environment variables of these names, as find_package would, but without running its configuration: that of the
# usual wheels demands a CUDA toolkit even of programs that use none.
#
# Where it is missing or too old, there is no target, and memprof_torch_NOT_FOUND_MESSAGE says what to do.
if(TARGET memprof::torch)
  return()
endif()
set(memprof_torch_FOUND FALSE)

if(TARGET torch_cpu AND TARGET c10)
  set(torch_include_directories ${TORCH_INCLUDE_DIRS})
  set(torch_libraries ${TORCH_LIBRARIES})
  separate_arguments(torch_options NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
  get_target_property(torch_c10 c10 LOCATION)
else()
  set(torch_hints ${Torch_ROOT} ${TORCH_ROOT} $ENV{Torch_ROOT} $ENV{TORCH_ROOT})
  set(torch_directory "${Torch_DIR}")
  if(NOT torch_directory)
    set(torch_directory "$ENV{Torch_DIR}")
  endif()
  if(torch_directory)
    cmake_path(ABSOLUTE_PATH torch_directory NORMALIZE OUTPUT_VARIABLE torch_root)
    foreach(parent IN ITEMS cmake share torch) # <root>/share/cmake/Torch
      cmake_path(GET torch_root PARENT_PATH torch_root)
    endforeach()
    list(APPEND torch_hints ${torch_root})
  endif()
  # torch.utils.cmake_prefix_path is <root>/share/cmake.
  string(REPLACE ":" ";" torch_prefixes "$ENV{CMAKE_PREFIX_PATH}")
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH torch_prefixes)
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
      set(memprof_torch_NOT_FOUND_MESSAGE "libtorch was not found; set Torch_DIR to the folder with its TorchConfig.cmake")
      return()
    endif()
  endforeach()
  set(torch_include_directories ${memprof_torch_include_directory} ${memprof_torch_api_directory})
  set(torch_libraries ${memprof_torch_cpu_library} ${memprof_torch_c10_library})
  set(torch_options "")
  set(torch_c10 ${memprof_torch_c10_library})
endif()

# Newer ones have the numbers in the second header, which the first includes.
set(torch_version "")
foreach(directory IN LISTS torch_include_directories)
  foreach(header IN ITEMS torch/version.h torch/headeronly/version.h)
    if(torch_version STREQUAL "" AND EXISTS ${directory}/${header})
      file(STRINGS ${directory}/${header} torch_numbers REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX MATCHALL "[0-9]+" torch_numbers "${torch_numbers}")
      list(JOIN torch_numbers "." torch_version)
    endif()
  endforeach()
endforeach()
if(torch_version AND torch_version VERSION_LESS 2.1)
  set(memprof_torch_NOT_FOUND_MESSAGE
    "libtorch ${torch_version} was found (${torch_c10}), but memprof::torch needs 2.1 or later; set Torch_DIR to the folder with \
the TorchConfig.cmake of a newer one")
  # So that another Torch_DIR is heeded.
  foreach(part IN ITEMS include_directory api_directory cpu_library c10_library)
    unset(memprof_torch_${part} CACHE)
  endforeach()
  return()
endif()

add_library(memprof_torch INTERFACE)
add_library(memprof::torch ALIAS memprof_torch)
target_include_directories(memprof_torch SYSTEM INTERFACE ${torch_include_directories})
target_link_libraries(memprof_torch INTERFACE memprof::memprof ${torch_libraries})
target_compile_options(memprof_torch INTERFACE ${torch_options})
set(memprof_torch_FOUND TRUE)

# The usual libtorch up to 2.6 was built with the std::string of GCC 4, and a program that has the other one does not link. Which
# one it is stands in the names of its functions. A program that insists on its own gets an error when it is compiled (version.hpp).
set(memprof_torch_abi "")
if(EXISTS "${torch_c10}")
  file(STRINGS ${torch_c10} torch_names REGEX "c105ErrorC[12]ENS_14SourceLocationE(Ss|NSt7__cxx1112)")
  if(torch_names MATCHES "NSt7__cxx1112")
    set(memprof_torch_abi 1)
  elseif(torch_names)
    set(memprof_torch_abi 0)
  endif()
endif()
if(NOT memprof_torch_abi STREQUAL "")
  target_compile_definitions(memprof_torch INTERFACE
    _GLIBCXX_USE_CXX11_ABI=${memprof_torch_abi} MEMPROF_TORCH_CXX11_ABI=${memprof_torch_abi})
endif()
