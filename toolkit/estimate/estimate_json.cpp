#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_json.hpp>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Rows with their bytes in one precision, those with the most bytes first.
template <class Row, class Bytes, class Value>
nlohmann::ordered_json sorted_values(const std::vector<Row>& rows, Bytes bytes, Value value) {
  std::vector<const Row*> sorted;
  sorted.reserve(rows.size());
  for (const Row& row : rows) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Row* left, const Row* right) { return bytes(*left) > bytes(*right); });
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row* row : sorted) {
    nlohmann::ordered_json object = value(*row);
    object.emplace("gib", static_cast<double>(bytes(*row)) / 0x1p30);
    array.push_back(std::move(object));
  }
  return array;
}

nlohmann::ordered_json bucket_totals(const shape_estimate& estimate, std::int64_t estimated_bytes::*bytes) {
  std::vector<std::pair<std::string_view, estimated_bytes>> rows;
  // Among equals, the bucket that the forward pass fills first comes first.
  using enum estimate_bucket;
  for (const estimate_bucket bucket : {input_projects, per_layer_attention, per_layer_mlp, output_project, others}) {
    rows.emplace_back(to_string(bucket), estimate.bucket(bucket));
  }
  return sorted_values(
      rows, [bytes](const auto& row) { return row.second.*bytes; },
      [](const auto& row) {
        return nlohmann::ordered_json{{"bucket", row.first}, {"params", row.second.parameters}};
      });
}

nlohmann::ordered_json operation_totals(const shape_estimate& estimate, std::int64_t estimated_bytes::*bytes) {
  return sorted_values(
      estimate.operations, [bytes](const estimated_operation& row) { return row.total.*bytes; },
      [](const estimated_operation& row) {
        return nlohmann::ordered_json{{"bucket", to_string(row.bucket)},
                                      {"name", row.name},
                                      {"count", row.count},
                                      {"shape", row.shape},
                                      {"params", row.total.parameters}};
      });
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const shape_estimate& estimate) {
  const decoder_shape& shape = estimate.shape;
  nlohmann::ordered_json document = {{"config",
                                      {{"batch_size", shape.batch_size},
                                       {"seq_len", shape.seq_len},
                                       {"d_model", shape.d_model},
                                       {"n_heads", shape.n_heads},
                                       {"layers", shape.layers},
                                       {"vocab_size", shape.vocab_size()},
                                       {"base_vocab_size", shape.base_vocab_size},
                                       {"num_special_tokens", shape.num_special_tokens}}},
                                     {"bucket_totals",
                                      {{"fp32", detail::bucket_totals(estimate, &estimated_bytes::fp32_bytes)},
                                       {"bf16", detail::bucket_totals(estimate, &estimated_bytes::bf16_bytes)}}},
                                     {"top_ops",
                                      {{"fp32", detail::operation_totals(estimate, &estimated_bytes::fp32_bytes)},
                                       {"bf16", detail::operation_totals(estimate, &estimated_bytes::bf16_bytes)}}}};
  if (!estimate.architecture.empty()) document["config"].emplace("architecture", estimate.architecture);
  return document;
}

}  // namespace memprof::inline MEMPROF_ABI
