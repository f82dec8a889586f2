#pragma once

#include <memprof/memprof.hpp>

#include <memprof/profile/json_facts.hpp>
#include <memprof/profile/reflect.hpp>

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// @file
/// The half of `profile/json.hpp` that writes.

namespace memprof::detail {

/// What a field of any type is in JSON: a struct an object, a vector an array, an enumeration its name.
template <class T>
[[nodiscard]] nlohmann::ordered_json to_value(const T& source) {
  if constexpr (reflected<T>) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for_each_field(source, [&]<class Field>(std::string_view name, const Field& field) {
      nlohmann::ordered_json& value = object[std::string{name}];
      if constexpr (std::same_as<Field, std::string>) {
        if (field.empty() && is_among(nullable_fields<T>, name)) return;
      }
      value = to_value(field);
    });
    return object;
  } else if constexpr (std::same_as<T, std::vector<fact_table>>) {
    return facts_to_value(source);
  } else if constexpr (named_enumeration<T>) {
    return to_string(source);
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    return source;
  } else {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const auto& element : source) array.push_back(to_value(element));
    return array;
  }
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

}  // namespace memprof::detail
