# memprof::torch_cuda: memprof::torch with <memprof/backend/torch_cuda.hpp>. To be included after memprof-torch.cmake.
#
# Needs a libtorch that was built with CUDA, and the headers of its CUDA runtime: from a CUDA toolkit, or from the packages that
# the wheels of libtorch bring along. No compiler for CUDA. Where something is missing there is no target, and
# memprof_torch_cuda_NOT_FOUND_MESSAGE says what.
if(TARGET memprof::torch_cuda)
  return()
endif()
set(memprof_torch_cuda_FOUND FALSE)
if(NOT TARGET memprof::torch)
  set(memprof_torch_cuda_NOT_FOUND_MESSAGE "${memprof_torch_NOT_FOUND_MESSAGE}")
  return()
endif()

if(TARGET torch_cuda) # of find_package(Torch), which has found CUDA too
  set(torch_cuda_libraries "")
  set(torch_cuda_include_directory "")
else()
  if(TARGET c10) # of find_package(Torch), where memprof-torch.cmake has not looked for the file
    get_target_property(torch_c10 c10 LOCATION)
  else()
    set(torch_c10 ${memprof_torch_c10_library})
  endif()
  cmake_path(GET torch_c10 PARENT_PATH torch_library_directory)
  find_library(memprof_torch_cuda_library torch_cuda HINTS ${torch_library_directory} NO_DEFAULT_PATH)
  find_library(memprof_torch_c10_cuda_library c10_cuda HINTS ${torch_library_directory} NO_DEFAULT_PATH)
  if(NOT memprof_torch_cuda_library OR NOT memprof_torch_c10_cuda_library)
    set(memprof_torch_cuda_NOT_FOUND_MESSAGE "the libtorch that was found was built without CUDA (${torch_library_directory})")
    return()
  endif()
  # <site-packages>/torch/lib and <site-packages>/nvidia/cu13/include, or nvidia/cuda_runtime/include
  file(GLOB wheel_include_directories ${torch_library_directory}/../../nvidia/*/include)
  # The wheels of CUDA 13 have the headers, but not the folder crt that they include, which is the compiler's.
  find_path(memprof_cuda_runtime_include_directory NAMES crt/host_config.h
    HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH ${wheel_include_directories} /usr/local/cuda
    PATH_SUFFIXES include)
  mark_as_advanced(memprof_torch_cuda_library memprof_torch_c10_cuda_library memprof_cuda_runtime_include_directory)
  if(NOT memprof_cuda_runtime_include_directory)
    set(memprof_torch_cuda_NOT_FOUND_MESSAGE
      "cuda_runtime_api.h, with the folder crt beside it, was not found; set CUDAToolkit_ROOT to the folder of a CUDA toolkit, of which only headers are used")
    return()
  endif()
  # Programs name only c10_cuda; torch_cuda registers the kernels when it is loaded, so it must not be left out.
  set(torch_cuda_libraries ${memprof_torch_c10_cuda_library}
    "-Wl,--push-state,--no-as-needed ${memprof_torch_cuda_library} -Wl,--pop-state")
  set(torch_cuda_include_directory ${memprof_cuda_runtime_include_directory})
endif()

add_library(memprof_torch_cuda INTERFACE)
add_library(memprof::torch_cuda ALIAS memprof_torch_cuda)
target_link_libraries(memprof_torch_cuda INTERFACE memprof::torch ${torch_cuda_libraries})
target_include_directories(memprof_torch_cuda SYSTEM INTERFACE ${torch_cuda_include_directory})
set(memprof_torch_cuda_FOUND TRUE)
