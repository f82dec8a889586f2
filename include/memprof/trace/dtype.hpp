#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A tensor's element type, as far as it determines the tensor's size.
enum class dtype : std::uint8_t {
  float32,
  bfloat16,
  float16,
  float8,  ///< either format: one byte
  int32,
  int8,
  boolean,       ///< one byte
  block_float8,  ///< 16 elements share an exponent byte; only in tiles
  block_float4,  ///< the same with half a byte per element
};

/// Names of the `dtype` values, in order.
inline constexpr std::array<std::string_view, 9> dtype_names{"fp32", "bf16", "fp16", "fp8", "int32",
                                                             "int8", "bool", "bfp8", "bfp4"};

/// An element type's name in options and files.
[[nodiscard]] constexpr std::string_view to_string(dtype value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < dtype_names.size() ? dtype_names[index] : dtype_names[0];
}

/// The element type with that name, or nothing.
[[nodiscard]] constexpr std::optional<dtype> dtype_from_string(std::string_view name) noexcept {
  for (std::size_t index = 0; index < dtype_names.size(); ++index) {
    if (dtype_names[index] == name) return static_cast<dtype>(index);
  }
  return std::nullopt;
}

/// Rows and columns of a tile.
inline constexpr std::int64_t tile_side = 32;

/// Bits of one element, without its share of a block's exponents.
[[nodiscard]] constexpr std::int64_t element_bits(dtype type) noexcept {
  switch (type) {
    case dtype::float32:
    case dtype::int32: return 32;
    case dtype::bfloat16:
    case dtype::float16: return 16;
    case dtype::block_float4: return 4;
    default: return 8;
  }
}

/// Whether several elements share an exponent, so that the type exists only in tiles.
[[nodiscard]] constexpr bool is_block_float(dtype type) noexcept {
  return type == dtype::block_float8 || type == dtype::block_float4;
}

/// Bytes of one tile of 32 x 32 elements: 4096, 2048 or 1024 for plain types; 1088 and 576 for block floats, which have one
/// exponent byte for each of their 64 rows of 16 elements.
[[nodiscard]] constexpr std::int64_t tile_bytes(dtype type) noexcept {
  constexpr std::int64_t elements = tile_side * tile_side;
  constexpr std::int64_t elements_per_exponent = 16;
  return elements * element_bits(type) / 8 + (is_block_float(type) ? elements / elements_per_exponent : 0);
}

}  // namespace memprof::inline MEMPROF_ABI
