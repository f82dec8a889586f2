#pragma once

#include <memprof/memprof.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/fact/unknown_read.hpp>

#include <vector>

/// @file
/// Captures with the backends for libtorch. Here and not in each file of tests, because their templates take long to compile.

/// `memprof::begin_capture<memprof::torch_backend>`
[[nodiscard]] memprof::capture_guard begin_torch(const memprof::capture_options& options = {});
/// `memprof::begin_capture<memprof::torch_allocations>`
[[nodiscard]] memprof::capture_guard begin_torch_allocations(const memprof::capture_options& options = {});
/// `memprof::begin_capture<memprof::torch_no_dispatch>`
[[nodiscard]] memprof::capture_guard begin_no_dispatch(const memprof::capture_options& options = {});

/// What was estimated.
[[nodiscard]] memprof::vector<memprof::approximated_operation> estimates_of(const memprof::profile& profile);
/// Sizes that were assumed.
[[nodiscard]] memprof::vector<memprof::assumed_size> sizes_of(const memprof::profile& profile);
/// Values that were read and not known.
[[nodiscard]] memprof::vector<memprof::unknown_read> reads_of(const memprof::profile& profile);
/// What `track_pytorch_ops` counted.
[[nodiscard]] memprof::vector<memprof::pytorch_operation> operators_of(const memprof::profile& profile);
