# memprof::json: memprof with <memprof/profile/json.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_JSON) and find_package(memprof COMPONENTS json).
if(TARGET memprof::json)
  return()
endif()

# PFR is part of Boost since 1.75; only its headers are used.
if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json 3.10 CONFIG REQUIRED)
endif()
if(NOT TARGET Boost::headers)
  find_package(Boost 1.75 CONFIG REQUIRED)
endif()

add_library(memprof_json INTERFACE)
add_library(memprof::json ALIAS memprof_json)
target_link_libraries(memprof_json INTERFACE memprof::memprof nlohmann_json::nlohmann_json Boost::headers)
