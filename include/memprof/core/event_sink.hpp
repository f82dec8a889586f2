#pragma once

#include <memprof/core/category.hpp>
#include <memprof/core/event.hpp>
#include <memprof/core/memory_space.hpp>
#include <memprof/core/recorder.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

namespace detail {

[[gnu::always_inline]] inline void record_allocation(std::uint8_t space, const void* address, std::size_t bytes,
                                                     std::uint16_t tag = 0) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::allocate, space, tag});
}

[[gnu::always_inline]] inline void record_deallocation(std::uint8_t space, const void* address, std::size_t bytes) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::deallocate, space, 0});
}

}  // namespace detail

/// Where a backend reports to. Every call may be made from any thread and records nothing while no capture is active.
///
/// In a signal handler a call is safe, except as the first of its thread, which may allocate. A handler that interrupts the
/// recording of another event is counted in the profile (`reentrant_events`) and not recorded.
///
/// The order of calls is the contract that makes peaks exact: tell an allocation after it happened, a deallocation before.
class event_sink {
 public:
  /// Cost: that of one event. `told` overrides the category of the operation that is open on this thread.
  void allocate(memory_space space, const void* address, std::size_t bytes, optional_category told = {}) const noexcept {
    detail::record_allocation(space.id(), address, bytes, told.tag());
  }
  /// `bytes`, if given, is compared with what was allocated.
  void deallocate(memory_space space, const void* address, std::size_t bytes = 0) const noexcept {
    detail::record_deallocation(space.id(), address, bytes);
  }
};

/// A source of events that a capture switches on and off: `attach` when it begins, `detach` when it ends.
template <class T>
concept backend = std::default_initializable<T> && requires(T source, event_sink& sink) {
  { T::name } -> std::convertible_to<std::string_view>;
  source.attach(sink);
  { source.detach() }
  noexcept;
};

}  // namespace memprof
