#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

std::string aligned_table(const std::vector<std::vector<std::string>>& rows) {
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

std::string gibibytes(std::int64_t bytes) { return right_aligned(decimal(static_cast<double>(bytes) / 0x1p30, 3), 7); }

}  // namespace detail

namespace detail {
namespace {

/// A bar of `value` out of `greatest`; halves are rounded to even, as Python does.
std::string estimate_bar(std::int64_t value, std::int64_t greatest) {
  constexpr std::size_t width = 40;
  const double share = greatest == 0 ? 0 : static_cast<double>(value) / static_cast<double>(greatest);
  const auto filled = static_cast<std::size_t>(std::nearbyint(static_cast<double>(width) * share));
  return std::string(filled, '#') + std::string(width - filled, '.');
}

/// "(64, 8, 1024, 1024)".
std::string bracketed_shape(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t index = 0; index < shape.size(); ++index) text += (index == 0 ? "" : ", ") + std::to_string(shape[index]);
  return text + ")";
}

}  // namespace
}  // namespace detail

namespace detail {

std::string config_text(const decoder_shape& shape) {
  return "B=" + std::to_string(shape.batch_size) + ", T=" + std::to_string(shape.seq_len) +
         ", D=" + std::to_string(shape.d_model) + ", H=" + std::to_string(shape.n_heads) + ", L=" + std::to_string(shape.layers) +
         ", V=" + std::to_string(shape.vocab_size());
}

}  // namespace detail

namespace detail {
namespace {

std::string bucket_table(const shape_estimate& estimate) {
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

}  // namespace
}  // namespace detail

std::vector<estimated_operation> top_contributors(const shape_estimate& estimate) {
  std::vector<estimated_operation> sorted = estimate.operations;
  std::stable_sort(sorted.begin(), sorted.end(), [](const estimated_operation& left, const estimated_operation& right) {
    return left.total.fp32_bytes > right.total.fp32_bytes;
  });
  return sorted;
}

std::string to_text(const shape_estimate& estimate, std::size_t top_k) {
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
