#pragma once

#include "described.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memprof/profile/reflect.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

/// @file
/// Structs as Python classes with typed, read-only attributes. A field that is added to a struct is an attribute without a line
/// here.

namespace memprof_python {

namespace nb = nanobind;

/// `segment_usage` for `memprof::v0_1_0::segment_usage`.
template <class T>
[[nodiscard]] constexpr std::string_view unqualified_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

/// `SegmentUsage` for `segment_usage`.
template <class T>
[[nodiscard]] std::string class_name() {
  std::string name;
  bool begins_word = true;
  for (const char letter : unqualified_name<T>()) {
    if (letter != '_') name += begins_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    begins_word = letter == '_';
  }
  return name;
}

/// A field that is a list in Python.
template <class Field>
concept list_field = std::ranges::range<const Field> && !std::convertible_to<const Field&, std::string_view>;

/// A field that is its name in Python, as a device.
template <class Field>
concept shown_by_name = requires(const Field& field) {
  { field.name.view() } -> std::convertible_to<std::string_view>;
};

template <list_field Field>
using element_of = std::remove_cvref_t<std::ranges::range_reference_t<const Field>>;

template <class Field>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

template <described T>
nb::class_<T> bind_struct(nb::module_& module);

/// Binds the struct that a field holds or lists, once.
template <class Field>
void bind_type_of(nb::module_& module) {
  if constexpr (shown_by_name<Field> || std::same_as<Field, memprof::fact_table>) {
    return;
  } else if constexpr (described<Field>) {
    if (!nb::type<Field>().is_valid()) bind_struct<Field>(module);
  } else if constexpr (is_optional<Field>) {
    bind_type_of<typename Field::value_type>(module);
  } else if constexpr (list_field<Field>) {
    bind_type_of<element_of<Field>>(module);
  }
}

/// A value of an enumeration is its name; its type, the list of the names: `typing.Literal['normal', 'no_dispatch']`.
template <class E>
[[nodiscard]] std::string literal_type() {
  std::string names;
  for (const std::string_view name : value_names<E>) {
    names += (names.empty() ? "'" : ", '") + std::string{name} + '\'';
  }
  return "typing.Literal[" + names + "]";
}

/// The rows of all tables: `{"operator_totals": [{"name": "aten::addmm", "count": 12}, ...]}`.
template <class Tables>
[[nodiscard]] nb::dict rows_by_table(const Tables& tables) {
  nb::dict result;
  for (const memprof::fact_table& table : tables) {
    nb::list rows;
    for (const auto& values : table.rows) {
      nb::dict row;
      std::size_t column = 0;
      for (const memprof::fact_value& value : values) {
        const std::string& name = table.columns[column++];
        std::visit([&](const auto& cell) { row[nb::str(name.data(), name.size())] = nb::cast(cell); }, value);
      }
      rows.append(row);
    }
    result[nb::str(table.name.data(), table.name.size())] = rows;
  }
  return result;
}

template <std::size_t Index, class T>
void bind_field(nb::class_<T>& bound) {
  using field = described_type<T, Index>;
  static const std::string name{described_names<T>[Index]};
  if constexpr (std::is_enum_v<field>) {
    static const std::string signature = "def " + name + "(self) -> " + literal_type<field>();
    bound.def_prop_ro(
        name.c_str(),
        [](T& self) {
          const std::string_view text = value_names<field>[static_cast<std::size_t>(described_field<Index>(self))];
          return nb::str(text.data(), text.size());
        },
        nb::for_getter(nb::sig(signature.c_str())));
  } else if constexpr (shown_by_name<field>) {
    bound.def_prop_ro(name.c_str(), [](T& self) { return std::string{described_field<Index>(self).name.view()}; });
  } else if constexpr (is_optional<field>) {
    if constexpr (std::is_enum_v<typename field::value_type>) {
      static const std::string signature = "def " + name + "(self) -> " + literal_type<typename field::value_type>() + " | None";
      bound.def_prop_ro(
          name.c_str(),
          [](T& self) -> std::optional<std::string> {
            const auto& value = described_field<Index>(self);
            if (!value) return std::nullopt;
            return std::string{value_names<typename field::value_type>[static_cast<std::size_t>(*value)]};
          },
          nb::for_getter(nb::sig(signature.c_str())));
    } else {
      bound.def_prop_ro(
          name.c_str(), [](T& self) -> const field& { return described_field<Index>(self); }, nb::rv_policy::reference_internal);
    }
  } else if constexpr (list_field<field>) {
    if constexpr (std::same_as<element_of<field>, memprof::fact_table>) {
      static const std::string signature = "def " + name + "(self) -> dict[str, list[dict[str, int | float | str]]]";
      bound.def_prop_ro(
          name.c_str(), [](T& self) { return rows_by_table(described_field<Index>(self)); },
          nb::for_getter(nb::sig(signature.c_str())));
    } else {
      bound.def_prop_ro(name.c_str(), [](nb::handle_t<T> self) {
        nb::typed<nb::list, element_of<field>> elements;
        for (const auto& element : described_field<Index>(nb::cast<T&>(self))) {
          elements.append(nb::cast(element, nb::rv_policy::reference_internal, self));
        }
        return elements;
      });
    }
  } else {
    bound.def_prop_ro(
        name.c_str(), [](T& self) -> const field& { return described_field<Index>(self); }, nb::rv_policy::reference_internal);
  }
}

/// Whether two values are equal: by their operator, or field by field.
template <class T>
[[nodiscard]] bool are_equal(const T& left, const T& right) {
  if constexpr (std::equality_comparable<T> && !(list_field<T> || is_optional<T>)) {
    return left == right;
  } else if constexpr (is_optional<T>) {
    return left.has_value() == right.has_value() && (!left || are_equal(*left, *right));
  } else if constexpr (list_field<T>) {
    return std::ranges::equal(left, right, [](const auto& one, const auto& other) { return are_equal(one, other); });
  } else if constexpr (shown_by_name<T>) {
    return left.name.view() == right.name.view();
  } else {
    bool equal = true;
    for_each_index<T>(
        [&]<std::size_t Index>() { equal = equal && are_equal(described_field<Index>(left), described_field<Index>(right)); });
    return equal;
  }
}

/// `Segment(name='FORWARD_PASS', begin_ns=0)`: the fields that are single values.
template <class T>
[[nodiscard]] std::string representation(nb::handle self) {
  std::string text;
  for_each_index<T>([&]<std::size_t Index>() {
    using field = described_type<T, Index>;
    if constexpr (!described<field> && !list_field<field>) {
      const std::string name{described_names<T>[Index]};
      text += (text.empty() ? "" : ", ") + name + '=' + nb::repr(self.attr(name.c_str())).c_str();
    }
  });
  return class_name<T>() + '(' + text + ')';
}

template <described T>
nb::class_<T> bind_struct(nb::module_& module) {
  for_each_index<T>([&]<std::size_t Index>() { bind_type_of<described_type<T, Index>>(module); });
  nb::class_<T> bound(module, class_name<T>().c_str());
  for_each_index<T>([&]<std::size_t Index>() { bind_field<Index>(bound); });
  bound.def("__repr__", [](nb::handle_t<T> self) { return representation<T>(self); });
  bound.def(
      "__eq__", [](const T& left, const T& right) { return are_equal(left, right); }, nb::is_operator(),
      nb::sig("def __eq__(self, other: object, /) -> bool"));
  bound.attr("__hash__") = nb::none();
  return bound;
}

}  // namespace memprof_python
