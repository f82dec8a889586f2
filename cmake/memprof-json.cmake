# memprof::json: memprof with <memprof/profile/json.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_JSON) and find_package(memprof COMPONENTS json).
#
# Where nlohmann/json is missing there is no target, and memprof_json_NOT_FOUND_MESSAGE says so.
set(memprof_json_FOUND TRUE)
if(TARGET memprof::json)
  return()
endif()

if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json 3.10 CONFIG QUIET)
endif()
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(memprof_json_FOUND FALSE)
  set(memprof_json_NOT_FOUND_MESSAGE
    "nlohmann_json 3.10 or later was not found (Debian: nlohmann-json3-dev); set nlohmann_json_DIR or CMAKE_PREFIX_PATH")
  return()
endif()

add_library(memprof_json INTERFACE)
add_library(memprof::json ALIAS memprof_json)
target_link_libraries(memprof_json INTERFACE memprof::memprof nlohmann_json::nlohmann_json)
