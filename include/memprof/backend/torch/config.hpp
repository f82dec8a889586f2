#pragma once

#include <memprof/backend/torch/version.hpp>

/// @file
/// The macro that a user of libtorch may set, as those of <memprof/config.hpp>.

/// `MEMPROF_TORCH_SEPARATE_COMPILATION`: 0 (default) is header-only. 1 compiles what records and simulates libtorch in a single
/// file of the program, which includes <memprof/torch_implementation.hpp>. The value must be the same in all translation units of
/// a program. CMake: link `memprof::torch_compiled`, which does both.
#ifndef MEMPROF_TORCH_SEPARATE_COMPILATION
#define MEMPROF_TORCH_SEPARATE_COMPILATION 0
#endif

// As MEMPROF_SEPARABLE, for <memprof/torch_implementation.hpp>.
#if MEMPROF_TORCH_SEPARATE_COMPILATION
#define MEMPROF_TORCH_SEPARABLE
#else
#define MEMPROF_TORCH_SEPARABLE inline
#endif
