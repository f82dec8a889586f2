#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pytorch/pickle_reader.hpp>
#include <memprof/toolkit/format/pytorch/pickle_value.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_fields.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_pickle.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
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

namespace {

void append_pickle_json(const pickle_reader& from, pickle_value value, int depth, std::string& out) {
  using type = pickle_value::type;
  constexpr int deepest = 8;  // a list in a hostile pickle may contain itself, even more than once
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
        append_pickle_json(from, items[index], depth + 1, out);
        if (is_dictionary) append_pickle_json(from, items[index + 1], depth + 1, out += ':');
      }
      out += is_dictionary ? '}' : ']';
      return;
    default: out += "null"; return;
  }
}

/// A value of a pickle: a text unchanged, anything else as JSON. Long values are cut, since they go into a table of facts.
std::string text_of_pickle(const pickle_reader& from, pickle_value value) {
  std::string out;
  if (value.is(pickle_value::type::text)) return std::string{from.text(value)};
  append_pickle_json(from, value, 0, out);
  return out;
}

/// Extracts the records of a snapshot from its pickle and hands them on as they are read.
class torch_pickle_handler final : public pickle_handler {
 public:
  using type = pickle_value::type;

  torch_pickle_handler(byte_reader& in, torch_stacks& stacks, torch_record_sink& sink) : in_(in), stacks_(stacks), sink_(sink) {}

  /// Called whenever items have been added to the list on top of the stack.
  void appended(pickle_reader& from, pickle_value list) override {
    const std::vector<pickle_value>& stack = from.stack();
    const std::size_t top = stack.size() - 1;
    if (!stack[0].is(type::dictionary) || top < 2) return;
    for (const std::string_view key : {"segments", "host_segments"}) {
      if (from.text(stack[top - 1]) != key) continue;
      if (!from.items(list).empty()) note_taken(list, std::string{key});
      return take(from, list, [&](pickle_value item) { add_segment(from, item, key == "host_segments"); });
    }
    if (is_host_history(from, stack, list)) {
      if (!from.items(list).empty()) note_taken(list, torch_device_name(torch_pinned));
      return take(from, list, [&](pickle_value item) { add_event(from, item, torch_pinned); });
    }
    // The list of a device is on top of the list of all devices, or after the earlier ones and a mark.
    const bool is_alone = stack[top - 1].is(type::list) && from.text(stack[top - 2]) == "device_traces";
    const std::size_t outer = is_alone ? top - 1 : from.marks().empty() ? 0 : std::max<std::size_t>(from.marks().back(), 1) - 1;
    if (outer < 2 || outer >= top || !stack[outer].is(type::list) || from.text(stack[outer - 1]) != "device_traces") return;
    const std::size_t device = from.items(stack[outer]).size() + (top - 1 - outer);
    if (!from.items(list).empty()) note_taken(list, "device " + std::to_string(device));
    take(from, list, [&](pickle_value item) { add_event(from, item, device); });
  }

  /// Handles what is left of the snapshot after all lists have been taken.
  void finish(pickle_reader& from) {
    const pickle_value whole = from.result();
    if (!whole.is(type::dictionary)) raise(place() + "a snapshot is a dictionary; this is not");
    std::uint32_t seen = 0;
    for_each_field(from, whole, [&](std::string_view key, pickle_value value) {
      if (!note_key(seen, sections, key)) raise(place() + "'" + std::string{key} + "' occurs twice in the snapshot");
      if (!is_torch_section(key)) sink_.unknown_section(key);
      if ((key == "segments" || key == "device_traces" || key == "host_segments" || key == "host_traces") &&
          !value.is(type::list))
        raise(place() + "'" + std::string{key} + "' must be a list");
      if (key == "device_traces") {
        check_devices(from, value);
      } else if (key == "trace_alloc_overflowed") {
        const std::vector<pickle_value>& items = from.items(value);
        for (std::size_t device = 0; device < items.size(); ++device) {
          if (items[device].is(type::boolean) && items[device].integer != 0) sink_.overflowed(device);
        }
      } else if (key == "allocator_settings") {
        for_each_field(from, value,
                       [&](std::string_view name, pickle_value setting) { sink_.setting(name, text_of_pickle(from, setting)); });
      } else if (key == "external_annotations") {
        for (const pickle_value item : from.items(value)) add_annotation(from, item);
      }
    });
    if ((seen & 3U) == 0) raise(place() + "a snapshot has 'segments' and 'device_traces', and this has neither");
  }

 private:
  [[nodiscard]] std::string place() const { return "cannot read '" + in_.path().string() + "': "; }

  static constexpr std::array<std::string_view, 5> sections{"segments", "device_traces", "trace_alloc_overflowed",
                                                            "host_segments", "host_traces"};

  /// Whether the list on top of the stack holds events of the host: `host_traces` itself, or a list in it.
  [[nodiscard]] static bool is_host_history(const pickle_reader& from, const std::vector<pickle_value>& stack,
                                            pickle_value list) {
    const std::vector<pickle_value>& items = from.items(list);
    if (!items.empty() && !items.front().is(type::dictionary)) return false;
    // In front of the list are its key, or the list it is in and the lists before it there.
    std::size_t index = stack.size() - 1;
    while (index > 1 && stack[index - 1].is(type::list)) --index;
    return index > 0 && from.text(stack[index - 1]) == "host_traces";
  }

  /// Two devices must not share one list: its events could belong to either.
  void note_taken(pickle_value list, const std::string& owner) {
    const auto [found, is_new] = owners_.try_emplace(list.index, owner);
    if (!is_new && found->second != owner) raise_about_sharing(found->second, owner);
  }
  void check_devices(const pickle_reader& from, pickle_value devices) {
    std::size_t number = 0;
    for (const pickle_value each : from.items(devices)) {
      const std::string device = "device " + std::to_string(number++);
      if (!each.is(type::list)) raise(place() + "the history of " + device + " must be a list");
      const auto found = owners_.find(each.index);
      if (found != owners_.end() && found->second != device) raise_about_sharing(found->second, device);
    }
  }
  [[noreturn]] void raise_about_sharing(const std::string& one, const std::string& other) const {
    raise(place() + one + " and " + other + " share one list of the pickle; expected one each");
  }

  template <class Add>
  void take(pickle_reader& from, pickle_value list, Add&& add) {
    // Items may share frames, so nothing can be dropped before all have been read.
    for (const pickle_value item : from.items(list)) add(item);
    for (const pickle_value item : from.items(list)) {
      if (item.is(type::dictionary)) from.drop(item);
    }
    for (const pickle_value read : read_) from.drop(read);
    read_.clear();
    for (const auto& [index, stack] : known_stacks_) drop(from, type::list, index, stack);
    for (const auto& [index, frame] : known_frames_) drop(from, type::dictionary, index, frame);
    known_stacks_.clear();
    known_frames_.clear();
    from.clear(list);
  }
  static void drop(pickle_reader& from, type kind, std::uint32_t index, std::uint32_t tag) {
    pickle_value gone;
    gone.kind = kind;
    gone.index = index;
    from.drop(gone, tag);
  }

  template <class Visit>
  static void for_each_field(const pickle_reader& from, pickle_value dictionary, Visit&& visit) {
    if (!dictionary.is(type::dictionary)) return;
    const std::vector<pickle_value>& items = from.items(dictionary);
    for (std::size_t index = 0; index + 1 < items.size(); index += 2) visit(from.text(items[index]), items[index + 1]);
  }
  [[nodiscard]] static torch_field field_of(const pickle_reader& from, std::string_view key, pickle_value value) {
    torch_field field{key, {}, {}, {}};
    if (value.is(type::integer)) field.integer = value.integer;
    if (value.is(type::boolean)) field.truth = value.integer != 0;
    if (value.is(type::text)) field.text = from.text(value);
    return field;
  }
  [[nodiscard]] static torch_expectation read_to(torch_pool& pool, const pickle_reader& from, pickle_value value) {
    const std::vector<pickle_value>& items = from.items(value);
    const bool is_pool = (value.is(type::tuple) || value.is(type::list)) && items.size() == 2 && items[0].is(type::integer) &&
                         items[1].is(type::integer);
    if (is_pool) pool = {items[0].integer, items[1].integer};
    return is_pool ? nullptr : torch_two_numbers;
  }
  void add_event(pickle_reader& from, pickle_value item, std::size_t device) {
    torch_event made;
    const auto what = [&] { return "event " + std::to_string(sink_.event_count(device)) + " of " + torch_device_name(device); };
    if (!item.is(type::dictionary)) refuse_item(what(), item);
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      torch_expectation fault = note_key(made.seen, torch_event::keys, key) ? nullptr : torch_only_once;
      if (value.is(type::none) && torch_may_be_null(key)) {
        // as if the key were missing
      } else if (fault == nullptr && key == "frames") {
        made.stack = stack_of(from, value, fault);
      } else if (fault == nullptr && key == "pool_id") {
        fault = read_to(made.pool, from, value);
      } else if (fault == nullptr) {
        fault = set(made, field_of(from, key, value), stacks_);
      }
      if (fault != nullptr) raise_about(what(), std::string{"'"}.append(key).append("' ").append(fault));
    });
    if (const torch_expectation lack = lack_of(made); lack != nullptr) raise_about(what(), lack);
    sink_.event(device, made);
  }
  void add_segment(pickle_reader& from, pickle_value item, bool is_of_host) {
    torch_segment made;
    pickle_value blocks;
    const std::string what = (is_of_host ? "host segment " : "segment ") + std::to_string(segments_[is_of_host ? 1 : 0]++);
    if (!item.is(type::dictionary)) refuse_item(what, item);
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      torch_expectation fault = note_key(made.seen, torch_segment::keys, key) ? nullptr : torch_only_once;
      if (fault == nullptr && key == "blocks") {
        blocks = value;
        fault = value.is(type::list) ? nullptr : torch_list;
      } else if (fault == nullptr && key == "segment_pool_id") {
        fault = read_to(made.pool, from, value);
      } else if (fault == nullptr) {
        fault = set(made, field_of(from, key, value));
      }
      if (fault != nullptr) raise_about(what, std::string{"'"}.append(key).append("' ").append(fault));
    });
    std::uint64_t next = made.address;
    std::size_t number = 0;
    for (const pickle_value block : from.items(blocks)) add_block(from, block, made, next, number++, what);
    if (blocks.is(type::list)) read_.push_back(blocks);
    if (is_of_host) made.device = std::int64_t{torch_pinned};
    sink_.segment(made);
  }
  void add_block(pickle_reader& from, pickle_value block, torch_segment& to, std::uint64_t& next, std::size_t number,
                 const std::string& segment) {
    torch_block_fields fields;
    const auto what = [&] { return "block " + std::to_string(number) + " of " + segment; };
    if (!block.is(type::dictionary)) refuse_item(what(), block);
    for_each_field(from, block, [&](std::string_view key, pickle_value value) {
      torch_expectation fault = note_key(fields.seen, torch_block_fields::keys, key) ? nullptr : torch_only_once;
      if (value.is(type::none) && torch_may_be_null(key)) {
        // likewise
      } else if (fault == nullptr && key == "frames") {
        fields.block.stack = stack_of(from, value, fault);
      } else if (fault == nullptr && key == "history") {
        read_history(from, value, fields);
      } else if (fault == nullptr) {
        fault = fields.set(field_of(from, key, value));
      }
      if (fault != nullptr) raise_about(what(), std::string{"'"}.append(key).append("' ").append(fault));
    });
    if (const torch_expectation lack = fields.lack(); lack != nullptr) raise_about(what(), lack);
    fields.add_to(to, next);
    read_.push_back(block);
  }
  /// What blocks had instead of frames until 2023.
  void read_history(pickle_reader& from, pickle_value history, torch_block_fields& fields) {
    if (from.items(history).empty()) return;
    torch_expectation ignored = nullptr;
    for_each_field(from, from.items(history).front(), [&](std::string_view name, pickle_value entry) {
      if (name == "frames") fields.block.stack = stack_of(from, entry, ignored);
      if (name == "real_size")
        fields.has_requested_size = read_bytes_to(fields.block.bytes, field_of(from, name, entry)) == nullptr;
    });
  }
  void add_annotation(const pickle_reader& from, pickle_value item) {
    torch_annotation made;
    torch_expectation fault = nullptr;
    for_each_field(from, item, [&](std::string_view key, pickle_value value) {
      if (key == "name") made.name = from.text(value);
      if (key == "stage") made.is_begin = from.text(value) == "START";
      if (key == "time_us") fault = read_time_to(made.time_us, field_of(from, key, value));
    });
    if (fault != nullptr) raise_about("annotation " + std::to_string(annotations_), std::string{"'time_us' "} + fault);
    ++annotations_;
    sink_.annotation(made);
  }

  /// The stack of a list of frames, innermost first.
  [[nodiscard]] std::uint32_t stack_of(const pickle_reader& from, pickle_value frames, torch_expectation& fault) {
    if (frames.is(type::dropped)) return stacks_.contains(frames.index) ? frames.index : 0;
    fault = frames.is(type::list) || frames.is(type::tuple) ? nullptr : torch_list;
    if (fault != nullptr) return 0;
    const auto known = known_stacks_.find(frames.index);
    if (known != known_stacks_.end()) return known->second;
    std::uint32_t stack = 0;
    const std::vector<pickle_value>& items = from.items(frames);
    for (std::size_t index = items.size(); index-- > 0;) stack = stacks_.within(stack, frame_of(from, items[index]));
    return known_stacks_[frames.index] = stack;
  }
  [[nodiscard]] label frame_of(const pickle_reader& from, pickle_value frame) {
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

  [[noreturn]] void raise_about(const std::string& what, const std::string& fault) const {
    raise(place() + what + " (before byte " + std::to_string(in_.offset()) + "): " + fault);
  }
  /// Rejects an item of a list in which a dictionary was expected.
  [[noreturn]] void refuse_item(const std::string& what, pickle_value item) const {
    raise_about(what, item.is(type::dropped) ? "expected a separate dictionary; this one occurred earlier in the file"
                                             : "expected a dictionary");
  }

  byte_reader& in_;
  torch_stacks& stacks_;
  torch_record_sink& sink_;
  std::array<std::uint64_t, 2> segments_{};  // of the devices and of the host
  std::uint64_t annotations_ = 0;
  std::unordered_map<std::uint32_t, std::string> owners_;          // of lists whose items have been taken
  std::vector<pickle_value> read_;                                 // blocks of segments, which are not needed again
  std::unordered_map<std::uint32_t, std::uint32_t> known_stacks_;  // by list, until all items that may share them are read
  std::unordered_map<std::uint32_t, label> known_frames_;          // by dictionary
};

}  // namespace

std::string read_torch_pickle(byte_reader& in, torch_stacks& stacks, torch_record_sink& sink) {
  torch_pickle_handler handler{in, stacks, sink};
  pickle_reader reader{in, handler};
  if (!reader.read()) return reader.fault();
  handler.finish(reader);
  if (in.left() == 0) return {};
  return "it goes on at byte " + std::to_string(in.offset()) + ", after the end of the pickle, as joined files do";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
