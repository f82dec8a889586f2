#pragma once

#include <memprof/profile/json_output.hpp>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// @file
/// JSON written through nlohmann/json, because it consists of many small parts or is needed as a document.

namespace memprof::inline MEMPROF_ABI::detail {

/// Converts a field of any type to JSON: a struct to an object, a vector to an array, an enumeration to its name.
template <class T>
[[nodiscard]] nlohmann::ordered_json to_value(const T& source) {
  json_output out;
  put_json(out, source);
  return nlohmann::ordered_json::parse(out.text());
}

/// The value, or null.
template <class T>
[[nodiscard]] nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// The text of a document, one line per value, so that line-based tools can compare two. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
