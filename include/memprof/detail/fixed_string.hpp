#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Text as a template argument: `track_operation<"attention">()`.
template <std::size_t Size>
struct fixed_string {
  char text[Size];

  // Implicit, so that a literal can be written as the argument.
  consteval fixed_string(const char (&literal)[Size]) noexcept { std::copy_n(literal, Size, text); }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text, Size - 1}; }
};

}  // namespace memprof::inline MEMPROF_ABI
