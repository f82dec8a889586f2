#pragma once

#include "described.hpp"
#include "reflected_class.hpp"
#include "simulation.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

namespace memprof_python {

/// The type of a field in a signature, and the text of a default.
template <class Field>
[[nodiscard]] std::string type_text() {
  if constexpr (is_optional<Field>) {
    return type_text<typename Field::value_type>() + " | None";
  } else if constexpr (std::is_enum_v<Field>) {
    return literal_type<Field>();
  } else if constexpr (shown_by_name<Field>) {
    return "str";
  } else if constexpr (described<Field>) {
    return class_name<Field>();
  } else if constexpr (std::same_as<Field, bool>) {
    return "bool";
  } else {
    static_assert(std::integral<Field>);
    return "int";
  }
}

template <class Field>
[[nodiscard]] std::string default_text(const Field& value) {
  if constexpr (is_optional<Field>) {
    return value ? default_text(*value) : "None";
  } else if constexpr (std::is_enum_v<Field>) {
    return '\'' + std::string{value_names<Field>[static_cast<std::size_t>(value)]} + '\'';
  } else if constexpr (shown_by_name<Field>) {
    return '\'' + std::string{value.name.view()} + '\'';
  } else if constexpr (described<Field>) {
    return class_name<Field>() + "()";
  } else if constexpr (std::same_as<Field, bool>) {
    return value ? "True" : "False";
  } else {
    return std::to_string(value);
  }
}

/// Sets a field to what a caller passes for it. Raises TypeError or ValueError, which name the field.
template <class Field>
void set_field(Field& field, std::string_view name, nb::handle value) {
  const auto fail = [&](const std::string& expected) {
    throw nb::type_error((std::string{name} + ": expected " + expected + ", not " + nb::repr(value).c_str()).c_str());
  };
  if constexpr (is_optional<Field>) {
    field.reset();
    if (!value.is_none()) set_field(field.emplace(), name, value);
  } else if constexpr (std::is_enum_v<Field>) {
    std::string text;
    if (!nb::try_cast(value, text)) fail(literal_type<Field>());
    const auto found = std::find(value_names<Field>.begin(), value_names<Field>.end(), text);
    if (found == value_names<Field>.end())
      throw nb::value_error((std::string{name} + ": '" + text + "' is none of " + literal_type<Field>()).c_str());
    field = static_cast<Field>(found - value_names<Field>.begin());
  } else if constexpr (shown_by_name<Field>) {
    std::string text;
    if (!nb::try_cast(value, text)) fail("the name of a device");
    field = device_named(text);
  } else if (!nb::try_cast(value, field)) {
    fail(type_text<Field>());
  }
}

/// A constructor that takes each field by its keyword, typed, with the struct's own defaults.
template <described T>
void bind_constructor(nb::class_<T>& bound) {
  static const std::string signature = [] {
    const T defaults{};
    std::string text = "def __init__(self, *";
    for_each_index<T>([&]<std::size_t Index>() {
      using field = std::remove_const_t<described_type<T, Index>>;
      text += ", " + std::string{described_names<T>[Index]} + ": " + type_text<field>() + " = " +
              default_text(described_field<Index>(defaults));
    });
    return text + ") -> None";
  }();
  bound.def(
      "__init__",
      [](T* self, const nb::kwargs& given) {
        T made{};
        std::size_t known = 0;
        for_each_index<T>([&]<std::size_t Index>() {
          const std::string name{described_names<T>[Index]};
          if (!given.contains(name.c_str())) return;
          ++known;
          set_field(described_field<Index>(made), name, given[name.c_str()]);
        });
        if (known != given.size()) {
          std::string names;
          for (const std::string_view name : described_names<T>) names += (names.empty() ? "" : ", ") + std::string{name};
          throw nb::type_error((class_name<T>() + " has only the fields " + names).c_str());
        }
        new (self) T{made};
      },
      nb::sig(signature.c_str()));
}

}  // namespace memprof_python
