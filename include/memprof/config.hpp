#pragma once

#include <memprof/version.hpp>

#if __cplusplus < 202002L
#error "memprof needs C++20: compile with -std=c++20 or later (CMake: link memprof::memprof, which asks for it)"
#include <the compiler stops here>  // a file that is missing ends the compilation: no page of errors follows
#endif

/// @file
/// Every macro a user may set. Set them for the whole program (`target_compile_definitions`), before any include.

/// `MEMPROF_ENABLED`: 1 (default) records; 0 turns every call into an empty inline function of another inline namespace, so
/// that the compiler leaves no instruction behind. Translation units with different values may be linked together.
#ifndef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

/// `MEMPROF_SEPARATE_COMPILATION`: 0 (default) is header-only. 1 leaves captures, profiles and reports to one file of the
/// program, which includes <memprof/implementation.hpp>; all others compile in a fraction of the time. Of equal value in all
/// units of a program. CMake: link `memprof::compiled`, which does both.
#ifndef MEMPROF_SEPARATE_COMPILATION
#define MEMPROF_SEPARATE_COMPILATION 0
#endif

// Before what <memprof/implementation.hpp> defines where there is one, and every unit elsewhere.
#if MEMPROF_SEPARATE_COMPILATION
#define MEMPROF_SEPARABLE
#else
#define MEMPROF_SEPARABLE inline
#endif
