#pragma once

#include <memprof/version.hpp>

#if __cplusplus < 202002L
#error "memprof needs C++20: compile with -std=c++20 or later (CMake: link memprof::memprof, which requires it)"
#include <the compiler stops here>  // a missing file ends the compilation, so no page of errors follows
#endif

/// @file
/// Every macro a user may set. Set them for the whole program (`target_compile_definitions`), before any include.

/// `MEMPROF_ENABLED`: 1 (default) records; 0 turns every call into an empty inline function in another inline namespace, so that
/// the compiler leaves no instruction behind. Translation units with different values may be linked together.
#ifndef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

/// `MEMPROF_SEPARATE_COMPILATION`: 0 (default) is header-only. 1 compiles captures, profiles and reports in a single file of the
/// program, which includes <memprof/implementation.hpp>; all others compile in a fraction of the time. The value must be the same
/// in all translation units of a program. CMake: link `memprof::compiled`, which does both.
#ifndef MEMPROF_SEPARATE_COMPILATION
#define MEMPROF_SEPARATE_COMPILATION 0
#endif

// Marks functions defined by <memprof/implementation.hpp> if it is used, and by every translation unit otherwise.
#if MEMPROF_SEPARATE_COMPILATION
#define MEMPROF_SEPARABLE
#else
#define MEMPROF_SEPARABLE inline
#endif

namespace memprof::inline MEMPROF_ABI {

namespace extend {}
namespace detail {
using namespace extend;  // the implementation is made of the same parts
}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
