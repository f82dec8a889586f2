#pragma once

/// @file
/// The half of <memprof/torch_implementation.hpp> for <memprof/backend/torch_no_dispatch.hpp>. An object of its own in
/// `memprof::torch_compiled`: it registers a CUDA with libtorch, which only programs that simulate shall have.

// As in <memprof/implementation.hpp>.
#if defined(MEMPROF_ENABLED) && !MEMPROF_ENABLED
#undef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

#include <memprof/backend/torch/version.hpp>

#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/simulation/simulation_control.hpp>
#include <memprof/backend/torch/simulation/torch_call_tensors.hpp>

#if MEMPROF_TORCH_SEPARATE_COMPILATION && !MEMPROF_ENABLED
#error "include <memprof/torch_implementation.hpp> before any other header of memprof"
#endif
