#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_facts.hpp>
#include <memprof/profile/json_reader.hpp>
#include <memprof/profile/json_references.hpp>
#include <memprof/profile/json_types.hpp>
#include <memprof/profile/json_writer.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/write_json.hpp>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// @file
/// Reads and writes profiles as JSON. A program that only writes them should include <memprof/profile/write_json.hpp>, which
/// describes the format, compiles in a fraction of the time, and does not need nlohmann/json.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

inline constexpr json_rules profile_rules{.format = json_format, .version = json_version, .oldest_version = 1};

[[nodiscard]] inline profile read_profile(json_input& input, std::string_view source) {
  profile result;
  if (read_document(input, {source}, profile_rules, result) == 1) update_from_version_1(result);
  check_references(result, {{source}});
  return result;
}

}  // namespace detail

/// A profile as a JSON document. Its size is proportional to segments times the owners and blocks kept for each.
[[nodiscard]] inline nlohmann::ordered_json to_json(const profile& source) {
  return nlohmann::ordered_json::parse(to_json_text(source));
}

/// Reads a profile from a JSON document. Unknown keys are accepted, because later versions may add some. Errors name `source`,
/// the place as a JSON pointer, and what is expected there.
[[nodiscard]] inline profile from_json(const nlohmann::ordered_json& document, std::string_view source = "JSON document") {
  profile result;
  detail::json_reader reader{{&detail::json_type_of<profile>, &result}, {source}, detail::profile_rules};
  detail::walk(document, reader);
  reader.finish();
  if (reader.version() == 1) detail::update_from_version_1(result);
  detail::check_references(result, {{source}});
  return result;
}

/// Parses a profile from JSON text, like `from_json`, in time proportional to the text and without a document in memory. Errors
/// also name the byte offset. Rejects nesting deeper than 100 levels and duplicate keys.
[[nodiscard]] inline profile parse_json(std::string_view text, std::string_view source = "JSON text") {
  detail::json_input input{text};
  return detail::read_profile(input, source);
}

/// Reads a profile from a file, like `parse_json`, starting at its current position. Only a small part of the file is in memory
/// at a time. `path` is its name for messages.
[[nodiscard]] inline profile read_json(std::FILE* file, const std::filesystem::path& path) {
  detail::json_input input{file, path};
  return detail::read_profile(input, path.string());
}

/// The same, given the file's name.
[[nodiscard]] inline profile read_json(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return read_json(file.get(), path);
}

}  // namespace memprof::inline MEMPROF_ABI
