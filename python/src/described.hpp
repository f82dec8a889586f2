#pragma once

#include <memprof/detail/struct_fields.hpp>
#include <memprof/profile/reflect.hpp>

#include <array>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// @file
/// The fields of any aggregate and the names of any enumeration, as Boost.PFR 2.2 and magic_enum find them: from what the
/// compiler says of a pointer to a field, and of a value. Structs that the library names (`memprof::reflected`) keep those names.

namespace memprof_python {

namespace detail {

/// Stands for a field of any type while fields are counted; never made.
struct any_field {
  template <class Field>
  [[noreturn]] operator Field() const noexcept {
    __builtin_trap();
  }
};

template <class T, std::size_t... Indexes>
constexpr bool takes_fields(std::index_sequence<Indexes...>) {
  return requires { T{((void)Indexes, any_field{})...}; };
}

template <class T, std::size_t Count = 1>
constexpr std::size_t counted_fields() {
  if constexpr (takes_fields<T>(std::make_index_sequence<Count + 1>{})) {
    return counted_fields<T, Count + 1>();
  } else {
    return Count;
  }
}

/// Whose fields have addresses that the compiler names; never made.
template <class T>
union pretended_value {
  char none;
  T value;
  pretended_value() : none{} {}
  ~pretended_value() {}
};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
template <class T>
extern const pretended_value<T> pretended;

template <class Pointer>
struct field_pointer {
  Pointer at;
};
template <class Pointer>
field_pointer(Pointer) -> field_pointer<Pointer>;

/// `steps` of "[with auto Pointer = ...{(& ...value.memprof::leak_report::steps)}; ...]" (GCC) or "[Pointer =
/// {&...value.steps}]".
template <auto Pointer>
constexpr std::string_view pointed_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find('}', text.find("Pointer = ")));
  while (text.ends_with(')')) text.remove_suffix(1);
  return text.substr(text.find_last_of(":.") + 1);
}

template <class T, std::size_t... Indexes>
constexpr auto found_names(std::index_sequence<Indexes...>) {
  constexpr auto pointers = memprof::detail::with_fields<sizeof...(Indexes)>(
      pretended<T>.value, [](const auto&... fields) { return std::tuple{&fields...}; });
  return std::array<std::string_view, sizeof...(Indexes)>{pointed_name<field_pointer{std::get<Indexes>(pointers)}>()...};
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// `grows` for `growth_kind::grows`; empty for a value without a name.
template <auto Value>
constexpr std::string_view enumerator_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("Value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  return text.starts_with('(') ? std::string_view{} : text.substr(text.rfind(':') + 1);
}

template <class E, std::size_t Count = 0>
constexpr std::size_t counted_enumerators() {
  if constexpr (enumerator_name<static_cast<E>(Count)>().empty()) {
    return Count;
  } else {
    return counted_enumerators<E, Count + 1>();
  }
}

template <class E, std::size_t... Indexes>
constexpr auto found_enumerators(std::index_sequence<Indexes...>) {
  return std::array<std::string_view, sizeof...(Indexes)>{enumerator_name<static_cast<E>(Indexes)>()...};
}

}  // namespace detail

/// A struct whose fields can be found.
template <class T>
concept described = memprof::reflected<T> ||(std::is_aggregate_v<T>&& std::is_class_v<T> && !std::ranges::range<T>);

template <described T>
constexpr std::size_t count_fields() {
  if constexpr (memprof::reflected<T>) {
    return memprof::detail::field_names<T>.size();
  } else {
    return detail::counted_fields<T>();
  }
}

/// The names of the fields, in order.
template <described T>
constexpr auto names_of_fields() {
  if constexpr (memprof::reflected<T>) {
    std::array<std::string_view, count_fields<T>()> names{};
    for (std::size_t index = 0; index < names.size(); ++index) names[index] = memprof::detail::field_names<T>[index];
    return names;
  } else {
    return detail::found_names<T>(std::make_index_sequence<count_fields<T>()>{});
  }
}
template <described T>
inline constexpr auto described_names = names_of_fields<T>();

template <std::size_t Index, described T>
[[nodiscard]] constexpr auto& described_field(T& value) noexcept {
  return memprof::detail::with_fields<count_fields<std::remove_const_t<T>>()>(
      value, [](auto&... fields) -> auto& { return memprof::detail::field_among<Index>(fields...); });
}
template <described T, std::size_t Index>
using described_type = std::remove_reference_t<decltype(described_field<Index>(std::declval<T&>()))>;

/// Calls `use.template operator()<Index>()` for the index of each field.
template <described T, class Use>
constexpr void for_each_index(Use&& use) {
  [&]<std::size_t... Indexes>(std::index_sequence<Indexes...>) { (use.template operator()<Indexes>(), ...); }
  (std::make_index_sequence<count_fields<T>()>{});
}

/// The names of an enumeration's values, from 0 on.
template <class E>
requires std::is_enum_v<E>
constexpr auto names_of_values() {
  if constexpr (memprof::named_enumeration<E>) {
    std::array<std::string_view, std::size(memprof::enumeration_names<E>)> names{};
    for (std::size_t index = 0; index < names.size(); ++index) names[index] = memprof::enumeration_names<E>[index];
    return names;
  } else {
    return detail::found_enumerators<E>(std::make_index_sequence<detail::counted_enumerators<E>()>{});
  }
}
template <class E>
inline constexpr auto value_names = names_of_values<E>();

}  // namespace memprof_python
