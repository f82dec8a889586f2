# Each header is compiled alone, as part of `all`: CMake writes one translation unit a header of the FILE_SET.
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/memprof/*.hpp)
if(NOT MEMPROF_JSON)
  list(FILTER public_headers EXCLUDE REGEX "/(profile/(json[a-z_]*|reflect)|report/[a-z_]*json)\\.hpp$")
endif()

if(NOT MEMPROF_TORCH)
  list(FILTER public_headers EXCLUDE REGEX "/backend/torch[a-z_/]*\\.hpp$")
else()
  list(FILTER public_headers INCLUDE REGEX "/backend/torch[a-z_/]*\\.hpp$")
  list(FILTER public_headers EXCLUDE REGEX "/backend/torch_cuda\\.hpp$") # needs the CUDA toolkit's headers as well
endif()

add_library(memprof_headers INTERFACE)
target_sources(memprof_headers INTERFACE
  FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
if(MEMPROF_JSON)
  target_link_libraries(memprof_headers INTERFACE memprof::json)
else()
  target_link_libraries(memprof_headers INTERFACE memprof::memprof)
endif()
if(MEMPROF_TORCH)
  target_link_libraries(memprof_headers INTERFACE memprof::torch)
endif()
set_target_properties(memprof_headers PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)

# The generated target is not part of `all` by itself.
add_custom_target(every_header_stands_alone ALL)
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL
  add_dependencies every_header_stands_alone memprof_headers_verify_interface_header_sets)
if(MEMPROF_TORCH)
  # Each would take ten seconds for libtorch's own headers: what a header includes of those is not verified.
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL
    target_precompile_headers memprof_headers_verify_interface_header_sets PRIVATE <torch/torch.h>)
endif()
