#pragma once

#include <memprof/memprof.hpp>

#include <vector>

/// @file
/// Captures with the backends for libtorch. Here and not in each file of tests, because their templates take long to compile.

/// `memprof::begin_capture<memprof::torch_backend>`
[[nodiscard]] memprof::capture_guard begin_torch(const memprof::capture_options& options = {});
/// `memprof::begin_capture<memprof::torch_allocations>`
[[nodiscard]] memprof::capture_guard begin_torch_allocations(const memprof::capture_options& options = {});
/// `memprof::begin_capture<memprof::torch_no_dispatch>`
[[nodiscard]] memprof::capture_guard begin_no_dispatch(const memprof::capture_options& options = {});

/// What was estimated of memory, without values that were read and not known.
[[nodiscard]] std::vector<memprof::approximated_operation> estimates_of(const memprof::profile& profile);
/// Values that were read and not known.
[[nodiscard]] std::vector<memprof::approximated_operation> reads_of(const memprof::profile& profile);
