#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <type_traits>

namespace memprof {

/// What an event says; the comment names the fields it uses beside `stamp`.
enum class event_kind : std::uint8_t {
  allocate = 1,         ///< address, bytes, space, tag
  deallocate,           ///< address, bytes as the caller told them (0: not told), space
  annotate,             ///< address, space, tag, label: an interned `name\x1fshape\x1fdtype[\x1frequires_grad]`, 0 for none
  scope_begin,          ///< label: the operation's name; address: nesting depth on its thread, from 1; tag
  scope_end,            ///< label, address: as in its `scope_begin`
  thread_begin,         ///< the ring belongs to a new thread: no operation is open
  allocate_on_cores,    ///< address: as `address_on_cores` makes it; bytes on each core; label: packed `core_range`; space, tag
  deallocate_on_cores,  ///< address, bytes (0: not told), label, space: as in its `allocate_on_cores`
  deallocate_circular_buffers,  ///< label: packed `core_range`; all circular buffers on any of these cores; space
  reserve,                      ///< address, bytes, space, label: a `stream_pool` or 0: an allocator took a range from the device
  release,                      ///< address, bytes (0: not told), space, label: it gave one back
  allocate_on_stream,           ///< as `allocate`, with the label of a `stream_pool`
  deallocate_on_stream,         ///< as `deallocate`, with the label of its `allocate_on_stream`
  out_of_memory,                ///< bytes: asked for, address: bytes free on the device, space: it had no memory for a block
};

/// The id of the memory space `cpu`: hooks of the C++ heap need no look-up.
inline constexpr std::uint8_t cpu_space = 0;

/// The id of no memory space: `annotate` with it asks all of them.
inline constexpr std::uint8_t any_space = 255;

/// One thing that happened to memory: the only form in which sources speak to the ledger.
///
/// `stamp` is a clock reading that orders events of different threads; 0 says "directly after the previous event of the same
/// thread". `tag` is 0 or a category's value plus one; in `allocate_on_cores` its upper byte is a `buffer_kind`. `space` and
/// `label` are ids of interned names, unless the kind says otherwise.
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

}  // namespace memprof
