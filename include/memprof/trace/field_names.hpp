#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <string_view>

/// @file
/// The declared names of a struct's fields, for `profile/reflect.hpp` and for facets, which declare their own.

namespace memprof::inline MEMPROF_ABI::detail {

/// Names in order; the compiler counts them: `name_list{"first", "second"}`. Cheaper to compile than `std::to_array`.
template <std::size_t Count>
struct name_list {
  std::string_view names[Count];

  [[nodiscard]] static constexpr std::size_t size() noexcept { return Count; }
  [[nodiscard]] constexpr const std::string_view* begin() const noexcept { return names; }
  [[nodiscard]] constexpr const std::string_view* end() const noexcept { return names + Count; }
  [[nodiscard]] constexpr const std::string_view& operator[](std::size_t index) const noexcept { return names[index]; }
};
template <class... Names>
name_list(Names...) -> name_list<sizeof...(Names)>;

struct not_reflected {};

/// Names of a struct's fields, in order of declaration. Specialise it to make a struct `reflected`.
template <class T>
inline constexpr not_reflected field_names{};

/// The fields in `field_names<T>` that a document from an earlier memprof may lack; they keep their defaults. Empty while a
/// struct is as in version 1 of the format. Specialise it when a field is added.
template <class T>
inline constexpr std::array<std::string_view, 0> later_fields{};

/// The integer fields in `field_names<T>` that may be negative. All other integers are sizes, counts or times, and a document
/// with a negative one is rejected. Specialise it when such a field is added.
template <class T>
inline constexpr std::array<std::string_view, 0> signed_fields{};

/// The text fields in `field_names<T>` that are null in a document if empty in the struct.
template <class T>
inline constexpr std::array<std::string_view, 0> nullable_fields{};

/// A list of types as a value, to iterate over: `list.each([]<class T>() { ... })`.
template <class... Types>
struct type_list {
  template <class Function>
  constexpr void each(Function function) const {
    (function.template operator()<Types>(), ...);
  }
};

/// Concatenates two lists.
template <class... Left, class... Right>
type_list<Left..., Right...> operator+(type_list<Left...>, type_list<Right...>);

}  // namespace memprof::inline MEMPROF_ABI::detail
