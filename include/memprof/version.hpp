#pragma once

// The one place the version is written: CMake and the packages parse these three lines.
#define MEMPROF_VERSION_MAJOR 0
#define MEMPROF_VERSION_MINOR 1
#define MEMPROF_VERSION_PATCH 0

#define MEMPROF_DETAIL_QUOTE(text) #text
#define MEMPROF_DETAIL_VERSION_STRING(major, minor, patch) \
  MEMPROF_DETAIL_QUOTE(major) "." MEMPROF_DETAIL_QUOTE(minor) "." MEMPROF_DETAIL_QUOTE(patch)

namespace memprof {

/// The library's version, "major.minor.patch".
inline constexpr const char* version_string =
    MEMPROF_DETAIL_VERSION_STRING(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH);

}  // namespace memprof

#undef MEMPROF_DETAIL_VERSION_STRING
#undef MEMPROF_DETAIL_QUOTE
