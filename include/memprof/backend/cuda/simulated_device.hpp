#pragma once

#include <memprof/backend/cuda/places.hpp>
#include <memprof/config.hpp>

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Of each device: what it has, and what is taken.
struct simulated_device {
  std::uint64_t capacity = 0;  ///< 0: no limit
  std::uint64_t size_multiple = 1;
  std::uint64_t used = 0;
  std::uint64_t current_pool = 0;  ///< 0: its own

  [[nodiscard]] std::uint64_t taken_by(std::uint64_t bytes) const noexcept {
    return (bytes + size_multiple - 1) / size_multiple * size_multiple;
  }
  [[nodiscard]] std::uint64_t free() const noexcept { return used < total() ? total() - used : 0; }
  /// As large as no device is, if there is no limit: programs that take a share of what is free need a number.
  [[nodiscard]] std::uint64_t total() const noexcept { return capacity == 0 ? std::uint64_t{1} << 40 : capacity; }
};

/// "cuda:1" is 1; `spaces::max_devices` if it is not the name of a device.
[[nodiscard]] inline std::uint32_t device_of(std::string_view space) noexcept {
  constexpr std::string_view prefix = "cuda:";
  std::uint32_t found = spaces::max_devices;
  if (!space.starts_with(prefix)) return found;
  const char* const end = space.data() + space.size();
  const auto [stopped, failure] = std::from_chars(space.data() + prefix.size(), end, found);
  return stopped == end && failure == std::errc{} ? found : spaces::max_devices;
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
