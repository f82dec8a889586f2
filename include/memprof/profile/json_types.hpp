#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/json_value.hpp>
#include <memprof/profile/reflect.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// @file
/// How JSON values become struct fields, as tables that a reader walks while it receives the values: so a document is never in
/// memory as a whole.

namespace memprof::inline MEMPROF_ABI::detail {

struct json_type;

/// Where the next value goes; without a type, it is skipped.
struct json_target {
  const json_type* type = nullptr;
  void* object = nullptr;
};

/// A member of an object.
struct json_field {
  std::string_view name;
  bool is_required = false;
  const json_type* type = nullptr;
  void* (*of)(void* object) = nullptr;
};

/// How values of one C++ type are read: `assign` takes a scalar, `append` makes room for an array's next element, and an object
/// has `fields`, or `member` for arbitrary keys.
struct json_type {
  std::string (*expected)();                                        ///< a noun: "a string"
  bool (*assign)(void* target, const json_value& value) = nullptr;  ///< false: the value does not fit
  json_target (*append)(void* array) = nullptr;
  std::span<const json_field> fields = {};
  json_target (*member)(void* object, std::string_view key) = nullptr;  ///< without a type: the key is not allowed here

  [[nodiscard]] constexpr bool is_array() const noexcept { return append != nullptr; }
  [[nodiscard]] constexpr bool is_object() const noexcept { return assign == nullptr && append == nullptr; }
};

[[nodiscard]] inline bool assign_value(bool& target, const json_value& value) {
  target = value.truth;
  return value.kind == json_kind::boolean;
}

[[nodiscard]] inline bool assign_value(std::int64_t& target, const json_value& value) {
  constexpr std::uint64_t greatest = std::numeric_limits<std::int64_t>::max();
  target = value.kind == json_kind::integer ? value.integer : static_cast<std::int64_t>(value.natural);
  return value.kind == json_kind::integer || (value.kind == json_kind::natural && value.natural <= greatest);
}

[[nodiscard]] inline bool assign_value(std::uint64_t& target, const json_value& value) {
  target = value.natural;
  return value.kind == json_kind::natural;
}

/// A size, a count or a time.
struct natural_integer {};

/// Text that may be absent: null in JSON, empty in the struct.
struct optional_text {};

[[nodiscard]] inline bool assign_value(double& target, const json_value& value) {
  switch (value.kind) {
    case json_kind::null: target = std::numeric_limits<double>::quiet_NaN(); return true;
    case json_kind::integer: target = static_cast<double>(value.integer); return true;
    case json_kind::natural: target = static_cast<double>(value.natural); return true;
    case json_kind::real: target = value.real; return true;
    case json_kind::boolean:
    case json_kind::string:
    case json_kind::array:
    case json_kind::object: break;
  }
  return false;
}

[[nodiscard]] inline bool assign_value(std::string& target, const json_value& value) {
  if (value.kind != json_kind::string) return false;
  target = value.text;
  return true;
}

template <named_enumeration E>
[[nodiscard]] bool assign_value(E& target, const json_value& value) {
  constexpr auto& names = enumeration_names<E>;
  const auto found = value.kind == json_kind::string ? std::find(names.begin(), names.end(), value.text) : names.end();
  if (found == names.end()) return false;
  target = static_cast<E>(found - names.begin());
  return true;
}

/// What messages call a value of type T.
template <class T>
[[nodiscard]] std::string json_noun() {
  if constexpr (reflected<T>) {
    return "an object";
  } else if constexpr (named_enumeration<T>) {
    std::string text = "one of";
    for (const std::string_view name : enumeration_names<T>) text += " \"" + std::string{name} + '"';
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return "an integer of at most 63 bits and a sign";
  } else if constexpr (std::is_same_v<T, natural_integer>) {
    return "an integer from 0 to 2^63-1";
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return "an integer of at most 64 bits without a sign";
  } else if constexpr (std::is_same_v<T, double>) {
    return "a number or null";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "a string";
  } else if constexpr (std::is_same_v<T, optional_text>) {
    return "a string or null";
  } else {
    return "an array";
  }
}

template <class T>
[[nodiscard]] bool assign_to(void* target, const json_value& value) {
  return assign_value(*static_cast<T*>(target), value);
}

template <class T>
inline constexpr json_type json_type_of{.expected = &json_noun<T>, .assign = &assign_to<T>};

template <>
[[nodiscard]] inline bool assign_to<natural_integer>(void* target, const json_value& value) {
  return assign_value(*static_cast<std::int64_t*>(target), value) && value.kind == json_kind::natural;
}

template <>
[[nodiscard]] inline bool assign_to<optional_text>(void* target, const json_value& value) {
  auto& text = *static_cast<std::string*>(target);
  text.clear();
  return value.kind == json_kind::null || assign_value(text, value);
}

template <class Element>
[[nodiscard]] json_target append_to(void* array) {
  return {&json_type_of<Element>, &static_cast<vector<Element>*>(array)->emplace_back()};
}

template <class Element>
inline constexpr json_type json_type_of<vector<Element>>{.expected = &json_noun<vector<Element>>, .append = &append_to<Element>};

template <class T, std::size_t Index>
[[nodiscard]] void* field_of(void* object) {
  return &field_at<Index>(*static_cast<T*>(object));
}

template <class Names>
[[nodiscard]] constexpr bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// How the field with that index is read: not every integer may be negative, and not every text absent.
template <class T, std::size_t Index>
[[nodiscard]] constexpr const json_type* type_of_field() {
  using field = field_type<T, Index>;
  if constexpr (std::is_same_v<field, std::int64_t>) {
    if (!is_among(signed_fields<T>, field_names<T>[Index])) return &json_type_of<natural_integer>;
  }
  if constexpr (std::is_same_v<field, std::string>) {
    if (is_among(nullable_fields<T>, field_names<T>[Index])) return &json_type_of<optional_text>;
  }
  return &json_type_of<field>;
}

template <class T, std::size_t... Indexes>
[[nodiscard]] constexpr std::array<json_field, sizeof...(Indexes)> make_json_fields(std::index_sequence<Indexes...>) {
  return {json_field{.name = field_names<T>[Indexes],
                     .is_required = !is_among(later_fields<T>, field_names<T>[Indexes]),
                     .type = type_of_field<T, Indexes>(),
                     .of = &field_of<T, Indexes>}...};
}

template <reflected T>
inline constexpr auto json_fields_of = make_json_fields<T>(std::make_index_sequence<field_count<T>>{});

template <reflected T>
inline constexpr json_type json_type_of<T>{.expected = &json_noun<T>, .fields = json_fields_of<T>};

}  // namespace memprof::inline MEMPROF_ABI::detail
