#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Whether autograd computes a gradient for a tensor (PyTorch's `requires_grad`); `unknown` if not specified.
enum class requires_grad : std::uint8_t { unknown, no, yes };

namespace detail {

/// Names of the `requires_grad` values, in order.
inline constexpr std::array<std::string_view, 3> requires_grad_names{"unknown", "false", "true"};

}  // namespace detail

/// A value's name in reports and files.
[[nodiscard]] constexpr std::string_view to_string(requires_grad value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < detail::requires_grad_names.size() ? detail::requires_grad_names[index] : detail::requires_grad_names[0];
}

namespace detail {

/// The value with that name; `unknown` for any other text.
[[nodiscard]] constexpr requires_grad requires_grad_from_string(std::string_view name) noexcept {
  if (name == to_string(requires_grad::no)) return requires_grad::no;
  return name == to_string(requires_grad::yes) ? requires_grad::yes : requires_grad::unknown;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
