#pragma once

#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>

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

[[nodiscard]] inline std::uint64_t address_on_cores(const void* address, const core_range& cores) noexcept {
  return memprof::address_on_cores(reinterpret_cast<std::uintptr_t>(address), cores);
}

}  // namespace detail

/// Where a backend reports to. Every call may be made from any thread and records nothing while no capture is active.
///
/// A call is safe in a signal handler, except as the first of its thread. A handler that interrupts the recording of another
/// event, or a short control call (`snapshot`, `annotate`, the making of a space), is counted in the profile (`reentrant_events`)
/// and not recorded; longer ones (`begin_capture`, the making of a profile) hold signals back until they are done. No call
/// changes errno.
///
/// The order of calls is the contract that makes peaks exact: report an allocation after it happened, a deallocation before. An
/// allocation at a null address has failed, and is only counted.
class event_sink {
 public:
  /// `space` is the kind of memory, made once: `const memprof::memory_space dram{"dram"}`. Cost: that of one event. `told`
  /// overrides the category of the operation that is open on this thread.
  void allocate(memory_space space, const void* address, std::size_t bytes, optional_category told = {}) const noexcept {
    detail::record_allocation(space.id(), address, bytes, told.tag());
  }
  /// `bytes`, if given, is compared with what was allocated.
  void deallocate(memory_space space, const void* address, std::size_t bytes = 0) const noexcept {
    detail::record_deallocation(space.id(), address, bytes);
  }

  /// An allocator that keeps freed memory for later (PyTorch's caching allocator) took a range of addresses from the device: the
  /// profile tells it as reserved, beside what the program allocated of it. Cost: that of one event; accounting for it costs a
  /// step for each range that is held. `told`: for which stream, and for which pool.
  void reserve(memory_space space, const void* address, std::size_t bytes, stream_pool told = {}) const noexcept {
    detail::record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, told.name(), event_kind::reserve, space.id(), 0});
  }
  /// The allocator gave a range back, which may be part of those it took, or several; 0: the one that began at `address`.
  void release(memory_space space, const void* address, std::size_t bytes = 0, stream_pool told = {}) const noexcept {
    detail::record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, told.name(), event_kind::release, space.id(), 0});
  }

  /// An allocation for a stream, from a pool; else as `allocate`. The profile sums up the blocks of each in
  /// `space_profile::streams`.
  void allocate_on_stream(memory_space space, const void* address, std::size_t bytes, stream_pool where,
                          optional_category told = {}) const noexcept {
    detail::record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, where.name(), event_kind::allocate_on_stream,
                          space.id(), told.tag()});
  }
  /// The end of such a block, told with the same stream and pool.
  void deallocate_on_stream(memory_space space, const void* address, stream_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event(
        {0, reinterpret_cast<std::uintptr_t>(address), bytes, where.name(), event_kind::deallocate_on_stream, space.id(), 0});
  }

  /// An allocation of `bytes` failed because the device had no memory for it, of which `device_free` bytes were left. The profile
  /// keeps the first 32 with the operation that asked (`space_profile::out_of_memory`).
  void out_of_memory(memory_space space, std::size_t bytes, std::size_t device_free) const noexcept {
    detail::record_event({0, device_free, bytes, 0, event_kind::out_of_memory, space.id(), 0});
  }

  /// A block of `bytes_per_core` on each of `cores`, in memory that every core has of its own (L1). The profile tells what lay on
  /// the busiest core (`space_profile::cores`); in the other numbers of the space the block has its bytes on all cores together.
  ///
  /// Blocks at one address are the same block if their first core (x0, y0) is the same, else they lie beside each other. So a set
  /// of several rectangles is told as a block for each, at the same address. A buffer whose allocator reserves the address on
  /// every core is told on all cores of the device. Cores of different devices belong to different spaces. To `annotate` the
  /// block, use its `address_on_cores`.
  ///
  /// Cost: that of one event; accounting for it costs a step for each core. Rectangles with exchanged corners are counted in
  /// `event_anomalies::rejected_events`, for the calls below too.
  void allocate_on_cores(memory_space space, const void* address, std::size_t bytes_per_core, core_range cores,
                         buffer_kind kind = buffer_kind::buffer, optional_category told = {}) const noexcept {
    const auto tag = static_cast<std::uint16_t>(told.tag() | static_cast<unsigned>(kind) << 8);
    detail::record_event({0, detail::address_on_cores(address, cores), bytes_per_core, cores.packed(),
                          event_kind::allocate_on_cores, space.id(), tag});
  }
  /// The end of a block, told with the same `cores`. `bytes_per_core`, if given, is compared with what was allocated.
  void deallocate_on_cores(memory_space space, const void* address, core_range cores,
                           std::size_t bytes_per_core = 0) const noexcept {
    detail::record_event({0, detail::address_on_cores(address, cores), bytes_per_core, cores.packed(),
                          event_kind::deallocate_on_cores, space.id(), 0});
  }
  /// The end of every circular buffer that lies on any of `cores`, on its other cores too: where a program can start, the one
  /// before has ended as a whole. It is not unusual that there is none. Accounting for it costs a pass over the circular buffers.
  void deallocate_circular_buffers(memory_space space, core_range cores = any_core) const noexcept {
    detail::record_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, space.id(), 0});
  }
};

struct capture_options;

/// A source of events that a capture switches on and off: `attach` when it begins, perhaps with the capture's options, `detach`
/// when it ends. The object lives as long as the capture's profile can be read.
///
/// One that knows more than events can tell has `void describe(profile&) const` as well: it is called for every profile that is
/// made, during the capture and after it, from any thread, under the profiler's lock. So it may use nothing of memprof that
/// records or controls.
template <class T>
concept backend = std::default_initializable<T> && requires(T source, event_sink& sink, const capture_options& options) {
  { T::name } -> std::convertible_to<std::string_view>;
  requires requires { source.attach(sink); } || requires {
    source.attach(sink, options);
  };
  { source.detach() }
  noexcept;
};

}  // namespace memprof
