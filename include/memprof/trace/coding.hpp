#pragma once

#include <memprof/trace/event.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// What a trace's encoder and decoder share; docs/trace_format.md describes the bytes.
///
/// Training is repetitive: blocks of the same sizes return at the same addresses in every step. So both sides remember recent
/// allocations, each in the slot selected by its address, and an allocation or free that its slot predicts takes two bytes.

namespace memprof::inline MEMPROF_ABI::detail {

/// The first byte of a record. If its top bit is set, the record is a stamp; otherwise the upper nibble is one of these, and the
/// lower nibble belongs to it.
enum class opcode : std::uint8_t {
  control = 0x00,
  allocate_known = 0x10,    ///< the slot's allocation; the slot is the lower nibble and one byte
  free_known = 0x20,        ///< frees the slot's block, with its bytes; slot likewise
  free_known_bare = 0x30,   ///< frees the slot's block, without bytes; slot likewise
  allocate_resized = 0x40,  ///< the slot's allocation with other bytes, a varint; slot likewise
  begin_known = 0x50,       ///< an operation inside the innermost, by its index among the recent names
  end_innermost = 0x60,
  any_event = 0x70,  ///< lower nibble: the kind, or 15 and one byte; then a byte of `event_field` and those fields
};

/// Records of the control nibble. For those below `ring`, the first byte is followed by the length of their payload, a varint.
enum class control : std::uint8_t {
  name = 1,   ///< id, text
  space = 2,  ///< id, label of its name, capacity in bytes, 1 if that is per core
  header = 3,
  facts = 4,
  saved_state = 5,  ///< a part of the state at this point: `saved_state_part`
  position = 6,     ///< a ring, and how many of its events precede this record or are missing
  ring = 7,         ///< the following events belong to this ring, a varint
  first_ring = 8,   ///< 8 to 15: they belong to the ring at this index among the recent ones
};

/// Fields of `opcode::any_event`, in this order. An omitted field is 0; an omitted space is that of the last event.
enum event_field : std::uint8_t {
  distance_of_16 = 1,  ///< difference to the last address, a multiple of 16, divided by 16; zigzag
  distance = 2,        ///< difference to the last address; zigzag
  bytes_field = 4,
  space_field = 8,
  label_field = 16,
  tag_field = 32,
};

/// The state that one record passes to the next. It restarts with each chunk, so that chunks can be read independently.
class coding_state {
 public:
  static constexpr std::size_t slot_count = 4096;
  static constexpr std::size_t ring_count = 8;
  static constexpr std::size_t name_count = 15;
  static constexpr std::size_t followed_depth = 16;

  /// An allocation's event fields, except for the stamp. Fits in one cache line.
  struct alignas(32) block_slot {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t tail;
    std::uint64_t tail_of_free;  ///< 0 in a slot never used
  };

  /// Predicts the next begin or end of an operation in a ring.
  struct ring_state {
    std::uint32_t ring;
    std::uint32_t last_number;
    std::uint32_t depth;
    struct {
      std::uint32_t number;
      std::uint32_t label;
    } open[followed_depth];

    [[nodiscard]] std::uint32_t innermost() const noexcept { return depth == 0 ? 0 : open[depth - 1].number; }

    void begin(std::uint32_t number, std::uint32_t label) noexcept {
      last_number = number;
      if (depth == followed_depth) {
        std::memmove(open, open + 1, sizeof open - sizeof open[0]);
        --depth;
      }
      open[depth++] = {number, label};
    }
    void end(std::uint32_t number) noexcept {
      while (depth != 0 && open[depth - 1].number >= number) --depth;
    }
  };

  void restart() noexcept { std::memset(static_cast<void*>(this), 0, sizeof *this); }

  [[nodiscard]] static std::size_t slot_of(std::uint64_t address) noexcept {
    return std::size_t{address * 0x9E3779B97F4A7C15U >> 52};
  }

  /// The last fields of the free that matches an allocation: the next kind, without a category, and without the stack that an
  /// allocation of the plain kind has as its label.
  [[nodiscard]] static std::uint64_t tail_of_free(std::uint64_t tail) noexcept {
    const bool has_stack = (tail >> 32 & 0xFFU) == static_cast<std::uint64_t>(event_kind::allocate);
    return (tail & (has_stack ? 0x0000'FFFF'0000'0000U : 0x0000'FFFF'FFFF'FFFFU)) + (std::uint64_t{1} << 32);
  }
  [[nodiscard]] static block_slot slot_for(const event& allocation, std::uint64_t tail) noexcept {
    return {allocation.address, allocation.bytes, tail, tail_of_free(tail)};
  }

  [[nodiscard]] static bool is_allocation(std::uint8_t kind) noexcept {
    return kind == static_cast<std::uint8_t>(event_kind::allocate) ||
           kind == static_cast<std::uint8_t>(event_kind::allocate_on_cores) ||
           kind == static_cast<std::uint8_t>(event_kind::allocate_on_stream);
  }

  /// Index of the ring with that id among the recent ones; `ring_count` if it is not there.
  [[nodiscard]] std::size_t place_of_ring(std::uint32_t ring) const noexcept {
    for (std::size_t place = 0; place < ring_count; ++place) {
      if (rings[place].ring == ring && place < rings_used) return place;
    }
    return ring_count;
  }
  /// Adds a ring to the recent ones, replacing the oldest.
  std::size_t add_ring(std::uint32_t ring) noexcept {
    const std::size_t place = next_ring;
    next_ring = (next_ring + 1) % ring_count;
    if (rings_used < ring_count) ++rings_used;
    rings[place] = {};
    rings[place].ring = ring;
    return place;
  }

  /// Index of an operation's name and category among the recent ones; `name_count` if it is not there.
  [[nodiscard]] std::size_t place_of_name(std::uint64_t label_and_tag) const noexcept {
    for (std::size_t place = 0; place < name_count; ++place) {
      if (names[place] == label_and_tag) return place;
    }
    return name_count;
  }
  void add_name(std::uint64_t label_and_tag) noexcept {
    names[next_name] = label_and_tag;
    next_name = (next_name + 1) % name_count;
  }

  block_slot slots[slot_count] = {};
  std::uint64_t last_stamp = 0;
  std::uint64_t last_address = 0;
  ring_state rings[ring_count] = {};
  std::uint64_t names[name_count] = {};
  std::size_t rings_used = 0;
  std::size_t next_ring = 0;
  std::size_t next_name = 0;
  std::uint8_t last_space = 0;
};

/// Writes what `packed_tail` read.
inline void set_packed_tail(event& target, std::uint64_t tail) noexcept { std::memcpy(&target.label, &tail, sizeof tail); }

}  // namespace memprof::inline MEMPROF_ABI::detail
