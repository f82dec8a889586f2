#pragma once

/// @file
/// The half of <memprof/torch_implementation.hpp> for <memprof/backend/torch.hpp>.

// As in <memprof/implementation.hpp>.
#if defined(MEMPROF_ENABLED) && !MEMPROF_ENABLED
#undef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

#include <memprof/backend/torch/version.hpp>

#include <memprof/backend/torch/capture/annotate_module.hpp>
#include <memprof/backend/torch/capture/annotate_optimizer.hpp>
#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#include <memprof/backend/torch/capture/observe_operators.hpp>
#include <memprof/backend/torch/capture/operator_counter.hpp>
#include <memprof/backend/torch/capture/torch_control.hpp>
#include <memprof/backend/torch/config.hpp>

#if MEMPROF_TORCH_SEPARATE_COMPILATION && !MEMPROF_ENABLED
#error "include <memprof/torch_implementation.hpp> before any other header of memprof"
#endif
