#pragma once

#include <memprof/config.hpp>

#include <cstdint>

/// @file
/// Types for memory that each core of a device has to itself.

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// The purpose of a block on a device's cores. Circular buffers pass data between the kernels of one program and end with it.
enum class buffer_kind : std::uint8_t { buffer, circular_buffer };

/// A rectangle of a device's cores, both corners included.
struct core_range {
  std::uint8_t x0;
  std::uint8_t y0;
  std::uint8_t x1;  ///< at least `x0`
  std::uint8_t y1;  ///< at least `y0`

  [[nodiscard]] constexpr bool is_valid() const noexcept { return x0 <= x1 && y0 <= y1; }
  /// Number of cores, from 1 to 65,536.
  [[nodiscard]] constexpr std::uint32_t count() const noexcept { return (x1 - x0 + 1U) * (y1 - y0 + 1U); }
  [[nodiscard]] constexpr bool overlaps(const core_range& other) const noexcept {
    return x0 <= other.x1 && other.x0 <= x1 && y0 <= other.y1 && other.y0 <= y1;
  }

  /// As stored in an event's `label`.
  [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
    return std::uint32_t{x0} | std::uint32_t{y0} << 8 | std::uint32_t{x1} << 16 | std::uint32_t{y1} << 24;
  }
  /// The inverse of `packed`. The result may be invalid if the event's value was.
  [[nodiscard]] static constexpr core_range unpacked(std::uint32_t word) noexcept {
    return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word >> 16),
            static_cast<std::uint8_t>(word >> 24)};
  }

  bool operator==(const core_range&) const = default;
};

/// All cores that any device can have; in frees it means "wherever they are".
inline constexpr core_range any_core{0, 0, 255, 255};

/// The address that identifies a block on cores: its upper 16 bits also hold the first core, inverted.
///
/// Each core has its own memory, so blocks on disjoint cores can share addresses, and do in programs that split their work.
/// Inverted, so that it is never the address of an ordinary block: a block freed by the wrong function then counts as unmatched,
/// instead of going missing from the whole device while staying live on its cores. Its own inverse.
[[nodiscard]] constexpr std::uint64_t address_on_cores(std::uint64_t address, const core_range& cores) noexcept {
  const std::uint64_t first_core = std::uint64_t{cores.x0} | std::uint64_t{cores.y0} << 8;
  return address ^ (~first_core << 48);
}

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
