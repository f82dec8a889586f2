# find_package(memprof)                            memprof::memprof
# find_package(memprof COMPONENTS compiled)        and memprof::compiled
# find_package(memprof COMPONENTS json)            and memprof::json
# find_package(memprof COMPONENTS zstd)            and memprof::zstd
# find_package(memprof COMPONENTS toml)            and memprof::toml
# find_package(memprof COMPONENTS toolkit)         and memprof::toolkit
# find_package(memprof COMPONENTS protozero)       and memprof::toolkit, which then has a second name, memprof::protozero
# find_package(memprof COMPONENTS torch)           and memprof::torch
# find_package(memprof COMPONENTS torch_compiled)  and memprof::torch, memprof::compiled and memprof::torch_compiled
# find_package(memprof COMPONENTS torch_cuda)      and both memprof::torch and memprof::torch_cuda
include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)

include(${CMAKE_CURRENT_LIST_DIR}/memprof-targets.cmake)

foreach(component IN LISTS memprof_FIND_COMPONENTS)
  if(component STREQUAL "compiled")
    include(${CMAKE_CURRENT_LIST_DIR}/memprof-compiled.cmake)
  elseif(component STREQUAL "json")
    include(${CMAKE_CURRENT_LIST_DIR}/memprof-json.cmake)
  elseif(component STREQUAL "zstd")
    include(${CMAKE_CURRENT_LIST_DIR}/memprof-zstd.cmake)
  elseif(component STREQUAL "toml")
    include(${CMAKE_CURRENT_LIST_DIR}/memprof-toml.cmake)
  elseif(component MATCHES "^(toolkit|protozero)$")
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/memprof-toolkit.cmake)
      include(${CMAKE_CURRENT_LIST_DIR}/memprof-toolkit.cmake)
    else()
      set(memprof_${component}_FOUND FALSE)
      set(memprof_${component}_NOT_FOUND_MESSAGE "memprof is installed in ${CMAKE_CURRENT_LIST_DIR} without its toolkit; install it from the same version: cmake --install <build> --component toolkit, Conan's option toolkit, vcpkg's feature toolkit, or Debian's libmemprof-toolkit-dev")
    endif()
  elseif(component MATCHES "^torch(_cuda|_compiled)?$")
    include(${CMAKE_CURRENT_LIST_DIR}/memprof-torch.cmake)
    if(component STREQUAL "torch_cuda")
      include(${CMAKE_CURRENT_LIST_DIR}/memprof-torch-cuda.cmake)
    elseif(component STREQUAL "torch_compiled")
      include(${CMAKE_CURRENT_LIST_DIR}/memprof-compiled.cmake)
      include(${CMAKE_CURRENT_LIST_DIR}/memprof-torch-compiled.cmake)
    endif()
  else()
    set(memprof_${component}_FOUND FALSE)
    set(memprof_${component}_NOT_FOUND_MESSAGE "memprof has no component \"${component}\"; it has: compiled, json, protozero, toml, toolkit, torch, torch_compiled, torch_cuda, zstd")
  endif()
  if(NOT memprof_${component}_FOUND AND memprof_FIND_REQUIRED_${component})
    set(memprof_FOUND FALSE)
    set(memprof_NOT_FOUND_MESSAGE "${memprof_${component}_NOT_FOUND_MESSAGE}")
  endif()
endforeach()
