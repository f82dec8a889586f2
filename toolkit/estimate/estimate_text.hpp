#pragma once

#include <memprof/toolkit/analysis/folded_text.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The tables of `memprof estimate`: character for character those of transformer-room's estimator, unless the decoder is of
/// another architecture.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Cells in columns as wide as their widest cell, separated by " | ", with a rule under the first row. If that is wider than
/// `columns` (0: any width), the names in the column `flexible` are shortened.
[[nodiscard]] std::string aligned_table(std::vector<std::vector<std::string>> rows, std::size_t columns = 0,
                                        std::size_t flexible = 0);

/// Bytes as GiB: "  6.750".
[[nodiscard]] std::string gibibytes(std::int64_t bytes);

/// "B=64, T=1024, D=768, H=8, L=12, V=33283".
[[nodiscard]] std::string config_text(const decoder_shape& shape);

}  // namespace detail

/// The operations of an estimate, those with the most bytes in fp32 first.
[[nodiscard]] std::vector<estimated_operation> top_contributors(const shape_estimate& estimate);

/// The report of an estimate with its `top_k` largest operations, in `columns` (0: as the original's, of any width). GiB is 2^30
/// bytes.
[[nodiscard]] std::string to_text(const shape_estimate& estimate, std::size_t top_k = 12, std::size_t columns = 0);

}  // namespace memprof::inline MEMPROF_ABI
