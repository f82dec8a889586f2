#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/coding.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_part.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/payload.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Encoding of a trace's non-event records: docs/trace_format.md.

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// A memory space in a trace.
struct space_definition {
  std::uint8_t id = 0;
  label name = 0;
  std::int64_t capacity = 0;  ///< bytes; 0: no limit
  bool is_per_core = false;   ///< the capacity applies to each core
  label memory = 0;           ///< the memory it shares with others: `host_memory` or a name; 0: not shared

  bool operator==(const space_definition&) const = default;
};

}  // namespace extend

namespace detail {

/// Part of a saved state: what is live at that point of the trace, and the state of the capture's ledger. A reader that has seen
/// all events before does not need it; one that starts there, or after a gap, continues from it as if it had.
struct saved_state_part {
  std::uint64_t index = 0;  ///< index among the parts of the state, from 0
  bool is_last = false;
  std::string_view bytes;
};

}  // namespace detail

namespace extend {

/// Receives a trace record by record, in order. If it also has `bool saved_state(saved_state_part)`, it receives saved states,
/// and returns whether they are sound.
template <class T>
concept trace_visitor = requires(T visitor, const capture_info& info, std::string_view text, fact_part facts,
                                 const event* events) {
  visitor.info(info);
  visitor.name(label{}, text);
  visitor.space(space_definition{});
  visitor.facts(static_cast<fact_part&&>(facts));
  visitor.events(events, events, std::uint32_t{});
};

}  // namespace extend

namespace detail {

/// Calls `visit(tag, field)` for each field of a capture's information. Tags are permanent: a new field gets a new one.
template <class Info, class Visitor>
void for_each_info_field(Info& info, Visitor&& visit) {
  visit(1, info.library_version);
  visit(2, info.mode);
  visit(3, info.device);
  visit(4, info.begin_unix_ns);
  visit(5, info.begin_stamp);
  visit(6, info.timeline_points);
  visit(7, info.largest_blocks);
  visit(8, info.owners_per_segment);
  visit(9, info.process.id);
  visit(10, info.process.host);
  visit(11, info.process.command_line);
  visit(12, info.process.rank);
  visit(13, info.process.world_size);
  visit(14, info.process.local_rank);
  visit(15, info.full_segments);
  visit(16, info.segment_names);
  visit(17, info.operations);
  visit(18, info.leading_thread);
}

/// A field's tag, then its value as text: the varint of a number, or the characters, cut so that the record fits into a chunk.
[[nodiscard]] inline std::string encode_info(const capture_info& info) {
  payload_writer out;
  for_each_info_field(info, [&]<class Field>(unsigned tag, const Field& field) {
    out.number(tag);
    if constexpr (std::is_same_v<Field, std::string>) {
      out.text(std::string_view{field}.substr(0, label_table::max_name_bytes));
    } else {
      out.text(payload_writer{}.signed_number(static_cast<std::int64_t>(field)).bytes());
    }
  });
  return out.bytes();
}

[[nodiscard]] inline bool decode_info(std::string_view payload, capture_info& info) {
  payload_reader in{payload};
  bool is_sound = true;
  while (!in.is_at_end()) {
    const std::uint64_t read_tag = in.number();
    const std::string_view value = in.text();
    for_each_info_field(info, [&]<class Field>(unsigned tag, Field& field) {
      if (tag != read_tag) return;
      if constexpr (std::is_same_v<Field, std::string>) {
        field = value;
      } else {
        const std::int64_t number = payload_reader{value}.signed_number();
        field = static_cast<Field>(number);
        is_sound = is_sound && static_cast<std::int64_t>(field) == number;
      }
    });
  }
  return is_sound && !in.has_failed() && info.mode <= run_mode::no_dispatch && info.largest_blocks <= max_largest_blocks;
}

/// Passes a record of the control nibble to a visitor; false if it is invalid. Skips unknown kinds.
template <class Visitor>
[[nodiscard]] bool visit_definition(control kind, std::string_view payload, Visitor& visitor) {
  payload_reader in{payload};
  switch (kind) {
    case control::name: {
      const std::uint64_t id = in.number();
      if (in.has_failed() || id == 0 || id > 0xFFFF'FFFFU) return false;
      visitor.name(static_cast<label>(id), payload.substr(payload.size() - in.left()));
      return true;
    }
    case control::space: {
      space_definition space;
      const std::uint64_t id = in.number();
      const std::uint64_t name = in.number();
      space.capacity = in.signed_number();
      space.is_per_core = in.number() != 0;
      // Older traces name no memory; there, the space that always exists was in the host's.
      const std::uint64_t memory = in.is_at_end() ? (id == cpu_space ? 1 : 0) : in.number();
      if (in.has_failed() || id >= any_space || name > 0xFFFF'FFFFU || memory > host_memory || space.capacity < 0) return false;
      space.memory = memory == 1 ? host_memory : memory == 0 ? 0 : static_cast<label>(memory - 1);
      space.id = static_cast<std::uint8_t>(id);
      space.name = static_cast<label>(name);
      visitor.space(space);
      return true;
    }
    case control::header: {
      capture_info info;
      if (!decode_info(payload, info)) return false;
      visitor.info(info);
      return true;
    }
    case control::facts: {
      fact_part part;
      if (!decode_facts(payload, part)) return false;
      visitor.facts(std::move(part));
      return true;
    }
    case control::saved_state: {
      saved_state_part part;
      part.index = in.number();
      part.is_last = in.number() != 0;
      part.bytes = payload.substr(payload.size() - in.left());
      if (in.has_failed()) return false;
      if constexpr (requires { visitor.saved_state(part); }) return visitor.saved_state(part);
      return true;
    }
    default: return true;
  }
}

/// Calls `visit(head, bytes)` for each record of a saved state, with the two parts of its payload.
template <class Visitor>
void for_each_saved_state_part(const page_array<unsigned char>& state, Visitor&& visit) noexcept {
  constexpr std::size_t most = std::size_t{64} * 1024;
  std::size_t begin = 0;
  for (std::uint64_t index = 0; begin < state.size(); ++index) {
    const std::size_t size = state.size() - begin < most ? state.size() - begin : most;
    const bool is_last = begin + size == state.size();
    const small_payload head = small_payload{}.number(index).number(is_last ? 1 : 0);
    visit(head.view(), std::string_view{reinterpret_cast<const char*>(state.data() + begin), size});
    begin += size;
  }
}

[[nodiscard]] inline small_payload encode_space(const space_definition& space) noexcept {
  small_payload out;
  out.number(space.id).number(space.name).number(zigzag(space.capacity)).number(space.is_per_core ? 1 : 0);
  out.number(space.memory == host_memory ? 1 : space.memory == 0 ? 0 : space.memory + std::uint64_t{1});
  return out;
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
