# Each header is compiled as part of `all`: after no other than those that it includes itself (scripts/header_units.py), or together
# with all others, where that they stand alone is seen elsewhere.
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/memprof/*.hpp)
set(torch_headers ${public_headers})
list(FILTER torch_headers INCLUDE REGEX "/(backend/torch[a-z_/]*|torch_implementation)\\.hpp$")
list(FILTER torch_headers EXCLUDE REGEX "/backend/torch_cuda\\.hpp$") # needs the CUDA toolkit's headers as well

if(MEMPROF_TORCH)
  # Those on libtorch, in some six minutes, which is why the preset torch leaves it out. The units share its precompiled headers,
  # so it is not verified that they include what they use of libtorch.
  set(units)
  foreach(header IN LISTS torch_headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include OUTPUT_VARIABLE name)
    string(MAKE_C_IDENTIFIER ${name} unit)
    file(CONFIGURE OUTPUT torch_headers/${unit}.cpp CONTENT "#include <${name}>\n")
    list(APPEND units ${PROJECT_BINARY_DIR}/torch_headers/${unit}.cpp)
  endforeach()
  add_library(memprof_torch_headers OBJECT ${units})
  target_link_libraries(memprof_torch_headers PRIVATE memprof::torch)
  target_precompile_headers(memprof_torch_headers PRIVATE <torch/torch.h>)
  return()
endif()

list(FILTER public_headers EXCLUDE REGEX "/(backend/torch[a-z_/]*|torch_implementation|backend/cuda_memory_resource|backend/nvtx_counters|check_catch2|check_gtest)\\.hpp$") # tests compile those
if(TARGET memprof::toolkit AND NOT CMAKE_CXX_FLAGS MATCHES "-fno-exceptions") # the headers of its libraries throw
  file(GLOB_RECURSE toolkit_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/toolkit/*.hpp)
  if(NOT TARGET memprof::protozero)
    list(FILTER toolkit_headers EXCLUDE REGEX "/(xla/message|hlo_(reader|shape|memory|attribution|answer_json|program_list)|xplane|xplane_trace)\\.hpp$")
  endif()
endif()
if(NOT MEMPROF_JSON)
  list(FILTER public_headers EXCLUDE REGEX "(/[a-z_]*json[a-z_]*|profile/reflect|record/session(_life|_thread)?)\\.hpp$")
endif()

if(NOT TARGET memprof::zstd)
  list(FILTER public_headers EXCLUDE REGEX "/trace_zstd\\.hpp$")
endif()

if(NOT TARGET memprof::toml)
  list(FILTER public_headers EXCLUDE REGEX "/session_toml\\.hpp$")
endif()

add_library(memprof_headers INTERFACE)
if(MEMPROF_JSON)
  target_link_libraries(memprof_headers INTERFACE memprof::json)
else()
  target_link_libraries(memprof_headers INTERFACE memprof::memprof)
endif()
if(toolkit_headers)
  target_include_directories(memprof_headers INTERFACE ${memprof_toolkit_include_folder})
  if(TARGET memprof::protozero)
    target_include_directories(memprof_headers SYSTEM INTERFACE ${memprof_protozero_headers})
  endif()
endif()
foreach(component IN ITEMS zstd toml)
  if(TARGET memprof::${component})
    target_link_libraries(memprof_headers INTERFACE memprof::${component})
  endif()
endforeach()

set(names ${public_headers} ${toolkit_headers})
list(TRANSFORM names REPLACE "^${PROJECT_SOURCE_DIR}/include/" "")
list(TRANSFORM names REPLACE "^${PROJECT_SOURCE_DIR}/toolkit/" "memprof/toolkit/")
if(MEMPROF_VERIFY_HEADERS STREQUAL "TOGETHER")
  list(TRANSFORM names REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE includes)
  string(CONCAT includes ${includes})
  file(CONFIGURE OUTPUT every_header.cpp CONTENT "${includes}")
  add_library(memprof_every_header OBJECT ${PROJECT_BINARY_DIR}/every_header.cpp)
  target_link_libraries(memprof_every_header PRIVATE memprof_headers)
  return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(folder ${PROJECT_BINARY_DIR}/every_header)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/header_units.py ${folder} ${names}
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB units ${folder}/unit_*.cpp)
add_library(memprof_every_header OBJECT ${units})
target_link_libraries(memprof_every_header PRIVATE memprof_headers)
target_compile_options(memprof_every_header PRIVATE -g0) # nobody debugs them
# The units hang on what includes what.
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers} ${toolkit_headers})
