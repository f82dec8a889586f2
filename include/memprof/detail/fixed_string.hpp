#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Text as a template argument: `track_operation<"attention">()`.
template <std::size_t Size>
struct fixed_string {
  char text[Size];

  // Implicit, so that a literal can be written as the argument.
  consteval fixed_string(const char (&literal)[Size]) noexcept {
    for (std::size_t index = 0; index < Size; ++index) text[index] = literal[index];
  }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text, Size - 1}; }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
