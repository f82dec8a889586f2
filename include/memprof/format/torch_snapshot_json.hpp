#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/format/byte_reader.hpp>
#include <memprof/format/torch_snapshot_records.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Takes the records of a snapshot out of its JSON, each when its object ends.
template <class Sink>
class torch_json_handler {
 public:
  using json = nlohmann::ordered_json;

  torch_json_handler(const std::filesystem::path& path, torch_stacks& stacks, Sink& sink)
      : path_(path), stacks_(stacks), sink_(sink) {}

  /// As the parser of nlohmann/json calls it: false gives the value's memory back.
  bool operator()(int depth, json::parse_event_t what, json& parsed) {
    using event = json::parse_event_t;
    if (depth == 0) is_dictionary_ = is_dictionary_ || what == event::object_start;
    if (depth > deepest) raise_about("it", "is nested too deep for a snapshot");
    if (depth == 1 && what == event::key) {
      key_ = parsed.get<std::string>();
      is_snapshot_ = is_snapshot_ || key_ == "segments" || key_ == "device_traces";
      device_ = 0;
      return true;
    }
    if (key_ == "device_traces") {
      if (depth == 3 && what == event::object_end) return add_event(parsed), false;
      if (depth == 2 && what == event::array_end) return ++device_, false;
    } else if (key_ == "segments") {
      if (depth == 2 && what == event::object_end) return add_segment(parsed), false;
    } else if (key_ == "external_annotations") {
      if (depth == 2 && what == event::object_end) return add_annotation(parsed), false;
    } else if (key_ == "allocator_settings" && depth == 1 && what == event::object_end) {
      for (const auto& [name, value] : parsed.items())
        sink_.setting(name, value.is_string() ? value.template get<std::string>() : dump(value));
      return false;
    }
    return true;
  }
  void finish() const {
    if (!is_dictionary_ || !is_snapshot_)
      raise("cannot read '" + path_.string() + "': a snapshot has 'segments' and 'device_traces', and this has neither");
  }

 private:
  static constexpr int deepest = 64;

  [[nodiscard]] static std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }
  [[nodiscard]] static torch_field field_of(std::string_view key, const json& value) {
    torch_field field{key, {}, {}};
    if (value.is_string()) field.text = value.get_ref<const std::string&>();
    if (value.is_boolean()) field.integer = value.get<bool>() ? 1 : 0;
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        field.integer = static_cast<std::int64_t>(number);
    } else if (value.is_number_integer()) {
      field.integer = value.get<std::int64_t>();
    }
    return field;
  }
  [[nodiscard]] static torch_pool pool_of(const json& value) {
    if (!value.is_array() || value.size() != 2) return {};
    return {field_of("", value[0]).integer.value_or(0), field_of("", value[1]).integer.value_or(0)};
  }

  void add_event(const json& item) {
    torch_event made;
    for (const auto& [key, value] : item.items()) {
      if (key == "frames") {
        made.stack = stack_of(value);
      } else if (key == "pool_id") {
        made.pool = pool_of(value);
      } else if (!set(made, field_of(key, value), stacks_)) {
        raise_about("event " + std::to_string(sink_.event_count(device_)) + " of device " + std::to_string(device_),
                    whole_number(key));
      }
    }
    sink_.event(device_, made);
  }
  void add_segment(const json& item) {
    torch_segment made;
    const std::string what = "segment " + std::to_string(segments_++);
    for (const auto& [key, value] : item.items()) {
      if (key == "segment_pool_id") {
        made.pool = pool_of(value);
      } else if (!set(made, field_of(key, value))) {
        raise_about(what, whole_number(key));
      }
    }
    std::uint64_t next = made.address;
    const auto blocks = item.find("blocks");
    if (blocks != item.end() && blocks->is_array()) {
      for (const json& block : *blocks) {
        torch_block_fields fields;
        if (!block.is_object()) continue;
        for (const auto& [key, value] : block.items()) {
          if (key == "frames") {
            fields.block.stack = stack_of(value);
          } else if (!fields.set(field_of(key, value))) {
            raise_about("a block of " + what, whole_number(key));
          }
        }
        fields.add_to(made, next);
      }
    }
    sink_.segment(made);
  }
  void add_annotation(const json& item) {
    torch_annotation made;
    for (const auto& [key, value] : item.items()) {
      const torch_field field = field_of(key, value);
      if (key == "name") made.name = field.text;
      if (key == "stage") made.is_begin = field.text == "START";
      if (key == "time_us") made.time_us = field.integer.value_or(0);
    }
    sink_.annotation(made);
  }
  [[nodiscard]] std::uint32_t stack_of(const json& frames) {
    std::uint32_t stack = 0;
    if (!frames.is_array()) return stack;
    for (std::size_t index = frames.size(); index-- > 0;) {
      std::string_view name;
      std::string_view file;
      std::int64_t line = 0;
      if (!frames[index].is_object()) continue;
      for (const auto& [key, value] : frames[index].items()) {
        const torch_field field = field_of(key, value);
        if (key == "name") name = field.text;
        if (key == "filename") file = field.text;
        if (key == "line") line = field.integer.value_or(0);
      }
      stack = stacks_.within(stack, stacks_.frame(name, file, line));
    }
    return stack;
  }

  [[nodiscard]] static std::string whole_number(const std::string& key) {
    return "'" + key + "' must be a whole number below 2^63, and where it is no time not below 0";
  }
  [[noreturn]] void raise_about(const std::string& what, const std::string& fault) const {
    raise("cannot read '" + path_.string() + "': " + what + ": " + fault);
  }

  std::filesystem::path path_;
  torch_stacks& stacks_;
  Sink& sink_;
  std::string key_;
  bool is_dictionary_ = false;
  bool is_snapshot_ = false;
  std::size_t device_ = 0;
  std::uint64_t segments_ = 0;
};

/// Reads a snapshot from JSON, likewise. `file` stands at its begin.
template <class Sink>
[[nodiscard]] std::string read_torch_json(std::FILE* file, const std::filesystem::path& path, torch_stacks& stacks, Sink& sink) {
  torch_json_handler<Sink> handler{path, stacks, sink};
  try {
    const nlohmann::ordered_json rest = nlohmann::ordered_json::parse(file, std::ref(handler));
    (void)rest;
  } catch (const nlohmann::ordered_json::parse_error& fault) {
    return "byte " + std::to_string(fault.byte) + ": not JSON from here on";
  } catch (const nlohmann::ordered_json::out_of_range&) {
    return "it has a number that no computer can hold";
  }
  handler.finish();
  return {};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
