#pragma once

#include <memprof/config.hpp>

#include <array>
#include <string_view>

/// @file
/// Where the names of a struct's fields are written down, for `profile/reflect.hpp` and for facets, which bring their own.

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct not_reflected {};
}  // namespace detail

/// The names of a struct's fields, in the order of declaration. Specialise it for a struct to make it `reflected`.
template <class T>
inline constexpr detail::not_reflected field_names{};

/// Those of `field_names<T>` that a document may lack because an earlier memprof wrote it; they keep their default. Empty as long
/// as a struct is as version 1 of the format defined it. Specialise it when a field is added.
template <class T>
inline constexpr std::array<std::string_view, 0> later_fields{};

/// Those of `field_names<T>` that are integers and may be negative. All other integers are sizes, counts and times, and a
/// document in which one is negative is refused. Specialise it when such a field is added.
template <class T>
inline constexpr std::array<std::string_view, 0> signed_fields{};

/// Those of `field_names<T>` that are text and null in a document where the struct's field is empty.
template <class T>
inline constexpr std::array<std::string_view, 0> nullable_fields{};

/// Types as one value, to run over them: `list.each([]<class T>() { ... })`.
template <class... Types>
struct type_list {
  template <class Function>
  constexpr void each(Function function) const {
    (function.template operator()<Types>(), ...);
  }
};

/// Both lists, one behind the other.
template <class... Left, class... Right>
type_list<Left..., Right...> operator+(type_list<Left...>, type_list<Right...>);

}  // namespace memprof::inline MEMPROF_ABI
