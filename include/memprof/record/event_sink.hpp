#pragma once

#include <memprof/record/annotation_event.hpp>
#include <memprof/record/block_parts.hpp>
#include <memprof/record/find_label.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/event_writer.hpp>
#include <memprof/trace/fact_part.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

namespace extend {

/// The process's event writer, through which backends report. Every call may be made from any thread, and records nothing while
/// no capture is active.
///
/// A call is safe in a signal handler, unless it is the thread's first. A handler that interrupts the recording of another event
/// is not recorded but counted in the profile (`reentrant_events`); control calls block signals while they hold a lock. No call
/// changes errno.
///
/// Peaks are exact only if calls keep this order: report an allocation after it has happened, a deallocation before. An
/// allocation at a null address has failed and is only counted.
class event_sink {
 public:
  using open_operation_type = open_operation;

  /// The space with that name. Takes a lock: call it once, not for each event.
  [[nodiscard]] memory_space space(std::string_view name, std::string_view memory = {}) const noexcept {
    return memory_space{name, memory};
  }

  /// `space` is the kind of memory, created once: `const memprof::memory_space dram{"dram"}`. Costs one event. `contents`
  /// overrides the category of the operation that is open on this thread.
  void allocate(space_id space, block_address address, std::size_t bytes, optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::allocate, space.value, contents.tag()});
  }
  /// `bytes`, if given, is compared with the allocated size.
  void deallocate(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate, space.value, 0});
  }

  /// A caching allocator (such as PyTorch's) took a range of addresses from the device. The profile reports it as reserved,
  /// alongside what the program allocated from it. `stream` names the stream and pool it serves. Costs one event; accounting for
  /// it costs one step per held range.
  void reserve(space_id space, block_address address, std::size_t bytes, stream_and_pool stream = {}) const noexcept {
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::reserve, space.value, 0});
  }
  /// The allocator gave a range back: part of the ranges it took, or several of them; 0 bytes: the one that began at `address`.
  /// `was_asked`: the program had it give back what it had cached, so that another allocator would, too.
  void release(space_id space, block_address address, std::size_t bytes = 0, stream_and_pool stream = {},
               bool was_asked = false) const noexcept {
    const auto tag = static_cast<std::uint16_t>(was_asked ? 1 : 0);
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::release, space.value, tag});
  }

  /// An allocation for a stream, from a pool; otherwise like `allocate`. The profile sums the blocks of each in
  /// `space_profile::streams`.
  void allocate_on_stream(space_id space, block_address address, std::size_t bytes, stream_and_pool where,
                          optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::allocate_on_stream, space.value, contents.tag()});
  }
  /// Ends such a block; pass the same stream and pool.
  void deallocate_on_stream(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 0});
  }
  /// Frees a block that streams may still be using, as PyTorch's caching allocator does: it is no longer live, but stays active
  /// until `complete_deallocation` (`space_profile::active`).
  void request_deallocation(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 1});
  }
  /// No stream uses the block any more; its deallocation was requested earlier.
  void complete_deallocation(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::complete_deallocation, space.value, 0});
  }

  /// Ends every live block that begins in [address, address + bytes), as when part of an arena is reset at once. No anomaly if
  /// there is none. Costs one event; accounting for it costs a pass over the live blocks of the space. In the rows of their
  /// streams, blocks on streams stay live, and active, until they are deallocated one by one.
  void deallocate_range(space_id space, block_address address, std::size_t bytes) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate_range, space.value, 0});
  }
  /// Ends every live block of the space, in the same way.
  void deallocate_all(space_id space) const noexcept {
    detail::record_event({0, 0, 0, 0, event_kind::deallocate_range, space.value, 1});
  }

  /// An allocation that the program divides itself: its `parts`, in the order of their offsets, and what lies between them are
  /// recorded as a block each. To free it, end them by `deallocate_range(space, address, bytes)`. A part that overlaps with one
  /// before it, or does not lie in the block, is left out, which a line on stderr says once. `parts` is an array or a container
  /// of `block_part`.
  ///
  /// Costs two events for each part, and a lock to intern its text, so use a bounded number of different descriptions.
  template <class Parts>
  void allocate_parts(space_id space, block_address address, std::size_t bytes, const Parts& parts) const noexcept {
    detail::record_parts(space.value, address.value, bytes, std::data(parts), std::size(parts));
  }

  /// An allocation of `bytes` failed because the device ran out of memory, with `device_free` bytes left. The profile keeps the
  /// first 32, each with the operation that requested the memory (`space_profile::out_of_memory`).
  void out_of_memory(space_id space, std::size_t bytes, std::size_t device_free) const noexcept {
    detail::record_event({0, device_free, bytes, 0, event_kind::out_of_memory, space.value, 0});
  }

  /// Allocates a block of `bytes_per_core` on each of `cores`, in memory that every core has to itself (L1). The profile reports
  /// the usage of the busiest core (`space_profile::cores`); the other numbers of the space count the block's bytes on all cores
  /// together.
  ///
  /// Blocks at the same address are the same block if their first cores (x0, y0) are equal; otherwise they lie side by side. So
  /// record a set of several rectangles as one block per rectangle, at the same address. If the allocator reserves a buffer's
  /// address on every core, record it on all cores of the device. Cores of different devices belong to different spaces. To
  /// `annotate` the block, use its `address_on_cores`.
  ///
  /// Costs one event; accounting for it costs one step per core. Rectangles with swapped corners are counted in
  /// `event_anomalies::rejected_events`; this also holds for the calls below.
  void allocate_on_cores(space_id space, block_address address, std::size_t bytes_per_core, core_range cores,
                         buffer_kind kind = buffer_kind::buffer, optional_category contents = {}) const noexcept {
    const auto tag = static_cast<std::uint16_t>(contents.tag() | static_cast<unsigned>(kind) << 8);
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::allocate_on_cores, space.value, tag});
  }
  /// Ends a block; pass the same `cores`. `bytes_per_core`, if given, is compared with the allocated size.
  void deallocate_on_cores(space_id space, block_address address, core_range cores,
                           std::size_t bytes_per_core = 0) const noexcept {
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::deallocate_on_cores, space.value, 0});
  }
  /// Ends every circular buffer that lies on any of `cores`, on its other cores too: a program can only start where the previous
  /// one has ended as a whole. No anomaly if there is none. Accounting for it costs a pass over the circular buffers.
  void deallocate_circular_buffers(space_id space, core_range cores = any_core) const noexcept {
    detail::record_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, space.value, 0});
  }

  /// Describes the live block at `address`, whichever memory space it is in; like the free function `annotate`.
  void annotate(block_address address, const annotation& description) const noexcept {
    detail::record_annotation(address.value, description);
  }

  /// Begins an operation on this thread; `end_operation` ends it, on any thread. Prefer `track_operation`, which is harder to
  /// misuse.
  [[nodiscard]] open_operation begin_operation(std::string_view name, optional_category category = {}) const noexcept {
    open_operation begun;
    if (detail::may_control()) detail::begin_operation(begun, abi_1::this_thread, detail::find_label(name), category.tag());
    return begun;
  }
  void end_operation(const open_operation& ended) const noexcept {
    if (ended.number == 0) return;
    detail::end_operation(ended, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) != 0);
  }

  // --- for sources that hook into another library -----------------------------------------------------------------

  /// Number of the active capture, from 1; 0: none. Costs one load.
  [[nodiscard]] std::uint32_t capture() const noexcept {
    // Relaxed: whether a call that overlaps a capture's begin or end belongs to it is unspecified anyway.
    return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
  }
  /// Whether this thread may record operations: not in a signal handler that interrupted the profiler, nor within the profiler's
  /// own work.
  [[nodiscard]] bool is_thread_recordable() const noexcept { return detail::is_outside(abi_1::this_thread); }

  /// The id of a name, for the calls below. Cached per thread; a miss takes a lock. 0 if the system has no memory.
  [[nodiscard]] label label_of(std::string_view name) const noexcept { return detail::find_label(name); }
  /// The text of such an id; it never moves. Takes a lock.
  [[nodiscard]] std::string_view text_of(label id) const noexcept {
    const detail::control_guard control;
    const detail::label_table* const labels = abi_1::process_registry.labels;
    return labels == nullptr ? std::string_view{} : labels->text(id);
  }

  /// Like `annotate`, with interned text: name, shape, dtype and `requires_grad`, joined by `name_separator`; 0: only the
  /// category is given. Costs one event.
  void annotate(block_address address, optional_category contents, label text) const noexcept {
    detail::record_event({0, address.value, 0, text, event_kind::annotate, any_space, contents.tag()});
  }

  /// Whether the active capture wants `use`. Costs one load.
  [[nodiscard]] bool records_uses() const noexcept {
    return abi_1::process_registry.uses.load(std::memory_order_relaxed) != 0 && capture() != 0;
  }
  /// The program reads or writes the block at `address`, whichever memory space it is in: now, or until the innermost open
  /// operation of this thread ends. Call only if `records_uses()`. Costs one event.
  void use(block_address address, bool until_operation_ends) const noexcept {
    const auto tag = static_cast<std::uint16_t>(until_operation_ends ? 1 : 0);
    detail::record_event({0, address.value, 0, 0, event_kind::use, any_space, tag});
  }

  /// Like `begin_operation`; requires a nonzero `capture()` and `is_thread_recordable()`. Costs one event.
  [[nodiscard]] open_operation begin_operation(label name, optional_category category) const noexcept {
    open_operation begun;
    detail::begin_operation(begun, abi_1::this_thread, name, category.tag());
    return begun;
  }
  /// Ends an operation that was begun in capture `begun_in`. If it outlives that capture, it ends none in the next.
  void end_operation(const open_operation& ended, std::uint32_t begun_in) const noexcept {
    detail::end_operation(ended, capture() == begun_in);
  }

  /// Name of the innermost operation that the program itself has open on this thread; 0: none.
  [[nodiscard]] label innermost_name() const noexcept { return abi_1::this_thread.innermost_name; }
  /// Marks the operation last begun on this thread as one that the program itself named.
  void set_innermost_name(label name) const noexcept { abi_1::this_thread.innermost_name = name; }

  /// Counts an occurrence that the source cannot report as an event: the profile is not exact.
  void count_dropped_event() const noexcept { abi_1::process_registry.dropped_events.fetch_add(1, std::memory_order_relaxed); }

  // --- the capture ------------------------------------------------------------------------------------------------

  /// Ends the current segment, as `snapshot` does.
  void end_segment(std::string_view name) const noexcept { (void)detail::record_segment_end(0, name); }

  /// Adds a table of facts to the capture, replacing an earlier one of that name. Cuts columns beyond 32 and text beyond 4,096
  /// bytes. The capture may be that of another part of the process, with another version of the library. Takes a lock.
  void add_facts(const fact_table& facts) const {
    if (!detail::may_control()) return;
    registry& shared = abi_1::process_registry;
    const detail::internal_control_guard lock{shared};
    if (shared.add_fact_records == nullptr) return;
    shared.add_fact_records(shared, detail::encode_facts(detail::fitted(facts)));
  }
};

static_assert(event_writer<event_sink>);

}  // namespace extend

struct capture_options;

namespace extend {

/// A source of events that a capture switches on and off: `attach` when it begins, with the capture's options, `detach` when it
/// ends. In between, and once more after `detach`, `report_facts` may pass whole tables of facts to the writer's `add_facts`.
/// These calls never overlap, and none is made under the profiler's lock. The object lives as long as the capture's profile can
/// be read. A source that simulates declares `static constexpr run_mode mode`, which becomes the profile's mode.
template <class T>
concept backend = std::default_initializable<T> && requires(T source, event_sink& writer, const capture_options& options) {
  { T::name } -> std::convertible_to<std::string_view>;
  source.attach(writer, options);
  { source.detach(writer) }
  noexcept;
  source.report_facts(writer);
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
