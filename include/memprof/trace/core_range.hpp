#pragma once

#include <memprof/config.hpp>

#include <cstdint>

/// @file
/// Words for memory that every core of a device has of its own.

namespace memprof::inline MEMPROF_ABI {

/// What a block on the cores of a device is for. Circular buffers pass data between the kernels of one program and go with it.
enum class buffer_kind : std::uint8_t { buffer, circular_buffer };

/// A rectangle of a device's cores; both corners belong to it.
struct core_range {
  std::uint8_t x0;
  std::uint8_t y0;
  std::uint8_t x1;  ///< at least `x0`
  std::uint8_t y1;  ///< at least `y0`

  [[nodiscard]] constexpr bool is_valid() const noexcept { return x0 <= x1 && y0 <= y1; }
  /// How many cores it has, from 1 to 65,536.
  [[nodiscard]] constexpr std::uint32_t count() const noexcept { return (x1 - x0 + 1U) * (y1 - y0 + 1U); }
  [[nodiscard]] constexpr bool overlaps(const core_range& other) const noexcept {
    return x0 <= other.x1 && other.x0 <= x1 && y0 <= other.y1 && other.y0 <= y1;
  }

  /// As an event carries it in `label`.
  [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
    return std::uint32_t{x0} | std::uint32_t{y0} << 8 | std::uint32_t{x1} << 16 | std::uint32_t{y1} << 24;
  }
  /// The inverse of `packed`; not valid if an event said so.
  [[nodiscard]] static constexpr core_range unpacked(std::uint32_t word) noexcept {
    return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word >> 16),
            static_cast<std::uint8_t>(word >> 24)};
  }

  bool operator==(const core_range&) const = default;
};

/// All cores that any device can have: for frees, where it means "wherever they are".
inline constexpr core_range any_core{0, 0, 255, 255};

/// The address that identifies a block on cores: the upper 16 bits also hold, inverted, the first core.
///
/// Each core has its own memory, so that blocks on disjoint cores share addresses, and programs that split their work do just
/// that. Inverted, because then it is no address of an ordinary block: one that is freed by the wrong function is counted as
/// unmatched instead of being missing on the whole device and live on its cores. Its own inverse.
[[nodiscard]] constexpr std::uint64_t address_on_cores(std::uint64_t address, const core_range& cores) noexcept {
  const std::uint64_t first_core = std::uint64_t{cores.x0} | std::uint64_t{cores.y0} << 8;
  return address ^ (~first_core << 48);
}

}  // namespace memprof::inline MEMPROF_ABI
