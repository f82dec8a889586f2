#pragma once

#include <memprof/memprof.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_reader.hpp>
#include <memprof/profile/json_writer.hpp>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// @file
/// A profile as JSON: docs/profile.md describes the format, docs/profile.schema.json is its schema.
///
/// Bytes, counts and addresses are integers and keep all 64 bits; enumerations are names. Text that is not valid UTF-8 (the name
/// of an operation may be any bytes) is written with U+FFFD in the place of each invalid part, so only then a profile that is
/// read back differs. A number that is not finite is written as null and read back as not-a-number.

namespace memprof {

/// What the key "format" says.
inline constexpr std::string_view json_format = "memprof-profile";

/// What the key "version" says. It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t json_version = 1;

/// A profile as a JSON document. Its size is proportional to segments times the owners and blocks kept for each.
[[nodiscard]] inline nlohmann::ordered_json to_json(const profile& source) {
  nlohmann::ordered_json document = {{"format", json_format}, {"version", json_version}};
  document.update(detail::to_value(source));
  return document;
}

/// Writes a profile to a file as JSON. If that fails, a file that was there before stays as it was. A path such as /dev/stdout
/// works too. Errors name the path and the reason.
inline void write_json(const profile& source, const std::filesystem::path& path) {
  std::string text = detail::dump(to_json(source));
  text += '\n';
  detail::replace_whole_file(path, text);
}

/// The profile in a JSON document. Unknown keys are accepted, as later versions may add some. An error names `source`, the place
/// inside the document as a JSON pointer, and what is expected there.
[[nodiscard]] inline profile from_json(const nlohmann::ordered_json& document, std::string_view source = "JSON document") {
  const detail::json_place root{{source}};
  detail::check_format(document, root.source, json_format, json_version);
  profile result;
  detail::read_value(document, root, result);
  detail::check_references(result, root);
  return result;
}

/// The profile in a JSON text, as `from_json`. An error in the text itself names the byte offset.
[[nodiscard]] inline profile parse_json(std::string_view text, std::string_view source = "JSON text") {
  return from_json(detail::parse_document(text, {source}), source);
}

/// The profile in a file, as `parse_json`.
[[nodiscard]] inline profile read_json(const std::filesystem::path& path) {
  return parse_json(detail::read_whole_file(path), path.string());
}

}  // namespace memprof
