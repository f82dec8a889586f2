#pragma once

#include <memprof/backend/torch/config.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

/// Observes the beginning and end of operators through libtorch's callbacks.
class operator_scopes {
 public:
  /// Starts observing, on all threads. Operators that are already running are ignored. Throws `memprof::error` if another
  /// instance is observing: each operator would open two scopes. In a child after `fork`, it takes the place of its parent's.
  void begin();
  /// The end of running operators is still observed.
  void end() noexcept;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#if !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/observe_operators.hpp>
#endif
