#pragma once

#include <memprof/trace/coding.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Where encoded records go.
struct encoded_bytes {
  unsigned char* next;
  unsigned char* end;

  [[nodiscard]] std::size_t room() const noexcept { return static_cast<std::size_t>(end - next); }
};

/// Encodes events as the bytes of a trace, described in docs/trace_format.md: two to six bytes per event.
class trace_encoder {
 public:
  /// Maximum size of an event's record, including a preceding stamp and ring.
  static constexpr std::size_t max_event_bytes = 64;

  /// Begins a chunk.
  void restart() noexcept {
    state_.restart();
    ring_ = nullptr;
    std::memset(places_, 0, sizeof places_);
  }

  /// Writes as many of the events [first, last) of a ring as fit into `out`, and returns the first one not written.
  [[nodiscard]] const event* encode(const event* first, const event* last, std::uint32_t ring, encoded_bytes& out) noexcept {
    // As many at a time as fit whatever their length: one check for many events.
    for (std::size_t fitting; (fitting = out.room() / max_event_bytes) != 0 && first != last;) {
      unsigned char* next = turn_to(ring, out.next);
      const auto left = static_cast<std::size_t>(last - first);
      const event* const end = first + (left < fitting ? left : fitting);
      for (; first != end; ++first) {
        if (end - first > prefetch_distance) prefetch_slot(first[prefetch_distance].address);
        next = put(*first, next);
      }
      out.next = next;
    }
    return first;
  }

  /// Writes the same bytes for events of several rings. Threads that record at once alternate at nearly every event, and nobody
  /// can predict whose the next one is.
  [[nodiscard]] const ordered_event* encode(const ordered_event* first, const ordered_event* last, encoded_bytes& out) noexcept {
    for (std::size_t fitting; (fitting = out.room() / max_event_bytes) != 0 && first != last;) {
      unsigned char* next = out.next;
      const auto left = static_cast<std::size_t>(last - first);
      const ordered_event* const end = first + (left < fitting ? left : fitting);
      for (; first != end; ++first) {
        if (end - first > prefetch_distance) prefetch_slot(first[prefetch_distance].recorded->address);
        next = put(*first->recorded, turn_between(first->ring, next));
      }
      out.next = next;
    }
    return first;
  }

  /// Writes a record of the control nibble with its length; `out` must have room for it. Its payload may come in two parts.
  static void put_control(control kind, std::string_view payload, std::string_view more, encoded_bytes& out) noexcept {
    *out.next++ = static_cast<unsigned char>(kind);
    out.next = put_varint(out.next, payload.size() + more.size());
    for (const std::string_view part : {payload, more}) {
      if (!part.empty()) std::memcpy(out.next, part.data(), part.size());
      out.next += part.size();
    }
  }
  [[nodiscard]] static constexpr std::size_t control_bytes(std::size_t payload) noexcept {
    return payload + 1 + max_varint_bytes;
  }

 private:
  static constexpr std::uint32_t place_count = 32;
  static constexpr std::ptrdiff_t prefetch_distance = 6;  ///< in events: the slots exceed a first-level cache

  void prefetch_slot(std::uint64_t address) const noexcept {
    __builtin_prefetch(&state_.slots[coding_state::slot_of(address)], 1);
  }

  [[nodiscard]] unsigned char* turn_to(std::uint32_t ring, unsigned char* out) noexcept {
    if (ring_ != nullptr && ring_->ring == ring) return out;
    std::size_t place = state_.place_of_ring(ring);
    if (place != coding_state::ring_count) {
      *out++ = static_cast<unsigned char>(static_cast<std::size_t>(control::first_ring) + place);
    } else {
      *out++ = static_cast<unsigned char>(control::ring);
      out = put_varint(out, ring);
      place = state_.add_ring(ring);
    }
    ring_ = &state_.rings[place];
    places_[ring % place_count] = static_cast<std::uint8_t>(place);
    return out;
  }

  /// The same without a branch on whether the ring changes: its record is always written, and then kept or not.
  [[nodiscard, gnu::always_inline]] unsigned char* turn_between(std::uint32_t ring, unsigned char* out) noexcept {
    const std::size_t place = places_[ring % place_count];
    coding_state::ring_state* const next = &state_.rings[place];
    if (next->ring != ring || place >= state_.rings_used) [[unlikely]]
      return turn_to(ring, out);
    *out = static_cast<unsigned char>(static_cast<std::size_t>(control::first_ring) + place);
    out += ring_ != next ? 1 : 0;
    ring_ = next;
    return out;
  }

  [[nodiscard, gnu::always_inline]] unsigned char* put(const event& source, unsigned char* out) noexcept {
    if (source.stamp != 0) out = put_stamp(source.stamp, out);
    const std::uint64_t tail = packed_tail(source);
    const std::size_t place = coding_state::slot_of(source.address);
    coding_state::block_slot& slot = state_.slots[place];
    if (slot.address == source.address) [[likely]] {
      if (slot.tail == tail) {
        // No processor can predict whether a block has the same size as the one before: the size is always written, and then kept
        // or not.
        const bool is_same = slot.bytes == source.bytes;
        slot.bytes = source.bytes;
        unsigned char* const behind_slot = put_slot(is_same ? opcode::allocate_known : opcode::allocate_resized, place, out);
        unsigned char* const behind_bytes = put_varint(behind_slot, source.bytes);
        return is_same ? behind_slot : behind_bytes;
      }
      if (slot.tail_of_free == tail) {
        if (slot.bytes == source.bytes) return put_slot(opcode::free_known, place, out);
        if (source.bytes == 0) return put_slot(opcode::free_known_bare, place, out);
      }
    }
    if (source.kind == event_kind::scope_begin || source.kind == event_kind::scope_end) return put_scope(source, tail, out);
    if (coding_state::is_allocation(static_cast<std::uint8_t>(source.kind))) slot = coding_state::slot_for(source, tail);
    return put_any(source, out);
  }

  [[nodiscard]] static unsigned char* put_slot(opcode code, std::size_t place, unsigned char* out) noexcept {
    const auto low_byte_last = __builtin_bswap16(static_cast<std::uint16_t>(place));
    const auto both = static_cast<std::uint16_t>(low_byte_last | static_cast<unsigned>(code));
    std::memcpy(out, &both, sizeof both);
    return out + sizeof both;
  }

  /// Writes the difference to the last stamp: the lowest six bits here, the tail after it if there is any.
  [[nodiscard]] unsigned char* put_stamp(std::uint64_t stamp, unsigned char* out) noexcept {
    const std::uint64_t change = zigzag(static_cast<std::int64_t>(stamp - state_.last_stamp));
    state_.last_stamp = stamp;
    if (change < 0x2000) [[likely]] {  // without a branch on whether there is a tail, as two threads' stamps are this close
      const unsigned has_tail = change >= 0x40 ? 1 : 0;
      out[0] = static_cast<unsigned char>(0x80 | has_tail << 6 | (change & 0x3F));
      out[1] = static_cast<unsigned char>(change >> 6);
      return out + 1 + has_tail;
    }
    *out++ = static_cast<unsigned char>(0xC0 | (change & 0x3F));
    return put_varint(out, change >> 6);
  }

  [[nodiscard, gnu::noinline]] unsigned char* put_scope(const event& source, std::uint64_t tail, unsigned char* out) noexcept {
    const auto number = static_cast<std::uint32_t>(source.address);
    const auto other = static_cast<std::uint32_t>(source.address >> 32);
    coding_state::ring_state& ring = *ring_;
    if (source.kind == event_kind::scope_end) {
      const bool is_innermost = other == 0 && ring.depth != 0 && ring.innermost() == number &&
                                ring.open[ring.depth - 1].label == source.label && source.bytes == 0 && source.tag == 0 &&
                                source.space == any_space;
      if (other == 0) ring.end(number);
      if (!is_innermost) return put_any(source, out);
      *out++ = static_cast<unsigned char>(opcode::end_innermost);
      return out;
    }
    const bool is_next =
        number == ring.last_number + 1 && other == ring.innermost() && source.bytes == 0 && source.space == any_space;
    ring.begin(number, source.label);
    const std::uint64_t label_and_tag = (tail & 0xFFFF'0000'FFFF'FFFFU);
    const std::size_t place = state_.place_of_name(label_and_tag);
    if (is_next && place != coding_state::name_count) {
      *out++ = static_cast<unsigned char>(static_cast<std::size_t>(opcode::begin_known) | place);
      return out;
    }
    if (place == coding_state::name_count) state_.add_name(label_and_tag);
    return put_any(source, out);
  }

  [[nodiscard, gnu::noinline]] unsigned char* put_any(const event& source, unsigned char* out) noexcept {
    const auto kind = static_cast<std::uint8_t>(source.kind);
    if (kind < 15) {
      *out++ = static_cast<unsigned char>(static_cast<std::uint8_t>(opcode::any_event) | kind);
    } else {
      *out++ = static_cast<unsigned char>(static_cast<std::uint8_t>(opcode::any_event) | 15U);
      *out++ = kind;
    }
    unsigned char* const fields = out++;
    unsigned present = 0;
    const bool is_memory = has_address(source.kind);
    const auto change = static_cast<std::int64_t>(source.address - (is_memory ? state_.last_address : 0));
    if (is_memory) state_.last_address = source.address;
    if (change != 0 && change % 16 == 0) {
      present |= distance_of_16;
      out = put_varint(out, zigzag(change / 16));
    } else if (change != 0) {
      present |= distance;
      out = put_varint(out, zigzag(change));
    }
    if (source.bytes != 0) {
      present |= bytes_field;
      out = put_varint(out, source.bytes);
    }
    if (source.space != state_.last_space) {
      present |= space_field;
      *out++ = state_.last_space = source.space;
    }
    if (source.label != 0) {
      present |= label_field;
      out = put_varint(out, source.label);
    }
    if (source.tag != 0) {
      present |= tag_field;
      out = put_varint(out, source.tag);
    }
    *fields = static_cast<unsigned char>(present);
    return out;
  }

  coding_state state_;
  coding_state::ring_state* ring_ = nullptr;
  std::uint8_t places_[place_count] = {};  ///< by id, where a ring was last among the recent ones
};

}  // namespace memprof::inline MEMPROF_ABI::detail
