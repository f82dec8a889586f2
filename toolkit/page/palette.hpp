#pragma once

#include <memprof/trace/category.hpp>

// Made by viewer/build.mjs from viewer/src/palette.json: change it there.

#include <string_view>

/// @file
/// The colours of pages in light colours, for pictures. Those of categories are by Okabe and Ito, "Color Universal Design"
/// (2008).

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr std::string_view rest_colour = "#b4bac2";
inline constexpr std::string_view plain_colour = "#9fb4c7";  ///< of bars whose names say what they are

[[nodiscard]] constexpr std::string_view colour_of(category of) noexcept {
  // clang-format off
  switch (of) {
    case category::other: return "#8b929b";
    case category::parameter: return "#0072b2";
    case category::gradient: return "#e69f00";
    case category::optimizer_state: return "#009e73";
    case category::activation: return "#56b4e9";
    case category::temporary: return "#d55e00";
    case category::input: return "#cc79a7";
    case category::kv_cache: return "#cfc100";
  }
  // clang-format on
  return rest_colour;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
