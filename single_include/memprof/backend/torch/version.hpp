#pragma once

#include <memprof/memprof.hpp>

#include <torch/version.h>

/// @file
/// The oldest libtorch that the headers below `backend/torch` are written for. They ask for single members (`requires`), not for
/// version numbers, so a newer one needs no entry here.

#if !defined(TORCH_VERSION_MAJOR) || TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 1)
#error "<memprof/backend/torch.hpp> needs libtorch 2.1 or later; without it, leave the header out: all else of memprof works"
#endif
