#pragma once

#include <memprof/profile/json_output.hpp>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// @file
/// What is written with nlohmann/json, since it is made of many small parts or wanted as a document.

namespace memprof::inline MEMPROF_ABI::detail {

/// What a field of any type is in JSON: a struct an object, a vector an array, an enumeration its name.
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

/// The text of a document, one line a value, so that line-based tools can compare two. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
