#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_reader.hpp>
#include <memprof/profile/reflect.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/device_presets.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

/// @file
/// Reads a `device_description` from a hand-written JSON file; docs/devices.md describes the format.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// A `device_space` as written in a file; omitted fields keep their defaults.
struct device_space_document {
  std::string name;
  std::int64_t capacity = 0;
  std::int64_t alignment = 1;
  std::int64_t size_multiple = 1;
  std::int64_t banks = 1;
  bool is_per_core = false;
  bool circular_buffers = false;
};

/// The same for a `device_description`.
struct device_document {
  std::string name;
  tensor_layout layout = tensor_layout::row_major;
  std::int64_t core_columns = 0;
  std::int64_t core_rows = 0;
  vector<device_space_document> spaces;
};

}  // namespace detail

template <>
inline constexpr auto& enumeration_names<tensor_layout> = detail::tensor_layout_names;

template <>
inline constexpr detail::name_list detail::field_names<detail::device_space_document>{
    "name", "capacity", "alignment", "size_multiple", "banks", "is_per_core", "circular_buffers"};
template <>
inline constexpr detail::name_list detail::later_fields<detail::device_space_document>{
    "capacity", "alignment", "size_multiple", "banks", "is_per_core", "circular_buffers"};

template <>
inline constexpr detail::name_list detail::field_names<detail::device_document>{"name", "layout", "core_columns", "core_rows",
                                                                                "spaces"};
template <>
inline constexpr detail::name_list detail::later_fields<detail::device_document>{"layout", "core_columns", "core_rows"};

namespace detail {

inline void require_in_range(std::int64_t value, std::int64_t least, std::int64_t most, const json_place& place) {
  if (value >= least && value <= most) return;
  raise_about_document(place.source, place.pointer() + " is " + std::to_string(value) + ", but must be from " +
                                         std::to_string(least) + " to " + std::to_string(most));
}

inline void require_power_of_two(std::int64_t value, const json_place& place) {
  require_in_range(value, 1, std::int64_t{1} << 40, place);
  if (std::has_single_bit(static_cast<std::uint64_t>(value))) return;
  raise_about_document(place.source, place.pointer() + " is " + std::to_string(value) + ", but must be a power of two");
}

[[nodiscard]] inline short_name to_short_name(const std::string& text, const json_place& place) {
  if (!text.empty() && text.size() <= short_name::max_size) return std::string_view{text};
  raise_about_document(place.source, place.pointer() + " has " + std::to_string(text.size()) + " bytes, but must have 1 to " +
                                         std::to_string(short_name::max_size));
}

[[nodiscard]] inline device_space to_device_space(const device_space_document& read, const device_document& device,
                                                  const json_place& place) {
  require_in_range(read.capacity, 0, std::numeric_limits<std::int64_t>::max(), place["capacity"]);
  require_power_of_two(read.alignment, place["alignment"]);
  require_power_of_two(read.size_multiple, place["size_multiple"]);
  require_in_range(read.banks, 1, 1 << 20, place["banks"]);
  if (read.is_per_core && (device.core_columns == 0 || device.core_rows == 0)) {
    raise_about_document(place.source, place["is_per_core"].pointer() + " needs /core_columns and /core_rows of the device");
  }
  return {.name = to_short_name(read.name, place["name"]),
          .capacity = read.capacity,
          .alignment = read.alignment,
          .size_multiple = read.size_multiple,
          .banks = read.banks,
          .is_per_core = read.is_per_core,
          .circular_buffers = read.circular_buffers};
}

}  // namespace detail

/// The value of the key "format" in a device file; its key "version" is 1.
inline constexpr std::string_view device_format = "memprof-device";

/// Parses a device from JSON text. Errors name `source` and the byte offset or the place in the document.
[[nodiscard]] inline device_description parse_device(std::string_view text, std::string_view source = "JSON text") {
  constexpr std::int64_t max_cores_a_side = 255;
  const detail::json_place root{{source, "a device description", "docs/devices.md describes the format"}};
  detail::json_input input{text};
  detail::device_document read;
  detail::read_document(input, root.source, {.format = device_format, .version = 1, .refuses_unknown_keys = true}, read);
  detail::require_in_range(read.core_columns, 0, max_cores_a_side, root["core_columns"]);
  detail::require_in_range(read.core_rows, 0, max_cores_a_side, root["core_rows"]);

  device_description device;
  device.name = detail::to_short_name(read.name, root["name"]);
  device.layout = read.layout;
  device.core_columns = static_cast<std::uint8_t>(read.core_columns);
  device.core_rows = static_cast<std::uint8_t>(read.core_rows);
  const detail::json_place spaces = root["spaces"];
  detail::require_in_range(static_cast<std::int64_t>(read.spaces.size()), 1, device_description::max_spaces, spaces);
  for (std::size_t index = 0; index < read.spaces.size(); ++index) {
    const detail::json_place place = spaces[index];
    const device_space space = detail::to_device_space(read.spaces[index], read, place);
    if (device.find_space(space.name.view()) != nullptr) {
      detail::raise_about_document(root.source, place["name"].pointer() + " is '" + read.spaces[index].name +
                                                    "', which an earlier space already has; rename one");
    }
    device.add(space);
  }
  return device;
}

/// Reads a device from a JSON file, like `parse_device`.
[[nodiscard]] inline device_description read_device(const std::filesystem::path& path) {
  return parse_device(detail::read_whole_file(path, detail::max_bytes_by_hand), path.string());
}

/// The device with that name: a preset, otherwise the file with that name. An error names the presets, or the problem with the
/// file.
[[nodiscard]] inline device_description find_device(const std::string& preset_or_file) {
  const auto& presets = device_preset_names;
  if (std::find(presets.begin(), presets.end(), preset_or_file) != presets.end()) return device_preset(preset_or_file);
  std::error_code ignored;
  if (!std::filesystem::exists(preset_or_file, ignored)) return device_preset(preset_or_file);  // its error lists the presets
  return read_device(preset_or_file);
}

}  // namespace memprof::inline MEMPROF_ABI
