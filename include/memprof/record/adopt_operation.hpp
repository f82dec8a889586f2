#pragma once

#include <memprof/config.hpp>

#if MEMPROF_ENABLED
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <atomic>
#include <cstdint>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// An operation that was open on a thread, to be adopted by others: a few numbers, copied freely, valid for ever. One that is
/// default-constructed names no operation.
struct operation_handle {
  std::uint32_t capture = 0;  ///< number of the capture in which it was open; 0: none
  std::uint32_t thread = 0;   ///< number of its thread
  std::uint32_t number = 0;   ///< among the operations of its thread
  extend::label name = 0;     ///< by which it is found if it has ended

  bool operator==(const operation_handle&) const = default;
  /// Whether it names an operation.
  [[nodiscard]] explicit operator bool() const noexcept { return number != 0; }
};

/// The innermost operation that is open on this thread; none if there is none or no capture is active. Costs a few loads, and may
/// be called in a signal handler.
[[nodiscard]] inline operation_handle current_operation() noexcept {
  const detail::thread_slot& self = abi_1::this_thread;
  const std::uint32_t capture = abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
  if (capture == 0 || self.innermost_scope == 0 || self.ring->thread == 0) return {};
  return {capture, self.ring->thread, self.innermost_scope, self.innermost_name};
}

/// Until the end of the scope, this thread works for another thread's operation. Neither copyable nor movable.
class [[nodiscard]] adopted_operation {
 public:
  explicit adopted_operation(const operation_handle& handle) noexcept
      : capture_(abi_1::process_registry.active_capture.load(std::memory_order_relaxed)) {
    detail::thread_slot& self = abi_1::this_thread;
    const bool is_own = handle.number == self.innermost_scope && handle.thread == self.ring->thread;
    if (capture_ == 0 || handle.capture != capture_ || handle.number == 0 || is_own) {
      capture_ = 0;
      return;
    }
    if (!detail::is_outside(self)) [[unlikely]] {
      // In a signal handler that interrupted the profiler: neither end is recorded.
      detail::note_reentrant(abi_1::process_registry, self.doing().load(std::memory_order_relaxed));
      capture_ = 0;
      return;
    }
    const std::uint64_t adopted = detail::scope_address(handle.number, handle.thread);
    detail::begin_operation(open_, self, handle.name, 0, adopted);
    self.innermost_name = handle.name;
    // Acquire pairs with the release of the one who listens.
    if (const auto* const listener = abi_1::process_run_listener.load(std::memory_order_acquire)) [[unlikely]]
      detail::tell_operation_adopted(*listener, open_, adopted);
  }
  adopted_operation(const adopted_operation&) = delete;
  adopted_operation& operator=(const adopted_operation&) = delete;
  ~adopted_operation() {
    if (capture_ == 0) return;
    // Acquire, as above.
    if (const auto* const listener = abi_1::process_run_listener.load(std::memory_order_acquire)) [[unlikely]]
      listener->operation_ended(detail::id_for_run(open_));
    detail::end_operation(open_, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) == capture_);
  }

 private:
  std::uint32_t capture_;
  extend::open_operation open_;
};

/// Makes this thread work for another thread's operation until the end of the scope: what it allocates and frees counts there,
/// also in that invocation's delta and peak, and operations that it tracks are nested in it. Nests, and hides the operations that
/// were open on this thread.
///
/// Does nothing if the handle names no operation, or one of another capture, or if no capture is active. If the operation ends
/// first, the rest belongs to its path still, but to the invocations around it only. If it had ended before this call, its path
/// is known only if it is the sole one that ends with its name; otherwise an outermost operation of that name stands for it.
/// Costs two events; never throws.
[[nodiscard("hold the guard: the adoption ends when it is destroyed")]] inline adopted_operation adopt_operation(
    const operation_handle& handle) noexcept {
  return adopted_operation{handle};
}

}  // namespace enabled

#else
inline namespace disabled {

struct operation_handle {
  bool operator==(const operation_handle&) const = default;
  [[nodiscard]] explicit operator bool() const noexcept { return false; }
};

[[nodiscard]] inline operation_handle current_operation() noexcept { return {}; }

class [[nodiscard]] adopted_operation {
 public:
  explicit adopted_operation(const operation_handle&) noexcept {}
  adopted_operation(const adopted_operation&) = delete;
  adopted_operation& operator=(const adopted_operation&) = delete;
  // Non-trivial, so that an unused guard draws no warning; empty, so that no instruction is left.
  ~adopted_operation() {}
};

[[nodiscard("hold the guard: the adoption ends when it is destroyed")]] inline adopted_operation adopt_operation(
    const operation_handle& handle) noexcept {
  return adopted_operation{handle};
}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
