#pragma once

#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/config.hpp>

#include <algorithm>
#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Bytes of one channel of an array's element (`CUarray_format`); 0 for formats whose elements have no size of their own, as
/// compressed and planar ones.
[[nodiscard]] constexpr std::size_t channel_bytes(int format) noexcept {
  switch (format) {
    case 0x01:  // unsigned and signed, 8 bits
    case 0x08: return 1;
    case 0x02:  // 16 bits
    case 0x09:
    case 0x10: return 2;  // half
    case 0x03:            // 32 bits
    case 0x0a:
    case 0x20: return 4;  // float
    default: return 0;
  }
}

/// Bytes of an element. Normalised formats name their channels: `CU_AD_FORMAT_UNORM_INT8X1` to `..._SNORM_INT16X4`.
[[nodiscard]] constexpr std::size_t element_bytes(int format, unsigned channels) noexcept {
  constexpr int first_normalised = 0xc0;
  constexpr int last_normalised = 0xcb;
  if (format >= first_normalised && format <= last_normalised) {
    const int index = format - first_normalised;
    const std::size_t count = std::size_t{1} << index % 3;
    return index / 3 % 2 == 0 ? count : 2 * count;
  }
  constexpr int rgb10_a2 = 0x50;
  if (format == rgb10_a2) return 4;
  return channel_bytes(format) * channels;
}

/// What an array holds, without the padding that the driver adds. Layers and faces of a cube count as depth.
[[nodiscard]] constexpr std::size_t array_bytes(const array_3d_descriptor& described) noexcept {
  return described.width * std::max<std::size_t>(described.height, 1) * std::max<std::size_t>(described.depth, 1) *
         element_bytes(described.format, described.channels);
}

/// The same for all levels of a mipmapped array, each half as large as the one before in every direction but that of layers.
[[nodiscard]] constexpr std::size_t mipmapped_array_bytes(array_3d_descriptor described, unsigned levels) noexcept {
  constexpr unsigned layered_or_cube = 0x01 | 0x04;
  std::size_t sum = 0;
  for (unsigned level = 0; level < levels; ++level) {
    sum += array_bytes(described);
    described.width = std::max<std::size_t>(described.width / 2, 1);
    if (described.height != 0) described.height = std::max<std::size_t>(described.height / 2, 1);
    if (described.depth != 0 && (described.flags & layered_or_cube) == 0)
      described.depth = std::max<std::size_t>(described.depth / 2, 1);
  }
  return sum;
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
