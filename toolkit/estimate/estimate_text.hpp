#pragma once

#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <algorithm>
#include <cmath>
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

/// Cells in columns as wide as their widest cell, separated by " | ", with a rule under the first row.
[[nodiscard]] inline std::string aligned_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    for (std::size_t column = 0; column < widths.size(); ++column) {
      std::string cell = rows[index][column];
      cell.resize(widths[column], ' ');
      text += (column == 0 ? "" : " | ") + cell;
    }
    text += '\n';
    if (index != 0) continue;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      text += (column == 0 ? "" : "-+-") + std::string(widths[column], '-');
    }
    text += '\n';
  }
  return text;
}

/// Bytes as GiB: "  6.750".
[[nodiscard]] inline std::string gibibytes(std::int64_t bytes) {
  return right_aligned(decimal(static_cast<double>(bytes) / 0x1p30, 3), 7);
}

/// A bar of `value` out of `greatest`; halves are rounded to even, as Python does.
[[nodiscard]] inline std::string estimate_bar(std::int64_t value, std::int64_t greatest) {
  constexpr std::size_t width = 40;
  const double share = greatest == 0 ? 0 : static_cast<double>(value) / static_cast<double>(greatest);
  const auto filled = static_cast<std::size_t>(std::nearbyint(static_cast<double>(width) * share));
  return std::string(filled, '#') + std::string(width - filled, '.');
}

/// "(64, 8, 1024, 1024)".
[[nodiscard]] inline std::string bracketed_shape(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t index = 0; index < shape.size(); ++index) text += (index == 0 ? "" : ", ") + std::to_string(shape[index]);
  return text + ")";
}

/// "B=64, T=1024, D=768, H=8, L=12, V=33283".
[[nodiscard]] inline std::string config_text(const decoder_shape& shape) {
  return "B=" + std::to_string(shape.batch_size) + ", T=" + std::to_string(shape.seq_len) +
         ", D=" + std::to_string(shape.d_model) + ", H=" + std::to_string(shape.n_heads) + ", L=" + std::to_string(shape.layers) +
         ", V=" + std::to_string(shape.vocab_size());
}

[[nodiscard]] inline std::string bucket_table(const shape_estimate& estimate) {
  std::int64_t greatest = 0;
  for (const estimated_bytes& bucket : estimate.buckets) greatest = std::max(greatest, bucket.fp32_bytes);
  std::vector<std::vector<std::string>> rows{{"Bucket", "Params", "FP32 GiB", "BF16 GiB", "FP32 Bar", "BF16 Bar"}};
  for (std::size_t index = 0; index < estimate.buckets.size(); ++index) {
    const estimated_bytes& bucket = estimate.buckets[index];
    rows.push_back({std::string{estimate_bucket_names[index]}, with_thousands(std::to_string(bucket.parameters)),
                    gibibytes(bucket.fp32_bytes), gibibytes(bucket.bf16_bytes), estimate_bar(bucket.fp32_bytes, greatest),
                    estimate_bar(bucket.bf16_bytes, greatest)});
  }
  return aligned_table(rows);
}

}  // namespace detail

/// The operations of an estimate, those with the most bytes in fp32 first.
[[nodiscard]] inline std::vector<estimated_operation> top_contributors(const shape_estimate& estimate) {
  std::vector<estimated_operation> sorted = estimate.operations;
  std::stable_sort(sorted.begin(), sorted.end(), [](const estimated_operation& left, const estimated_operation& right) {
    return left.total.fp32_bytes > right.total.fp32_bytes;
  });
  return sorted;
}

/// The report of an estimate with its `top_k` largest operations. GiB is 2^30 bytes.
[[nodiscard]] inline std::string to_text(const shape_estimate& estimate, std::size_t top_k = 12) {
  std::string text = "Memory Estimate (shape-only, no CUDA alloc)\nConfig: " + detail::config_text(estimate.shape) +
                     (estimate.architecture.empty() ? "" : "\nModel: " + estimate.architecture) + "\n\n" +
                     detail::bucket_table(estimate) + "\nTop " + std::to_string(top_k) +
                     " contributors (aggregated by op type):\n";
  std::vector<std::vector<std::string>> rows{{"Bucket", "Op", "Count", "Shape", "Params", "FP32 GiB", "BF16 GiB"}};
  for (const estimated_operation& operation : top_contributors(estimate)) {
    if (rows.size() > top_k) break;
    rows.push_back({std::string{to_string(operation.bucket)}, operation.name, std::to_string(operation.count),
                    detail::bracketed_shape(operation.shape), detail::with_thousands(std::to_string(operation.total.parameters)),
                    detail::gibibytes(operation.total.fp32_bytes), detail::gibibytes(operation.total.bf16_bytes)});
  }
  return text + detail::aligned_table(rows);
}

}  // namespace memprof::inline MEMPROF_ABI
