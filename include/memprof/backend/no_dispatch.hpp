#pragma once

#include <memprof/config.hpp>

#if MEMPROF_ENABLED
#include <memprof/record/registry.hpp>

#include <atomic>
#endif

/// @file
/// NO_DISPATCH: a run that records every allocation with its true size and lifetime but allocates nothing, so that the peak of a
/// step is known before there is memory to hold it. `memory_resource` hands out reserved addresses, and the program skips the
/// work itself: `if (memprof::dispatching()) multiply(a, b, c);`

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Whether allocations are real, so that the program must do the work on them. False during a capture with
/// `run_mode::no_dispatch`, when touching a block of a `memory_resource` ends the program with a message. Costs one load.
[[nodiscard]] inline bool dispatching() noexcept {
  // Relaxed: the mode changes only in `begin_capture` and `end_capture`, which the program orders with its own work.
  return abi_1::process_registry.no_dispatch.load(std::memory_order_relaxed) == 0;
}

}  // namespace enabled
#else
inline namespace disabled {

[[nodiscard]] constexpr bool dispatching() noexcept { return true; }

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
