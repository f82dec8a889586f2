#pragma once

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/format/memory_summary.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/report/breakdown_text.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// @file
/// The numbers of `memprof analyze` for machines; docs/analyze.md describes the format.

namespace memprof {

/// What the key "format" of the document says.
inline constexpr std::string_view breakdown_json_format = "memprof-analysis";

/// What the key "version" says. It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t breakdown_json_version = 1;

namespace detail {

/// The value, or null.
template <class T>
[[nodiscard]] nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

[[nodiscard]] inline nlohmann::ordered_json to_value(const compared_size& size) {
  return {{"actual", value_or_null(size.actual)},
          {"expected", value_or_null(size.expected)},
          {"difference_percent", value_or_null(size.difference_percent())}};
}

[[nodiscard]] inline nlohmann::ordered_json segments_value(const memory_summary& summary) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const segment_usage& segment : summary.segments) {
    rows.push_back({{"segment", segment.segment},
                    {"segment_peak", segment.segment_peak},
                    {"allocations", segment.allocations},
                    {"deallocations", segment.deallocations},
                    {"segment_change", segment.segment_change},
                    {"cumulative_peak", segment.cumulative_peak},
                    {"cumulative_current", segment.cumulative_current}});
  }
  return rows;
}

[[nodiscard]] inline nlohmann::ordered_json parts_value(const memory_breakdown& breakdown) {
  constexpr std::array<std::string_view, peak_parts> keys{"other", "model", "gradients", "optimizer", "activations"};
  nlohmann::ordered_json parts = {{"live_at_peak", breakdown.parts_are_live_at_peak}};
  for (std::size_t index = 0; index < peak_parts; ++index) parts.emplace(keys[index], breakdown.parts[index]);
  parts.emplace("accounted", breakdown.accounted());
  parts.emplace("excess", breakdown.excess());
  return parts;
}

[[nodiscard]] inline nlohmann::ordered_json to_value(const analyzed_summary& analyzed) {
  const auto& [summary, breakdown] = analyzed;
  nlohmann::ordered_json remarks = summary.remarks;
  for (const std::string& remark : breakdown.remarks) remarks.push_back(remark);
  return {{"source", summary.source},
          {"line", summary.line},
          {"section", summary.section},
          {"rank", summary.rank},
          {"space", summary.space},
          {"resolution", summary.resolution},
          {"parameters", value_or_null(summary.parameters)},
          {"model", to_value(breakdown.model)},
          {"optimizer", to_value(breakdown.optimizer)},
          {"activations", value_or_null(breakdown.activations)},
          {"gradients", to_value(breakdown.gradients)},
          {"overall_peak", summary.overall_peak},
          {"final_usage", summary.final_usage},
          {"device", summary.device},
          {"device_memory", breakdown.device_memory},
          {"device_memory_source", device_memory_source_names[static_cast<std::size_t>(breakdown.device_memory_from)]},
          {"usage_percent", value_or_null(breakdown.usage_percent())},
          {"peak_segment", value_or_null(summary.peak_segment)},
          {"peak_parts", parts_value(breakdown)},
          {"segments", segments_value(summary)},
          {"remarks", remarks}};
}

}  // namespace detail

/// The document with all summaries. Sizes are integers in bytes; what is not known is null.
[[nodiscard]] inline nlohmann::ordered_json to_json(const std::vector<analyzed_summary>& analyzed) {
  nlohmann::ordered_json summaries = nlohmann::ordered_json::array();
  for (const analyzed_summary& one : analyzed) summaries.push_back(detail::to_value(one));
  return {{"format", breakdown_json_format}, {"version", breakdown_json_version}, {"summaries", summaries}};
}

}  // namespace memprof
