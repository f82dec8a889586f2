#pragma once

#include <memprof/memprof.hpp>


#include <torch/version.h>

#include <version>  // _GLIBCXX_USE_CXX11_ABI

/// @file
/// What the headers below `backend/torch` ask of libtorch, and nothing else: include it before any other header of libtorch, so
/// that its message is the first. They ask for single members (`requires`), not for version numbers, so a newer one needs no
/// entry.

#if !defined(TORCH_VERSION_MAJOR) || TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 1)
#error "<memprof/backend/torch.hpp> needs libtorch 2.1 or later; without it, leave the header out: all else of memprof works"
#endif

// The target memprof::torch tells which std::string libtorch was built with.
#if defined(MEMPROF_TORCH_CXX11_ABI) && defined(_GLIBCXX_USE_CXX11_ABI)
#if MEMPROF_TORCH_CXX11_ABI != _GLIBCXX_USE_CXX11_ABI
#error "libtorch was built with another _GLIBCXX_USE_CXX11_ABI than this file; leave that macro to the target memprof::torch"
#endif
#endif
