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
/// Profiles as JSON, read and written. A program that only writes them includes <memprof/profile/write_json.hpp>, which says what
/// is written, compiles in a fraction of the time, and does not need nlohmann/json.

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

/// The profile in a JSON document. Unknown keys are accepted, as later versions may add some. An error names `source`, the place
/// inside the document as a JSON pointer, and what is expected there.
[[nodiscard]] inline profile from_json(const nlohmann::ordered_json& document, std::string_view source = "JSON document") {
  profile result;
  detail::json_reader reader{{&detail::json_type_of<profile>, &result}, {source}, detail::profile_rules};
  detail::walk(document, reader);
  reader.finish();
  if (reader.version() == 1) detail::update_from_version_1(result);
  detail::check_references(result, {{source}});
  return result;
}

/// The profile in a JSON text, as `from_json`, in time proportional to the text and without a document in memory. Errors also
/// name the byte offset. What is nested deeper than 100 levels, and a key that comes twice, is refused.
[[nodiscard]] inline profile parse_json(std::string_view text, std::string_view source = "JSON text") {
  detail::json_input input{text};
  return detail::read_profile(input, source);
}

/// The profile in a file, as `parse_json`. Of the file only a small part is in memory at a time. It is read from where it stands;
/// `path` is its name for messages.
[[nodiscard]] inline profile read_json(std::FILE* file, const std::filesystem::path& path) {
  detail::json_input input{file, path};
  return detail::read_profile(input, path.string());
}

/// The same of the file of that name.
[[nodiscard]] inline profile read_json(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return read_json(file.get(), path);
}

}  // namespace memprof::inline MEMPROF_ABI
