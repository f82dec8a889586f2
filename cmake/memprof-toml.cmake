# memprof::toml: memprof with <memprof/record/session_toml.hpp>. One file for both roads: add_subdirectory (through the option
# MEMPROF_TOML) and find_package(memprof COMPONENTS toml). Sets memprof_toml_FOUND.
if(TARGET memprof::toml)
  set(memprof_toml_FOUND TRUE)
  return()
endif()

set(memprof_toml_FOUND FALSE)
set(memprof_toml_NOT_FOUND_MESSAGE
  "toml++ was not found (Debian: libtomlplusplus-dev); set tomlplusplus_DIR or CMAKE_PREFIX_PATH")
if(NOT TARGET tomlplusplus::tomlplusplus)
  find_package(tomlplusplus CONFIG QUIET)
endif()
if(TARGET tomlplusplus::tomlplusplus)
  add_library(memprof_toml INTERFACE)
  add_library(memprof::toml ALIAS memprof_toml)
  target_link_libraries(memprof_toml INTERFACE memprof::memprof)
  # Its headers only: Debian's library has nothing for programs without exceptions.
  get_target_property(toml_headers tomlplusplus::tomlplusplus INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(memprof_toml SYSTEM INTERFACE ${toml_headers})
  set(memprof_toml_FOUND TRUE)
endif()
