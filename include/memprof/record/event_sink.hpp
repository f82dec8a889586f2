#pragma once

#include <memprof/record/annotation_event.hpp>
#include <memprof/record/find_label.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/block_address.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/event_writer.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>
#include <memprof/trace/space_id.hpp>
#include <memprof/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

[[gnu::always_inline]] inline void record_allocation(std::uint8_t space, const void* address, std::size_t bytes,
                                                     std::uint16_t tag = 0) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::allocate, space, tag});
}

[[gnu::always_inline]] inline void record_deallocation(std::uint8_t space, const void* address, std::size_t bytes) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::deallocate, space, 0});
}

}  // namespace detail

/// The writer of events of this process: where backends report to. Every call may be made from any thread and records nothing
/// while no capture is active.
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
  using open_operation_type = open_operation;

  /// The space of that name. Takes a lock: ask once, not for each event.
  [[nodiscard]] memory_space space(std::string_view name, std::string_view memory = {}) const noexcept {
    return memory_space{name, memory};
  }

  /// `space` is the kind of memory, made once: `const memprof::memory_space dram{"dram"}`. Cost: that of one event. `contents`
  /// overrides the category of the operation that is open on this thread.
  void allocate(space_id space, block_address address, std::size_t bytes, optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::allocate, space.value, contents.tag()});
  }
  /// `bytes`, if given, is compared with what was allocated.
  void deallocate(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate, space.value, 0});
  }

  /// An allocator that keeps freed memory for later (PyTorch's caching allocator) took a range of addresses from the device: the
  /// profile tells it as reserved, beside what the program allocated of it. Cost: that of one event; accounting for it costs a
  /// step for each range that is held. `stream`: for which stream and pool.
  void reserve(space_id space, block_address address, std::size_t bytes, stream_and_pool stream = {}) const noexcept {
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::reserve, space.value, 0});
  }
  /// The allocator gave a range back, which may be part of those it took, or several; 0: the one that began at `address`.
  void release(space_id space, block_address address, std::size_t bytes = 0, stream_and_pool stream = {}) const noexcept {
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::release, space.value, 0});
  }

  /// An allocation for a stream, from a pool; else as `allocate`. The profile sums up the blocks of each in
  /// `space_profile::streams`.
  void allocate_on_stream(space_id space, block_address address, std::size_t bytes, stream_and_pool where,
                          optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::allocate_on_stream, space.value, contents.tag()});
  }
  /// The end of such a block, with the same stream and pool.
  void deallocate_on_stream(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 0});
  }
  /// The same of a block that streams may still use, as PyTorch's caching allocator frees it: it is not live any more, but stays
  /// active until `complete_deallocation` (`space_profile::active`).
  void request_deallocation(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 1});
  }
  /// No stream uses the block any more, whose deallocation was requested.
  void complete_deallocation(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::complete_deallocation, space.value, 0});
  }

  /// The end of every live block that begins in [address, address + bytes): a part of an arena is reset at once. It is not
  /// unusual that there is none. Cost: that of one event; accounting for it costs a pass over the live blocks of the space.
  /// Blocks on streams count as live in the rows of their streams, and as active, until they are deallocated one
  /// by one.
  void deallocate_range(space_id space, block_address address, std::size_t bytes) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate_range, space.value, 0});
  }
  /// The same of every live block of the space.
  void deallocate_all(space_id space) const noexcept {
    detail::record_event({0, 0, 0, 0, event_kind::deallocate_range, space.value, 1});
  }

  /// An allocation of `bytes` failed because the device had no memory for it, of which `device_free` bytes were left. The profile
  /// keeps the first 32 with the operation that asked (`space_profile::out_of_memory`).
  void out_of_memory(space_id space, std::size_t bytes, std::size_t device_free) const noexcept {
    detail::record_event({0, device_free, bytes, 0, event_kind::out_of_memory, space.value, 0});
  }

  /// A block of `bytes_per_core` on each of `cores`, in memory that every core has of its own (L1). The profile tells what lay on
  /// the busiest core (`space_profile::cores`); in the other numbers of the space the block has its bytes on all cores together.
  ///
  /// Blocks at one address are the same block if their first core (x0, y0) is the same, else they lie beside each other. So a set
  /// of several rectangles is recorded as a block for each, at the same address. A buffer whose allocator reserves the address on
  /// every core is recorded on all cores of the device. Cores of different devices belong to different spaces. To `annotate` the
  /// block, use its `address_on_cores`.
  ///
  /// Cost: that of one event; accounting for it costs a step for each core. Rectangles with exchanged corners are counted in
  /// `event_anomalies::rejected_events`, for the calls below too.
  void allocate_on_cores(space_id space, block_address address, std::size_t bytes_per_core, core_range cores,
                         buffer_kind kind = buffer_kind::buffer, optional_category contents = {}) const noexcept {
    const auto tag = static_cast<std::uint16_t>(contents.tag() | static_cast<unsigned>(kind) << 8);
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::allocate_on_cores, space.value, tag});
  }
  /// The end of a block, with the same `cores`. `bytes_per_core`, if given, is compared with what was allocated.
  void deallocate_on_cores(space_id space, block_address address, core_range cores,
                           std::size_t bytes_per_core = 0) const noexcept {
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::deallocate_on_cores, space.value, 0});
  }
  /// The end of every circular buffer that lies on any of `cores`, on its other cores too: where a program can start, the one
  /// before has ended as a whole. It is not unusual that there is none. Accounting for it costs a pass over the circular buffers.
  void deallocate_circular_buffers(space_id space, core_range cores = any_core) const noexcept {
    detail::record_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, space.value, 0});
  }

  /// Says what the live block at `address` is, in whatever memory space it lives: as the free function `annotate`.
  void annotate(block_address address, const annotation& description) const noexcept {
    detail::record_annotation(address.value, description);
  }

  /// An operation begins on this thread, which `end_operation` ends, on whatever thread. `track_operation` is easier to use
  /// right.
  [[nodiscard]] open_operation begin_operation(std::string_view name, optional_category category = {}) const noexcept {
    open_operation begun;
    if (detail::may_control()) detail::begin_operation(begun, abi_1::this_thread, detail::find_label(name), category.tag());
    return begun;
  }
  void end_operation(const open_operation& ended) const noexcept {
    if (ended.number == 0) return;
    detail::end_operation(ended, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) != 0);
  }

  // --- for sources that follow the calls of another library -------------------------------------------------------

  /// The number of the active capture, from 1; 0: none. Cost: one load.
  [[nodiscard]] std::uint32_t capture() const noexcept {
    // Relaxed: whether a call that overlaps a capture's begin or end is part of it is open anyway.
    return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
  }
  /// Whether operations of this thread may be recorded: not where a signal handler has interrupted the profiler, nor in what
  /// the profiler does itself.
  [[nodiscard]] bool is_thread_recordable() const noexcept { return detail::is_outside(abi_1::this_thread); }

  /// The id of a name, for the calls below. Through a cache of this thread; a miss takes a lock. 0 if the system has no memory.
  [[nodiscard]] label label_of(std::string_view name) const noexcept { return detail::find_label(name); }
  /// The text of such an id, which stays where it is. Takes a lock.
  [[nodiscard]] std::string_view text_of(label id) const noexcept {
    const detail::control_guard control;
    const label_table* const labels = abi_1::process_registry.labels;
    return labels == nullptr ? std::string_view{} : labels->text(id);
  }

  /// The same as `annotate`, of a text that is known: name, shape, dtype and `requires_grad` with `name_separator` between; 0:
  /// only the category is given. Cost: that of one event.
  void annotate(block_address address, optional_category contents, label text) const noexcept {
    detail::record_event({0, address.value, 0, text, event_kind::annotate, any_space, contents.tag()});
  }

  /// The same as `begin_operation`, where `capture()` is not 0 and `is_thread_recordable()`. Cost: that of one event.
  [[nodiscard]] open_operation begin_operation(label name, optional_category category) const noexcept {
    open_operation begun;
    detail::begin_operation(begun, abi_1::this_thread, name, category.tag());
    return begun;
  }
  /// Ends an operation that was begun in that capture: if it outlives the capture, it ends none of the next.
  void end_operation(const open_operation& ended, std::uint32_t begun_in) const noexcept {
    detail::end_operation(ended, capture() == begun_in);
  }

  /// The name of the innermost operation that the program itself has open on this thread; 0: none.
  [[nodiscard]] label innermost_name() const noexcept { return abi_1::this_thread.innermost_name; }
  /// The operation that was begun last on this thread is one that the program itself named.
  void set_innermost_name(label name) const noexcept { abi_1::this_thread.innermost_name = name; }

  /// Something happened that the source cannot tell as an event: the profile is not exact.
  void count_dropped_event() const noexcept { abi_1::process_registry.dropped_events.fetch_add(1, std::memory_order_relaxed); }

  // --- the capture ------------------------------------------------------------------------------------------------

  /// Ends the current segment, as `snapshot` does.
  void end_segment(std::string_view name) const noexcept { (void)detail::record_segment_end(0, name); }

  /// Adds rows to what the capture knows beside events, in place of those of the table's name that it had. Columns beyond 32 and
  /// text beyond 4,096 bytes are cut (`fitted`). Takes a lock.
  void add_facts(const fact_table& facts) const {
    if (!detail::may_control()) return;
    const detail::internal_guard hidden;
    registry& shared = abi_1::process_registry;
    const detail::registry_guard lock{shared};
    if (shared.add_facts != nullptr && shared.capture_version == version_number) shared.add_facts(shared, facts);
  }
};
static_assert(event_writer<event_sink>);

struct capture_options;

/// A source of events that a capture switches on and off: `attach` when it begins, with the capture's options, `detach` when it
/// ends. In between, and once more after `detach`, `report_facts` is asked for what the source knows beside events: it gives
/// whole tables to the writer's `add_facts`, or does nothing. No two calls of these are made at once, and none under the
/// profiler's lock. The object lives as long as the capture's profile can be read. A source that simulates says so with a `static
/// constexpr run_mode mode`: it becomes that of the profile.
template <class T>
concept backend = std::default_initializable<T> && requires(T source, event_sink& writer, const capture_options& options) {
  { T::name } -> std::convertible_to<std::string_view>;
  source.attach(writer, options);
  { source.detach(writer) }
  noexcept;
  source.report_facts(writer);
};

}  // namespace memprof::inline MEMPROF_ABI
