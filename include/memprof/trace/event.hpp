#pragma once

#include <memprof/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// Kinds of events; the comments list the fields used besides `stamp`.
enum class event_kind : std::uint8_t {
  allocate = 1,         ///< address, bytes, space, tag
  deallocate,           ///< address, bytes as passed by the caller (0: not passed), space
  annotate,             ///< address, space, tag, label: an interned `name\x1fshape\x1fdtype[\x1frequires_grad]`, 0: none
  scope_begin,          ///< label: the operation's name; address: `scope_address(number, number of the enclosing one)`; tag.
                        ///< With bytes, `scope_address(number, thread)` of another operation: this thread adopts that one
  scope_end,            ///< label: as in its `scope_begin`; address: `scope_address(number, its thread if another one)`
  thread_begin,         ///< address: number of the thread whose events follow; no operation is open; bytes: its id in the
                        ///< system; label: its name
  allocate_on_cores,    ///< address: from `address_on_cores`; bytes on each core; label: packed `core_range`; space, tag
  deallocate_on_cores,  ///< address, bytes (0: not given), label, space: as in its `allocate_on_cores`
  deallocate_circular_buffers,  ///< label: packed `core_range`; all circular buffers on any of these cores; space
  reserve,                ///< address, bytes, space, label: a `stream_and_pool` or 0; an allocator took a range from the device
  release,                ///< address, bytes (0: not given), space, label; it returned one
  allocate_on_stream,     ///< as `allocate`, with the label of a `stream_and_pool`
  deallocate_on_stream,   ///< as `deallocate`, with the label of its `allocate_on_stream`; tag 1: streams may still use
                          ///< the block, until its `complete_deallocation`
  out_of_memory,          ///< bytes: requested; address: bytes free on the device or `unknown_device_free`; space: it had no
                          ///< memory for a block
  segment_end,            ///< label: the name of the segment that ends
  clock_reading,          ///< address: nanoseconds since the capture began, when the clock of the stamps showed `stamp`
  lost_events,            ///< totals so far; address: dropped; bytes: from signal handlers; tag: 1 if there are others
                          ///< whose number is unknown
  capture_end,            ///< the last event
  gap,                    ///< bytes: minimum number of events missing here
  deallocate_range,       ///< address, bytes, space: every block that begins there; tag 1: every block of the space
  complete_deallocation,  ///< address, bytes, space: no stream uses the freed block any more
  checkpoint,             ///< label: its name, 0: periodic; keeps what is live now
  use,                    ///< address, space; the program reads or writes the block; tag 1: until the innermost open
                          ///< operation of the thread ends
};

}  // namespace extend

namespace detail {

/// Names of the `event_kind` values, in order; the first is for no kind.
inline constexpr std::array<std::string_view, 24> event_kind_names{"unknown",
                                                                   "allocate",
                                                                   "deallocate",
                                                                   "annotate",
                                                                   "scope_begin",
                                                                   "scope_end",
                                                                   "thread_begin",
                                                                   "allocate_on_cores",
                                                                   "deallocate_on_cores",
                                                                   "deallocate_circular_buffers",
                                                                   "reserve",
                                                                   "release",
                                                                   "allocate_on_stream",
                                                                   "deallocate_on_stream",
                                                                   "out_of_memory",
                                                                   "segment_end",
                                                                   "clock_reading",
                                                                   "lost_events",
                                                                   "capture_end",
                                                                   "gap",
                                                                   "deallocate_range",
                                                                   "complete_deallocation",
                                                                   "checkpoint",
                                                                   "use"};
static_assert(event_kind_names.size() == static_cast<std::size_t>(event_kind::use) + 1);

}  // namespace detail

namespace extend {

/// A kind's name in files.
[[nodiscard]] constexpr std::string_view to_string(event_kind value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return detail::event_kind_names[index < detail::event_kind_names.size() ? index : 0];
}

}  // namespace extend

namespace detail {

/// The ring of events recorded by no thread: those about the capture itself.
inline constexpr std::uint32_t no_ring_id = 0;

/// Whether the kind's address is a memory address.
[[nodiscard]] constexpr bool has_address(event_kind kind) noexcept {
  return (kind >= event_kind::allocate && kind <= event_kind::annotate) ||
         (kind >= event_kind::allocate_on_cores && kind < event_kind::out_of_memory) ||
         kind == event_kind::complete_deallocation || kind == event_kind::use;
}

/// The address of a `scope_begin` or `scope_end`: the operation's number on its thread, from 1, and a second number.
[[nodiscard]] constexpr std::uint64_t scope_address(std::uint32_t number, std::uint32_t other) noexcept {
  return std::uint64_t{other} << 32 | number;
}

}  // namespace detail

namespace extend {

/// The id of the memory space `cpu`: hooks of the C++ heap need no look-up.
inline constexpr std::uint8_t cpu_space = 0;

/// The address of an `out_of_memory` for which the device's free bytes are unknown.
inline constexpr std::uint64_t unknown_device_free = ~std::uint64_t{0};

/// No particular memory space; an `annotate` with it searches all of them.
inline constexpr std::uint8_t any_space = 255;

/// A memory space's number within one process or one trace: see `memory_space`, `trace_writer::space`.
struct space_id {
  std::uint8_t value = 0;

  bool operator==(const space_id&) const = default;
};

/// The start of a block: in this process, in another one, or in a device's memory.
struct block_address {
  std::uint64_t value;

  constexpr block_address(std::uint64_t address) noexcept : value(address) {}                        // implicit
  block_address(const void* address) noexcept : value(reinterpret_cast<std::uintptr_t>(address)) {}  // implicit
  bool operator==(const block_address&) const = default;
};

/// One thing that happened to memory: the only form in which sources report to the ledger.
///
/// `stamp` is a clock reading that orders events of different threads; 0 means "directly after the same thread's previous event".
/// `tag` is 0 or a category's value plus one; in `allocate_on_cores`, its upper byte is a `buffer_kind`. `space` and `label` are
/// ids of interned names, unless the kind says otherwise.
struct event {
  std::uint64_t stamp;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t label;
  event_kind kind;
  std::uint8_t space;
  std::uint16_t tag;
};

static_assert(sizeof(event) == 32 && std::is_trivially_copyable_v<event>);

}  // namespace extend

namespace detail {

/// The last fields of an event, packed as they lie in memory: label, kind, space, tag.
[[nodiscard, gnu::always_inline]] inline std::uint64_t packed_tail(const event& described) noexcept {
  // By shifts: from a struct, compilers assemble the word field by field and do not hoist the constants out of a loop.
  return described.label | std::uint64_t{static_cast<std::uint8_t>(described.kind)} << 32 | std::uint64_t{described.space} << 40 |
         std::uint64_t{described.tag} << 48;
}
static_assert(std::endian::native == std::endian::little && offsetof(event, label) == 24 && offsetof(event, kind) == 28 &&
              offsetof(event, space) == 29 && offsetof(event, tag) == 30);

/// One of a sequence of events of several threads, in their order.
struct ordered_event {
  const event* recorded;
  std::uint32_t ring;
};

/// Calls `visit(first, last, ring)` for each run of events of one ring, which lie one after the other.
template <class Visitor>
void for_each_run(const ordered_event* first, const ordered_event* last, Visitor&& visit) {
  while (first != last) {
    const ordered_event* end = first + 1;
    while (end != last && end->ring == first->ring && end->recorded == end[-1].recorded + 1) ++end;
    visit(first->recorded, end[-1].recorded + 1, first->ring);
    first = end;
  }
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
