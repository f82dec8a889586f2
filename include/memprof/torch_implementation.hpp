#pragma once

/// @file
/// Implements what the headers on libtorch leave out if `MEMPROF_TORCH_SEPARATE_COMPILATION` is 1: captures of libtorch,
/// annotations, and NO_DISPATCH with its rules. Include it in exactly one .cpp of the program, and of each shared library that
/// uses memprof with libtorch; or link `memprof::torch_compiled` instead.
///
/// @code
/// // memprof_torch.cpp; all files are compiled with -DMEMPROF_TORCH_SEPARATE_COMPILATION=1
/// #include <memprof/torch_implementation.hpp>
/// @endcode

#include <memprof/backend/torch/capture/implementation.hpp>
#include <memprof/backend/torch/simulation/implementation.hpp>
