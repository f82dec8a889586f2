#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/format/byte_reader.hpp>
#include <memprof/format/json_text.hpp>
#include <memprof/format/pickle_reader.hpp>
#include <memprof/format/pickle_value.hpp>
#include <memprof/format/torch_snapshot_records.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Takes the records of a snapshot out of its pickle as they go by, and hands them to a `Sink`.
template <class Sink>
class torch_pickle_handler {
 public:
  using reader = pickle_reader<torch_pickle_handler>;
  using type = pickle_value::type;

  torch_pickle_handler(byte_reader& in, torch_stacks& stacks, Sink& sink) : in_(in), stacks_(stacks), sink_(sink) {}

  /// Called whenever items have been added to the list on top of the stack.
  void appended(reader& from, pickle_value list) {
    const std::vector<pickle_value>& stack = from.stack();
    const std::size_t top = stack.size() - 1;
    if (!stack[0].is(type::dictionary) || top < 2) return;
    if (from.text(stack[top - 1]) == "segments") return take(from, list, [&](pickle_value item) { add_segment(from, item); });
    // A list of a device lies on the list of all devices, or behind those before it and a mark.
    const bool is_alone = stack[top - 1].is(type::list) && from.text(stack[top - 2]) == "device_traces";
    const std::size_t outer = is_alone ? top - 1 : from.marks().empty() ? 0 : std::max<std::size_t>(from.marks().back(), 1) - 1;
    if (outer < 2 || outer >= top || !stack[outer].is(type::list) || from.text(stack[outer - 1]) != "device_traces") return;
    const std::size_t device = from.items(stack[outer]).size() + (top - 1 - outer);
    take(from, list, [&](pickle_value item) { add_event(from, item, device); });
  }

  /// What is left of the snapshot when all lists have been taken.
  void finish(reader& from) {
    const pickle_value whole = from.result();
    if (!whole.is(type::dictionary)) raise(place() + "a snapshot is a dictionary, and this is none");
    bool is_snapshot = false;
    for_each_field(from, whole, [&](std::string_view key, pickle_value value) {
      is_snapshot = is_snapshot || key == "segments" || key == "device_traces";
      if (key == "allocator_settings") {
        for_each_field(from, value,
                       [&](std::string_view name, pickle_value setting) { sink_.setting(name, text_of(from, setting)); });
      } else if (key == "external_annotations") {
        for (const pickle_value item : from.items(value)) add_annotation(from, item);
      }
    });
    if (!is_snapshot) raise(place() + "a snapshot has 'segments' and 'device_traces', and this has neither");
  }

 private:
  [[nodiscard]] std::string place() const { return "cannot read '" + in_.path().string() + "': "; }

  template <class Add>
  void take(reader& from, pickle_value list, Add&& add) {
    // Items may share frames with each other, so that nothing can be dropped before all have been read.
    for (const pickle_value item : from.items(list)) add(item);
    for (const pickle_value item : from.items(list)) {
      if (item.is(type::dictionary)) from.drop(item);
    }
    for (const auto& [index, stack] : known_stacks_) drop(from, type::list, index, stack);
    for (const auto& [index, frame] : known_frames_) drop(from, type::dictionary, index, frame);
    known_stacks_.clear();
    known_frames_.clear();
    from.clear(list);
  }
  static void drop(reader& from, type kind, std::uint32_t index, std::uint32_t tag) {
    pickle_value gone;
    gone.kind = kind;
    gone.index = index;
    from.drop(gone, tag);
  }

  template <class Visit>
  static void for_each_field(const reader& from, pickle_value dictionary, Visit&& visit) {
    if (!dictionary.is(type::dictionary)) return;
    const std::vector<pickle_value>& items = from.items(dictionary);
    for (std::size_t index = 0; index + 1 < items.size(); index += 2) visit(from.text(items[index]), items[index + 1]);
  }
  [[nodiscard]] static torch_field field_of(const reader& from, std::string_view key, pickle_value value) {
    torch_field field{key, {}, from.text(value)};
    if (value.is(type::integer) || value.is(type::boolean)) field.integer = value.integer;
    return field;
  }
  [[nodiscard]] static torch_pool pool_of(const reader& from, pickle_value value) {
    const std::vector<pickle_value>& items = from.items(value);
    if (items.size() != 2 || !items[0].is(type::integer) || !items[1].is(type::integer)) return {};
    return {items[0].integer, items[1].integer};
  }
  /// A setting: text as it is, all else as JSON.
  [[nodiscard]] static std::string text_of(const reader& from, pickle_value value) {
    std::string out;
    if (value.is(type::text)) return std::string{from.text(value)};
    append_json(from, value, 0, out);
    return out;
  }
  static void append_json(const reader& from, pickle_value value, int depth, std::string& out) {
    constexpr int deepest = 8;  // a list of a hostile pickle may be within itself, more than once
    if (out.size() > max_fact_text) return;
    const bool is_dictionary = value.is(type::dictionary);
    const std::vector<pickle_value>& items = from.items(value);
    const std::size_t step = is_dictionary ? 2 : 1;
    switch (value.kind) {
      case type::text: return append_json_string(out, from.text(value));
      case type::integer: out += std::to_string(value.integer); return;
      case type::boolean: out += value.integer != 0 ? "true" : "false"; return;
      case type::real: {
        std::array<char, 32> digits{};
        const std::string_view text{digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value.real).ptr};
        out += text;
        if (text.find_first_of(".en") == text.npos) out += ".0";
        return;
      }
      case type::list:
      case type::tuple:
      case type::dictionary:
        out += is_dictionary ? '{' : '[';
        for (std::size_t index = 0; index + step <= items.size() && depth < deepest; index += step) {
          if (index != 0) out += ',';
          append_json(from, items[index], depth + 1, out);
          if (is_dictionary) append_json(from, items[index + 1], depth + 1, out += ':');
        }
        out += is_dictionary ? '}' : ']';
        return;
      default: out += "null"; return;
    }
  }

  void add_event(reader& from, pickle_value item, std::size_t device) {
    torch_event made;
    const std::uint64_t number = sink_.event_count(device);
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      if (key == "frames") {
        made.stack = stack_of(from, value);
      } else if (key == "pool_id") {
        made.pool = pool_of(from, value);
      } else if (!set(made, field_of(from, key, value), stacks_)) {
        raise_about("event " + std::to_string(number) + " of device " + std::to_string(device), key);
      }
    });
    sink_.event(device, made);
  }
  void add_segment(reader& from, pickle_value item) {
    torch_segment made;
    pickle_value blocks;
    const std::string what = "segment " + std::to_string(segments_++);
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      if (key == "blocks") {
        blocks = value;
      } else if (key == "segment_pool_id") {
        made.pool = pool_of(from, value);
      } else if (!set(made, field_of(from, key, value))) {
        raise_about(what, key);
      }
    });
    std::uint64_t next = made.address;
    for (const pickle_value block : from.items(blocks)) {
      torch_block_fields fields;
      for_each_field(from, block, [&](std::string_view key, pickle_value value) {
        if (key == "frames") {
          fields.block.stack = stack_of(from, value);
        } else if (key == "history" && !from.items(value).empty()) {  // until 2023, in place of the frames
          for_each_field(from, from.items(value).front(), [&](std::string_view name, pickle_value entry) {
            if (name == "frames") fields.block.stack = stack_of(from, entry);
            if (name == "real_size" && entry.is(type::integer) && entry.integer >= 0) {
              fields.block.bytes = static_cast<std::uint64_t>(entry.integer);
              fields.has_requested_size = true;
            }
          });
        } else if (!fields.set(field_of(from, key, value))) {
          raise_about("a block of " + what, key);
        }
      });
      fields.add_to(made, next);
    }
    sink_.segment(made);
  }
  void add_annotation(const reader& from, pickle_value item) {
    torch_annotation made;
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      if (key == "name") made.name = from.text(value);
      if (key == "stage") made.is_begin = from.text(value) == "START";
      if (key == "time_us" && value.is(type::integer)) made.time_us = value.integer;
    });
    sink_.annotation(made);
  }

  /// The stack of a list of frames, innermost first.
  [[nodiscard]] std::uint32_t stack_of(const reader& from, pickle_value frames) {
    if (frames.is(type::dropped)) return stacks_.contains(frames.index) ? frames.index : 0;
    if (!frames.is(type::list)) return 0;
    const auto known = known_stacks_.find(frames.index);
    if (known != known_stacks_.end()) return known->second;
    std::uint32_t stack = 0;
    const std::vector<pickle_value>& items = from.items(frames);
    for (std::size_t index = items.size(); index-- > 0;) stack = stacks_.within(stack, frame_of(from, items[index]));
    return known_stacks_[frames.index] = stack;
  }
  [[nodiscard]] label frame_of(const reader& from, pickle_value frame) {
    if (frame.is(type::dropped)) return stacks_.name(frame.index).empty() ? 0 : frame.index;
    if (!frame.is(type::dictionary)) return 0;
    const auto known = known_frames_.find(frame.index);
    if (known != known_frames_.end()) return known->second;
    std::string_view name;
    std::string_view file;
    std::int64_t line = 0;
    for_each_field(from, frame, [&](std::string_view key, pickle_value value) {
      if (key == "name") name = from.text(value);
      if (key == "filename") file = from.text(value);
      if (key == "line" && value.is(type::integer)) line = value.integer;
    });
    return known_frames_[frame.index] = stacks_.frame(name, file, line);
  }

  [[noreturn]] void raise_about(const std::string& what, std::string_view key) const {
    raise(place() + what + " (before byte " + std::to_string(in_.offset()) + "): '" + std::string{key} +
          "' must be a whole number below 2^63, and where it is no time not below 0");
  }

  byte_reader& in_;
  torch_stacks& stacks_;
  Sink& sink_;
  std::uint64_t segments_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> known_stacks_;  // by list, until the items that may share them are read
  std::unordered_map<std::uint32_t, label> known_frames_;          // by dictionary
};

/// Reads a snapshot from a pickle. What ended it early, as a sentence without its stop; empty: nothing did. Raises an error if
/// the pickle is no snapshot.
template <class Sink>
[[nodiscard]] std::string read_torch_pickle(byte_reader& in, torch_stacks& stacks, Sink& sink) {
  torch_pickle_handler<Sink> handler{in, stacks, sink};
  pickle_reader<torch_pickle_handler<Sink>> reader{in, handler};
  if (!reader.read()) return reader.fault();
  handler.finish(reader);
  return {};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
