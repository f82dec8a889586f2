#include <memprof/config.hpp>
#include <memprof/profile/json_writer.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/breakdown_json.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// How a size was measured, or null if it was not.
nlohmann::ordered_json name_or_null(size_source from) {
  if (from == size_source::none) return nullptr;
  return size_source_names[static_cast<std::size_t>(from)];
}

nlohmann::ordered_json name_or_null(device_memory_source from) {
  if (from == device_memory_source::none) return nullptr;
  return device_memory_source_names[static_cast<std::size_t>(from)];
}

nlohmann::ordered_json size_value(const compared_size& size) {
  return {{"actual", value_or_null(size.actual)},
          {"actual_from", name_or_null(size.from)},
          {"expected", value_or_null(size.expected)},
          {"difference_percent", value_or_null(size.difference_percent())}};
}

nlohmann::ordered_json segments_value(const space_profile& space) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const segment_usage& segment : space.segments) {
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

nlohmann::ordered_json parts_value(const memory_breakdown& breakdown) {
  constexpr std::array<std::string_view, peak_parts> keys{"other", "model", "gradients", "optimizer", "activations"};
  nlohmann::ordered_json parts = {{"live_at_peak", breakdown.parts_are_live_at_peak}};
  for (std::size_t index = 0; index < peak_parts; ++index) parts.emplace(keys[index], breakdown.parts[index]);
  parts.emplace("accounted", breakdown.accounted());
  parts.emplace("excess", breakdown.excess());
  return parts;
}

/// The spaces that the analysis is not about.
nlohmann::ordered_json other_spaces_value(const analyzed_space& analyzed) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const space_profile& other : analyzed.profile->spaces) {
    if (&other == &analyzed.usage()) continue;
    rows.push_back(
        {{"name", other.name}, {"cumulative_peak", other.cumulative_peak}, {"cumulative_current", other.cumulative_current}});
  }
  return rows;
}

nlohmann::ordered_json space_value(const analyzed_space& analyzed) {
  const profile& of = *analyzed.profile;
  const space_profile& space = analyzed.usage();
  const memory_breakdown& breakdown = analyzed.breakdown;
  const auto known = [](std::int64_t number) {
    return number < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(number);
  };
  return {{"file", of.provenance.file},
          {"line", of.provenance.line},
          {"section", of.provenance.section},
          {"rank", known(of.process.rank)},
          {"space", space.name},
          {"rounding", of.provenance.rounding},
          {"absent", of.provenance.absent},
          {"parameters", value_or_null(breakdown.parameters)},
          {"model", size_value(breakdown.model)},
          {"optimizer", size_value(breakdown.optimizer)},
          {"activations",
           {{"actual", value_or_null(breakdown.activations.actual)}, {"actual_from", name_or_null(breakdown.activations.from)}}},
          {"gradients", size_value(breakdown.gradients)},
          {"cumulative_peak", space.cumulative_peak},
          {"cumulative_current", space.cumulative_current},
          {"device", of.device},
          {"device_memory", value_or_null(breakdown.device_memory)},
          {"device_memory_source", name_or_null(breakdown.device_memory_from)},
          {"fits", value_or_null(breakdown.fits())},
          {"usage_percent", value_or_null(breakdown.usage_percent())},
          {"peak_segment", known(space.peak_segment)},
          {"peak_parts", parts_value(breakdown)},
          {"segment_count", std::max(of.segment_count, static_cast<std::int64_t>(of.segments.size()))},
          {"segments", segments_value(space)},
          {"other_spaces", other_spaces_value(analyzed)},
          {"remarks", breakdown.remarks}};
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const std::vector<analyzed_space>& analyzed) {
  nlohmann::ordered_json summaries = nlohmann::ordered_json::array();
  for (const analyzed_space& one : analyzed) summaries.push_back(detail::space_value(one));
  return {{"format", breakdown_json_format},
          {"version", breakdown_json_version},
          {"verdict", verdict_of(analyzed)},
          {"caveats", caveats_of(analyzed)},
          {"summaries", summaries}};
}

}  // namespace memprof::inline MEMPROF_ABI
