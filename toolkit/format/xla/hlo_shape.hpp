#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// `xla.ShapeProto` as text and as bytes (openxla/xla, xla/xla_data.proto). Needs protozero.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

class protobuf_file;

/// Appends the numbers with commas between them.
void append_numbers(std::string& to, const std::vector<std::int64_t>& numbers);

}  // namespace detail

/// An element type of XLA.
struct hlo_element_type {
  std::string_view name;
  std::int64_t bytes;  ///< types smaller than a byte count as one
};

/// The type with that number in `xla.PrimitiveType`.
[[nodiscard]] hlo_element_type element_type(std::uint64_t number) noexcept;

/// The shape being read: an array, or a tuple with its elements.
struct hlo_shape {
  std::uint64_t type = 0;
  std::vector<std::int64_t> dimensions;
  std::vector<bool> is_dynamic;
  std::vector<std::string_view> parts;  ///< `ShapeProto`s
  std::string_view layout;              ///< a `LayoutProto`
  bool has_layout = false;
};

/// Reads a `ShapeProto` without reading its elements. Throws `memprof::error` if it is invalid.
[[nodiscard]] hlo_shape read_hlo_shape(const detail::protobuf_file& file, std::string_view encoded);

/// Bytes without padding, as XLA's viewer counts them: 8 for each element of a tuple, and the bound of a dynamic dimension.
/// Saturates at the 64-bit maximum.
[[nodiscard]] std::int64_t unpadded_bytes(const hlo_shape& shape) noexcept;

/// The shape as XLA prints it: `bf16[8,128]{1,0:T(8,128)(2,1)}`, or `(f32[], s32[4]{0})`.
[[nodiscard]] std::string hlo_shape_text(const detail::protobuf_file& file, std::string_view encoded);

}  // namespace memprof::inline MEMPROF_ABI
