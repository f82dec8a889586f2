#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/fixed_string.hpp>
#include <memprof/trace/category.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/record/find_label.hpp>
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>

#include <atomic>
#include <cstdint>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// The id of a name known at compile time: a single load after the first call.
template <fixed_string Name>
[[nodiscard]] label static_label() noexcept {
  static constinit std::atomic<label> known{0};
  // Relaxed: the id is a number that means the same to every thread, and its text is read under the lock.
  label id = known.load(std::memory_order_relaxed);
  if (id == 0) [[unlikely]] {
    id = find_label(Name.view());
    known.store(id, std::memory_order_relaxed);
  }
  return id;
}

}  // namespace detail

inline namespace enabled {

/// An operation that is open on this thread until the end of the scope. Neither copyable nor movable.
class [[nodiscard]] operation_scope {
 public:
  /// `find_name()` returns the operation's label; it is only called while a capture is active.
  template <class FindName>
  operation_scope(FindName find_name, std::uint16_t tag) noexcept
      : capture_(abi_1::process_registry.active_capture.load(std::memory_order_relaxed)) {
    if (capture_ == 0) [[likely]]
      return;
    detail::thread_slot& self = abi_1::this_thread;
    if (self.ring->doing.load(std::memory_order_relaxed) != detail::activity::idle && !detail::is_outside(self)) [[unlikely]] {
      // In a signal handler that interrupted the profiler: neither end is recorded.
      detail::note_reentrant(abi_1::process_registry, self.doing().load(std::memory_order_relaxed));
      capture_ = 0;
      return;
    }
    const extend::label name = find_name();
    detail::begin_operation(open_, self, name, tag);
    self.innermost_name = name;
    // Acquire pairs with the release of the one who listens.
    if (const auto* const listener = abi_1::process_run_listener.load(std::memory_order_acquire)) [[unlikely]]
      detail::tell_operation_began(*listener, open_, tag);
  }
  operation_scope(const operation_scope&) = delete;
  operation_scope& operator=(const operation_scope&) = delete;
  // Always inlined: otherwise it would depend on what else the translation unit contains.
  [[gnu::always_inline]] ~operation_scope() {
    if (capture_ == 0) [[likely]]
      return;
    // Acquire, as above.
    if (const auto* const listener = abi_1::process_run_listener.load(std::memory_order_acquire)) [[unlikely]]
      listener->operation_ended(detail::id_for_run(open_));
    // A scope that outlives its capture must not close one in the next.
    detail::end_operation(open_, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) == capture_);
  }

 private:
  std::uint32_t capture_;
  extend::open_operation open_;
};

/// Names what this thread does until the end of the scope; allocations are attributed to the innermost name. Nests.
///
/// `kind` is the category of allocations within the scope, unless an inner scope sets another. Costs two events, or one load
/// while no capture is active.
template <detail::fixed_string Name>
[[nodiscard("hold the scope: the operation ends when it is destroyed")]] operation_scope track_operation(
    optional_category kind = {}) noexcept {
  return operation_scope{[] { return detail::static_label<Name>(); }, kind.tag()};
}

/// As above, for a name made at run time. The text is interned, so use a bounded number of different names.
[[nodiscard("hold the scope: the operation ends when it is destroyed")]] inline operation_scope track_operation(
    std::string_view name, optional_category kind = {}) noexcept {
  return operation_scope{[name] { return detail::find_label(name); }, kind.tag()};
}

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] operation_scope {
 public:
  // Non-trivial, so that an unused scope draws no warning; empty, so that no instruction is left.
  ~operation_scope() {}
};

template <detail::fixed_string Name>
[[nodiscard("hold the scope: the operation ends when it is destroyed")]] inline operation_scope track_operation(
    optional_category = {}) noexcept {
  return {};
}
[[nodiscard("hold the scope: the operation ends when it is destroyed")]] inline operation_scope track_operation(
    std::string_view, optional_category = {}) noexcept {
  return {};
}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
