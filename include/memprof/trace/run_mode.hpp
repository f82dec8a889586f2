#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Whether the program really allocates (`normal`) or only records what it would allocate (`no_dispatch`).
enum class run_mode : std::uint8_t { normal, no_dispatch };

namespace detail {

/// Names of the `run_mode` values, in order.
inline constexpr std::array<std::string_view, 2> run_mode_names{"normal", "no_dispatch"};

}  // namespace detail

/// A run mode's name in reports and files.
[[nodiscard]] constexpr std::string_view to_string(run_mode value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < detail::run_mode_names.size() ? detail::run_mode_names[index] : detail::run_mode_names[0];
}

}  // namespace memprof::inline MEMPROF_ABI
