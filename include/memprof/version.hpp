#pragma once

// The one place the version is written: CMake and the packages parse these three lines.
#define MEMPROF_VERSION_MAJOR 0
#define MEMPROF_VERSION_MINOR 1
#define MEMPROF_VERSION_PATCH 0

#define MEMPROF_DETAIL_QUOTE(text) #text
#define MEMPROF_DETAIL_VERSION_STRING(major, minor, patch) \
  MEMPROF_DETAIL_QUOTE(major) "." MEMPROF_DETAIL_QUOTE(minor) "." MEMPROF_DETAIL_QUOTE(patch)

#define MEMPROF_DETAIL_PASTE(major, minor, patch, suffix) v##major##_##minor##_##patch##suffix
#define MEMPROF_DETAIL_ABI(major, minor, patch, suffix) MEMPROF_DETAIL_PASTE(major, minor, patch, suffix)

/// The inline namespace of all code: two versions of the library in one program, or translation units with and without
/// exceptions, share no function. They only share the registry (record/registry.hpp).
#if defined(__cpp_exceptions)
#define MEMPROF_ABI MEMPROF_DETAIL_ABI(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH, )
#else
#define MEMPROF_ABI MEMPROF_DETAIL_ABI(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH, _noexcept)
#endif

namespace memprof::inline MEMPROF_ABI {

/// The library's version as a single number.
inline constexpr unsigned version_number =
    MEMPROF_VERSION_MAJOR * 1'000'000 + MEMPROF_VERSION_MINOR * 1'000 + MEMPROF_VERSION_PATCH;

/// The library's version, "major.minor.patch".
inline constexpr const char* version_string =
    MEMPROF_DETAIL_VERSION_STRING(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH);

}  // namespace memprof::inline MEMPROF_ABI

#undef MEMPROF_DETAIL_VERSION_STRING
#undef MEMPROF_DETAIL_QUOTE
