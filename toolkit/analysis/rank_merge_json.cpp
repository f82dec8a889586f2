#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>
#include <memprof/toolkit/analysis/rank_merge_json.hpp>
#include <memprof/toolkit/analysis/rank_merge_text.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json text_if_known(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json number_if_known(std::int64_t number) {
  return number < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(number);
}

nlohmann::ordered_json ranked_run_value(const ranked_run& run) {
  return {{"rank", number_if_known(run.rank)},
          {"host", text_if_known(run.host)},
          {"device", text_if_known(run.device)},
          {"file", run.file},
          {"space", run.space},
          {"peak_bytes", run.bytes},
          {"time_ns", run.time_ns},
          {"segment", text_if_known(run.segment)},
          {"step", number_if_known(run.step)},
          {"steps", run.steps},
          {"exact", run.exact}};
}

/// The operations that differ most, and the sum of the others.
nlohmann::ordered_json values_of_owners(const rank_finding& finding, std::int64_t& others) {
  constexpr std::size_t most = 4;
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  if (!finding.difference) return values;
  for (const comparison_row& row : finding.difference->operations) {
    if (values.size() == most || row.change() == 0) {
      others += row.change();
      continue;
    }
    values.push_back({{"operation", text_if_known(row.owner)},
                      {"median_bytes", row.before},
                      {"bytes", row.after},
                      {"change_bytes", row.change()},
                      {"operations", row.operations}});
  }
  return values;
}

nlohmann::ordered_json rank_finding_value(const rank_finding& finding) {
  std::int64_t others = 0;
  const nlohmann::ordered_json owners = values_of_owners(finding, others);
  return {{"run", ranked_run_value(finding.run)},
          {"change_bytes", finding.change},
          {"stands_out", finding.stands_out},
          {"owners", owners},
          {"other_change_bytes", others},
          {"unexplained", text_if_known(finding.unexplained)},
          {"since_segment", text_if_known(finding.since_segment)},
          {"since_step", number_if_known(finding.since_step)},
          {"last_alike_step", number_if_known(finding.last_alike_step)}};
}

nlohmann::ordered_json rank_difference_value(const rank_difference& of) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const rank_difference::alternative& each : of.values)
    values.push_back({{"value", each.value}, {"ranks", each.ranks}, {"least_rank", number_if_known(each.least_rank)}});
  return {{"what", of.what}, {"values", values}, {"other_ranks", of.other_ranks}};
}

nlohmann::ordered_json rank_segment_value(const rank_segment& of) {
  return {{"segment", of.name},
          {"ranks", of.ranks},
          {"least_bytes", of.least},
          {"mean_bytes", of.sum / (of.ranks == 0 ? 1 : of.ranks)},
          {"greatest_bytes", of.greatest},
          {"greatest_rank", number_if_known(of.greatest_rank)}};
}

nlohmann::ordered_json unfinished_rank_value(const unfinished_rank& of) {
  return {{"rank", number_if_known(of.rank)}, {"file", of.file}, {"reason", of.reason}};
}

template <class List, class ValueOf>
nlohmann::ordered_json array_of_values(const List& list, ValueOf&& value_of) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const auto& each : list) values.push_back(value_of(each));
  return values;
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const merged_ranks& of) {
  using namespace detail;
  const nlohmann::ordered_json rows =
      array_of_values(of.shown_rows(false), [](const ranked_run* run) { return ranked_run_value(*run); });
  return {{"format", merge_json_format},
          {"version", merge_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"space", of.space},
          {"ranks", of.ranks},
          {"world_size", number_if_known(of.world_size)},
          {"standing_out", of.standing_out},
          {"findings", array_of_values(of.findings, rank_finding_value)},
          {"missing_count", of.missing_count},
          {"missing", of.missing},
          {"unfinished_count", of.unfinished_count},
          {"unfinished", array_of_values(of.unfinished, unfinished_rank_value)},
          {"differences", array_of_values(of.differences, rank_difference_value)},
          {"inexact_count", of.inexact_count},
          {"inexact", of.inexact},
          {"sum_bytes", of.sum},
          {"least_bytes", of.least},
          {"mean_bytes", of.mean()},
          {"median_bytes", of.median},
          {"median_rank", number_if_known(of.median_rank)},
          {"greatest_bytes", of.greatest},
          {"imbalance", of.imbalance()},
          {"deviation_bytes", of.deviation},
          {"threshold_bytes", of.threshold},
          {"rounding_bytes", of.rounding},
          {"segments", array_of_values(of.segments, rank_segment_value)},
          {"all_rows", rows.size() == static_cast<std::size_t>(of.ranks)},
          {"rows", rows}};
}

}  // namespace memprof::inline MEMPROF_ABI
