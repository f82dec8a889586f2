#include <memprof/config.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

std::string aligned_table(std::vector<std::vector<std::string>> rows, std::size_t columns, std::size_t flexible) {
  constexpr std::size_t between = 3;  // " | "
  constexpr std::size_t least_columns = 10;
  std::vector<std::size_t> widths(rows.front().size());
  std::size_t total = between * (widths.size() - 1);
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (const auto& row : rows) widths[column] = std::max(widths[column], display_width(row[column]));
    total += widths[column];
  }
  if (columns != 0 && total > columns) {
    const std::size_t others = total - widths[flexible];
    const std::size_t room = std::max(least_columns, columns - std::min(columns, others));
    widths[flexible] = std::min(widths[flexible], room);
    for (auto& row : rows) row[flexible] = shortened_name(row[flexible], widths[flexible]);
  }
  std::string text;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    for (std::size_t column = 0; column < widths.size(); ++column)
      text += (column == 0 ? "" : " | ") + left_in(rows[index][column], widths[column]);
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
std::string estimate_bar(std::int64_t value, std::int64_t greatest, std::size_t width) {
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

std::string bucket_table(const shape_estimate& estimate, std::size_t columns) {
  constexpr std::size_t least_bar = 8;
  constexpr std::size_t widest_bar = 40;
  constexpr std::size_t besides = 14 + 3 + 14 + 3 + 8 + 3 + 8;  // the other columns, with 14 for parameters
  const bool has_room = columns == 0 || columns >= besides + 2 * (3 + widest_bar);
  const std::size_t bar = has_room ? widest_bar : std::max(least_bar, (columns - std::min(columns, besides + 6)) / 2);
  std::int64_t greatest = 0;
  for (const estimated_bytes& bucket : estimate.buckets) greatest = std::max(greatest, bucket.fp32_bytes);
  std::vector<std::vector<std::string>> rows{{"Bucket", "Params", "FP32 GiB", "BF16 GiB", "FP32 Bar", "BF16 Bar"}};
  for (std::size_t index = 0; index < estimate.buckets.size(); ++index) {
    const estimated_bytes& bucket = estimate.buckets[index];
    rows.push_back({std::string{estimate_bucket_names[index]}, with_thousands(std::to_string(bucket.parameters)),
                    gibibytes(bucket.fp32_bytes), gibibytes(bucket.bf16_bytes), estimate_bar(bucket.fp32_bytes, greatest, bar),
                    estimate_bar(bucket.bf16_bytes, greatest, bar)});
  }
  if (columns != 0 && columns < besides + 2 * (3 + least_bar)) {
    for (auto& row : rows) row.pop_back();
  }
  return aligned_table(std::move(rows), columns);
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

std::string to_text(const shape_estimate& estimate, std::size_t top_k, std::size_t columns) {
  std::string text = "Memory Estimate (shape-only, no CUDA alloc)\nConfig: " + detail::config_text(estimate.shape) +
                     (estimate.architecture.empty() ? "" : "\nModel: " + estimate.architecture) + "\n\n" +
                     detail::bucket_table(estimate, columns) + "\nTop " + std::to_string(top_k) +
                     " contributors (aggregated by op type):\n";
  std::vector<std::vector<std::string>> rows{{"Bucket", "Op", "Count", "Shape", "Params", "FP32 GiB", "BF16 GiB"}};
  for (const estimated_operation& operation : top_contributors(estimate)) {
    if (rows.size() > top_k) break;
    rows.push_back({std::string{to_string(operation.bucket)}, operation.name, std::to_string(operation.count),
                    detail::bracketed_shape(operation.shape), detail::with_thousands(std::to_string(operation.total.parameters)),
                    detail::gibibytes(operation.total.fp32_bytes), detail::gibibytes(operation.total.bf16_bytes)});
  }
  constexpr std::size_t all_columns = 114;  // of the decoders that have names
  constexpr std::size_t operation = 1;
  if (columns == 0 || columns >= all_columns)
    return detail::folded(text, columns) + detail::aligned_table(rows, columns, operation);
  for (auto& row : rows) {  // the sizes in bf16 are halves, and the names of operations say which bucket they are in
    row.pop_back();
    row.erase(row.begin());
    if (columns < 72) row.erase(row.begin() + 2);  // the shape
  }
  return detail::folded(text, columns) + detail::aligned_table(rows, columns);
}

}  // namespace memprof::inline MEMPROF_ABI
