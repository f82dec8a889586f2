#pragma once

#include <cstddef>  // says which std::string libstdc++ has

// The one place the version is written: CMake and the packages parse these three lines.
#define MEMPROF_VERSION_MAJOR 0
#define MEMPROF_VERSION_MINOR 1
#define MEMPROF_VERSION_PATCH 0

#define MEMPROF_DETAIL_QUOTE(text) #text
#define MEMPROF_DETAIL_VERSION_STRING(major, minor, patch) \
  MEMPROF_DETAIL_QUOTE(major) "." MEMPROF_DETAIL_QUOTE(minor) "." MEMPROF_DETAIL_QUOTE(patch)

#define MEMPROF_DETAIL_PASTE(major, minor, patch, exceptions, string) v##major##_##minor##_##patch##exceptions##string
#define MEMPROF_DETAIL_ABI(major, minor, patch, exceptions, string) MEMPROF_DETAIL_PASTE(major, minor, patch, exceptions, string)

#if defined(__cpp_exceptions)
#define MEMPROF_DETAIL_EXCEPTIONS
#else
#define MEMPROF_DETAIL_EXCEPTIONS _noexcept
#endif
#if defined(__GLIBCXX__) && !_GLIBCXX_USE_CXX11_ABI
#define MEMPROF_DETAIL_STRING _former_string
#else
#define MEMPROF_DETAIL_STRING
#endif

/// The inline namespace of all code: two versions of the library in one program, or translation units with and without
/// exceptions, or with the two kinds of libstdc++'s `std::string`, share no function. They only share the registry
/// (record/registry.hpp).
#define MEMPROF_ABI                                                                                                  \
  MEMPROF_DETAIL_ABI(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH, MEMPROF_DETAIL_EXCEPTIONS, \
                     MEMPROF_DETAIL_STRING)

namespace memprof::inline MEMPROF_ABI {

/// The library's version as a single number.
inline constexpr unsigned version_number =
    MEMPROF_VERSION_MAJOR * 1'000'000 + MEMPROF_VERSION_MINOR * 1'000 + MEMPROF_VERSION_PATCH;

/// The library's version, "major.minor.patch".
inline constexpr const char* version_string =
    MEMPROF_DETAIL_VERSION_STRING(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH);

namespace detail {

inline constexpr unsigned former_string_bit = 1U << 31;

/// What parts of a process have in common that know each other's types.
#if defined(__GLIBCXX__) && !_GLIBCXX_USE_CXX11_ABI
inline constexpr unsigned part_version = version_number | former_string_bit;
#else
inline constexpr unsigned part_version = version_number;
#endif

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI

#undef MEMPROF_DETAIL_VERSION_STRING
#undef MEMPROF_DETAIL_QUOTE
