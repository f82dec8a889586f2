#pragma once

#include <memprof/backend/torch/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Observes the beginning and end of operators through libtorch's callbacks.
class operator_scopes {
 public:
  /// Starts observing, on all threads. Operators that are already running are ignored. Throws `memprof::error` if another
  /// instance is observing: each operator would open two scopes.
  void begin();
  /// The end of running operators is still observed.
  void end() noexcept;

 private:
  std::uint64_t handle_ = 0;  ///< libtorch's `CallbackHandle`; 0: none
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#if !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/observe_operators.hpp>
#endif
