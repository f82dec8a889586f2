#pragma once

#include <memprof/backend/torch/config.hpp>

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Counts PyTorch's operators until the end of the scope. See `track_pytorch_ops`.
class [[nodiscard]] pytorch_ops_guard {
 public:
  pytorch_ops_guard();
  pytorch_ops_guard(const pytorch_ops_guard&) = delete;
  pytorch_ops_guard& operator=(const pytorch_ops_guard&) = delete;
  ~pytorch_ops_guard();
};

/// Counts the operators that libtorch runs until the end of the scope, on all threads, by name and by the shapes of their inputs:
/// calls, time, and bytes allocated minus bytes freed, without nested operators. They become rows of `pytorch_operation` in the
/// profile's facts if the capture has `torch_backend` or `torch_allocations`.
///
/// If libtorch has CUDA, events before and after each call in its current stream measure the time between them on the device.
/// Reading a profile then waits for the device, so do not read one while a CUDA graph is being captured. Between two profiles, at
/// most 262,144 calls are timed on the device; a row says how many were not.
///
/// Shapes are recorded only in programs compiled with NDEBUG, as release builds are: without it, libtorch's headers do not
/// provide them. Keeps 4096 rows and sums further calls in a row of their own. Cost: about 300 ns per operator, a table look-up
/// for each allocation and free, and now one pass over the live blocks. Nests, and several threads may hold a guard.
[[nodiscard]] inline pytorch_ops_guard track_pytorch_ops() { return {}; }

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] pytorch_ops_guard {
 public:
  // Not trivial, so that an unused guard causes no warning.
  ~pytorch_ops_guard() {}
};

[[nodiscard]] inline pytorch_ops_guard track_pytorch_ops() noexcept { return {}; }

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/operator_counter.hpp>
#endif
