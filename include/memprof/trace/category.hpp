#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What a block holds.
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

namespace detail {

/// Names of the `category` values, in order.
inline constexpr std::array<std::string_view, 8> category_names{"other",      "parameter", "gradient", "optimizer_state",
                                                                "activation", "temporary", "input",    "kv_cache"};

}  // namespace detail

/// A category's name in reports and files.
[[nodiscard]] constexpr std::string_view to_string(category value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < detail::category_names.size() ? detail::category_names[index] : detail::category_names[0];
}

/// A category or none: the needed subset of `std::optional<category>`, at a tenth of the compile time for every translation unit.
class optional_category {
 public:
  constexpr optional_category() noexcept = default;
  /// Implicit, so that a category can be passed where it is optional.
  constexpr optional_category(category kind) noexcept : tag_(static_cast<std::uint16_t>(static_cast<unsigned>(kind) + 1U)) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return tag_ != 0; }
  [[nodiscard]] constexpr category value_or(category fallback) const noexcept {
    return tag_ == 0 ? fallback : static_cast<category>(tag_ - 1U);
  }
  /// As stored in events: 0, or the category's value plus one.
  [[nodiscard]] constexpr std::uint16_t tag() const noexcept { return tag_; }

  bool operator==(const optional_category&) const = default;

 private:
  std::uint16_t tag_ = 0;
};

/// The category with that name, or none.
[[nodiscard]] constexpr optional_category category_from_string(std::string_view name) noexcept {
  for (std::size_t index = 0; index < detail::category_names.size(); ++index) {
    if (detail::category_names[index] == name) return static_cast<category>(index);
  }
  return {};
}

namespace detail {

/// Whether an event's tag names a category; 0 does not, and out-of-range values count as 0.
[[nodiscard]] inline bool is_category(std::uint16_t tag) noexcept { return tag - 1U < category_names.size(); }
/// The category's number, from 0; that of `other` if the tag names none.
[[nodiscard]] inline std::uint32_t category_of(std::uint16_t tag) noexcept { return is_category(tag) ? tag - 1U : 0U; }

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
