#pragma once

#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// The two pictures of `memprof estimate`, drawn by gnuplot: the same as those of transformer-room's estimator, in the same
/// files.

namespace memprof::inline MEMPROF_ABI {

inline constexpr std::string_view bucket_picture_name = "bucket_memory_fp32_vs_bf16.png";
inline constexpr std::string_view contributors_picture_name = "top_contributors_fp32_vs_bf16.png";

/// The gnuplot script (5.4 or later) that draws the bytes of each bucket in both precisions, side by side, to `path`: 1600 by 800
/// pixels.
[[nodiscard]] std::string bucket_picture_script(const shape_estimate& estimate, std::string_view path);

/// The script that draws the `top_k` largest operations as horizontal bars, fp32 behind bf16, the largest on top: 1920 pixels
/// wide and as high as they need.
[[nodiscard]] std::string contributors_picture_script(const shape_estimate& estimate, std::size_t top_k, std::string_view path);

}  // namespace memprof::inline MEMPROF_ABI
