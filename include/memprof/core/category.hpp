#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memprof {

/// What a block holds, in the words of the field.
enum class category : std::uint8_t {
  other,
  parameter,
  gradient,
  optimizer_state,
  activation,
  temporary,
  input,
  kv_cache,
};

/// The names of `category`, in the order of its values.
inline constexpr std::array<std::string_view, 8> category_names{"other",      "parameter", "gradient", "optimizer_state",
                                                                "activation", "temporary", "input",    "kv_cache"};

/// The name of a category as reports and files spell it.
[[nodiscard]] constexpr std::string_view to_string(category value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < category_names.size() ? category_names[index] : category_names[0];
}

/// The category of that name, or nothing.
[[nodiscard]] constexpr std::optional<category> category_from_string(std::string_view name) noexcept {
  for (std::size_t index = 0; index < category_names.size(); ++index) {
    if (category_names[index] == name) return static_cast<category>(index);
  }
  return std::nullopt;
}

}  // namespace memprof
