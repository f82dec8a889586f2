#pragma once

#include <memprof/trace/coding.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Decodes the chunks of a trace into events and definitions.
///
/// Accepts arbitrary bytes: anything invalid ends the chunk, and everything before it has been delivered.
class trace_decoder {
 public:
  /// Begins a chunk.
  void restart() noexcept {
    state_.restart();
    ring_ = nullptr;
  }

  /// Passes the records in [in, end) to `visitor`: `events(first, last, ring)` for runs of one ring's events, at most `batch` at
  /// a time, and `definition(control, payload)` for the others. Returns where it stopped: `end`, or the first invalid record.
  template <class Visitor>
  [[nodiscard]] const unsigned char* decode(const unsigned char* in, const unsigned char* end, Visitor& visitor) {
    event batch[batch_size];
    std::size_t count = 0;
    std::uint64_t stamp = 0;
    const unsigned char* record = in;
    const auto hand_on = [&] {
      if (count != 0) visitor.events(batch, batch + count, ring_->ring);
      count = 0;
    };
    while (in != end) {
      record = in;
      const unsigned char first = *in++;
      if (first >= 0x80) {
        std::uint64_t change = first & 0x3FU;
        if ((first & 0x40U) != 0) {
          std::uint64_t upper = 0;
          in = get_varint(in, end, upper);
          if (in == nullptr) break;
          change |= upper << 6;
        }
        state_.last_stamp += static_cast<std::uint64_t>(unzigzag(change));
        stamp = state_.last_stamp;
        continue;
      }
      if (first < 0x10) {
        hand_on();
        in = take_control(first, in, end, visitor);
        if (in == nullptr) break;
        continue;
      }
      if (ring_ == nullptr) {
        in = nullptr;
        break;
      }
      event& next = batch[count];
      in = take_event(first, in, end, next);
      if (in == nullptr) break;
      next.stamp = stamp;
      stamp = 0;
      if (++count == batch_size) hand_on();
    }
    hand_on();
    return in == nullptr ? record : in;
  }

 private:
  static constexpr std::size_t batch_size = 256;

  template <class Visitor>
  [[nodiscard]] const unsigned char* take_control(unsigned char first, const unsigned char* in, const unsigned char* end,
                                                  Visitor& visitor) {
    constexpr auto first_ring = static_cast<unsigned char>(control::first_ring);
    if (first >= first_ring) {
      const std::size_t place = first - first_ring;
      if (place >= state_.rings_used) return nullptr;
      ring_ = &state_.rings[place];
      return in;
    }
    std::uint64_t value = 0;
    in = get_varint(in, end, value);
    if (in == nullptr || first == 0) return nullptr;
    if (first == static_cast<unsigned char>(control::ring)) {
      if (value > 0xFFFF'FFFFU) return nullptr;
      ring_ = &state_.rings[state_.add_ring(static_cast<std::uint32_t>(value))];
      return in;
    }
    if (value > static_cast<std::uint64_t>(end - in)) return nullptr;
    visitor.definition(static_cast<control>(first), std::string_view{reinterpret_cast<const char*>(in), std::size_t{value}});
    return in + value;
  }

  [[nodiscard, gnu::always_inline]] const unsigned char* take_event(unsigned char first, const unsigned char* in,
                                                                    const unsigned char* end, event& next) noexcept {
    const auto code = static_cast<opcode>(first & 0xF0U);
    if (code <= opcode::allocate_resized) {
      if (in == end) return nullptr;
      coding_state::block_slot& slot = state_.slots[(first & 0x0FU) << 8 | *in++];
      next.address = slot.address;
      next.bytes = slot.bytes;
      set_packed_tail(next, slot.tail);
      if (code == opcode::allocate_known) return in;
      if (code == opcode::allocate_resized) {
        in = get_varint(in, end, next.bytes);
        if (in != nullptr) slot.bytes = next.bytes;
        return in;
      }
      set_packed_tail(next, coding_state::tail_of_free(slot.tail));
      if (code == opcode::free_known_bare) next.bytes = 0;
      return in;
    }
    if (code == opcode::any_event) return take_any(first & 0x0FU, in, end, next);
    return take_scope(first, in, next);
  }

  [[nodiscard]] const unsigned char* take_scope(unsigned char first, const unsigned char* in, event& next) noexcept {
    coding_state::ring_state& ring = *ring_;
    next.bytes = 0;
    if (static_cast<opcode>(first & 0xF0U) == opcode::end_innermost) {
      if (ring.depth == 0 || (first & 0x0FU) != 0) return nullptr;
      const auto ended = ring.open[ring.depth - 1];
      next.address = ended.number;
      next.label = ended.label;
      next.kind = event_kind::scope_end;
      next.space = any_space;
      next.tag = 0;
      ring.end(ended.number);
      return in;
    }
    const std::size_t place = first & 0x0FU;
    if (place == coding_state::name_count) return nullptr;
    set_packed_tail(next, state_.names[place]);
    next.kind = event_kind::scope_begin;
    next.space = any_space;
    next.address = scope_address(ring.last_number + 1, ring.innermost());
    ring.begin(ring.last_number + 1, next.label);
    return in;
  }

  [[nodiscard]] const unsigned char* take_any(unsigned kind, const unsigned char* in, const unsigned char* end,
                                              event& next) noexcept {
    if (kind == 15) {
      if (in == end) return nullptr;
      kind = *in++;
    }
    if (in == end) return nullptr;
    const unsigned present = *in++;
    std::uint64_t value = 0;
    const auto take = [&] {
      if (in != nullptr) in = get_varint(in, end, value);
      return in != nullptr ? value : 0;
    };
    const bool is_memory = has_address(static_cast<event_kind>(kind));
    next.address = is_memory ? state_.last_address : 0;
    if ((present & distance_of_16) != 0) {
      next.address += static_cast<std::uint64_t>(unzigzag(take())) * 16;
    } else if ((present & distance) != 0) {
      next.address += static_cast<std::uint64_t>(unzigzag(take()));
    }
    next.bytes = (present & bytes_field) != 0 ? take() : 0;
    if ((present & space_field) != 0) {
      if (in == nullptr || in == end) return nullptr;
      state_.last_space = *in++;
    }
    const std::uint64_t label = (present & label_field) != 0 ? take() : 0;
    const std::uint64_t tag = (present & tag_field) != 0 ? take() : 0;
    if (in == nullptr || label > 0xFFFF'FFFFU || tag > 0xFFFFU || (present & 0xC0U) != 0) return nullptr;
    next.label = static_cast<std::uint32_t>(label);
    next.kind = static_cast<event_kind>(kind);
    next.space = state_.last_space;
    next.tag = static_cast<std::uint16_t>(tag);
    note(next);
    return in;
  }

  /// Updates the state as the encoder did after writing an event in full.
  void note(const event& taken) noexcept {
    if (has_address(taken.kind)) state_.last_address = taken.address;
    const std::uint64_t tail = packed_tail(taken);
    if (taken.kind == event_kind::scope_begin) {
      ring_->begin(static_cast<std::uint32_t>(taken.address), taken.label);
      const std::uint64_t label_and_tag = tail & 0xFFFF'0000'FFFF'FFFFU;
      if (state_.place_of_name(label_and_tag) == coding_state::name_count) state_.add_name(label_and_tag);
    } else if (taken.kind == event_kind::scope_end) {
      if (taken.address >> 32 == 0) ring_->end(static_cast<std::uint32_t>(taken.address));
    } else if (coding_state::is_allocation(static_cast<std::uint8_t>(taken.kind))) {
      state_.slots[coding_state::slot_of(taken.address)] = coding_state::slot_for(taken, tail);
    }
  }

  coding_state state_;
  coding_state::ring_state* ring_ = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
