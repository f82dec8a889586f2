#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json number_or_null(std::int64_t number) {
  return number < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(number);
}

nlohmann::ordered_json run_value(const compared_run& run, const number_range& range) {
  return {{"title", run.title},
          {"file", text_or_null(run.file)},
          {"space", run.space},
          {"mode", to_string(run.mode)},
          {"exact", run.exact},
          {"bytes", run.bytes},
          {"blocks", run.blocks},
          {"segment", text_or_null(run.segment)},
          {"step", number_or_null(run.step)},
          {"operation", text_or_null(run.operation)},
          {"reserved_bytes", run.reserved},
          {"resident_bytes", run.process ? number_or_null(run.process->reading.resident_bytes) : nullptr},
          {"runs", range.runs},
          {"least_bytes", range.least},
          {"median_bytes", range.median},
          {"greatest_bytes", range.greatest}};
}

nlohmann::ordered_json reserved_value(const comparison& of) {
  if (!of.has_reserved()) return nullptr;
  return {{"before_bytes", of.before.reserved},
          {"after_bytes", of.after.reserved},
          {"change_bytes", of.reserved_change()},
          {"peak_change_bytes", of.reserved_change_of_peak()},
          {"above_peak_change_bytes", of.reserved_change_above_peak()}};
}

template <class NameOf>
nlohmann::ordered_json row_values(const std::vector<comparison_row>& rows, const char* key, NameOf&& name_of) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const comparison_row& row : rows) {
    if (row.change() == 0 && row.blocks_before == row.blocks_after) continue;
    values.push_back({{key, name_of(row)},
                      {"before_bytes", row.before},
                      {"after_bytes", row.after},
                      {"change_bytes", row.change()},
                      {"before_blocks", row.blocks_before},
                      {"after_blocks", row.blocks_after},
                      {"operations", row.operations},
                      {"what", to_string(row.what)}});
  }
  return values;
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const comparison& of) {
  const auto owner = [](const comparison_row& row) { return row.owner; };
  std::int64_t unchanged = 0;
  for (const comparison_row& row : of.operations) {
    if (row.change() == 0) unchanged += row.before;
  }
  return {{"format", comparison_json_format},
          {"version", comparison_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"moment", to_string(of.after.moment)},
          {"equal", of.is_equal()},
          {"change_bytes", of.change()},
          {"same_moment", of.is_same_moment()},
          {"more_than_noise", of.runs_before.runs > 1 && of.runs_after.runs > 1 ? nlohmann::ordered_json(of.are_ranges_apart())
                                                                                : nlohmann::ordered_json(nullptr)},
          {"before", detail::run_value(of.before, of.runs_before)},
          {"after", detail::run_value(of.after, of.runs_after)},
          {"reserved", detail::reserved_value(of)},
          {"other_spaces", detail::row_values(of.other_spaces, "space", owner)},
          {"unchanged_bytes", unchanged},
          {"operations", detail::row_values(of.operations, "operation", owner)},
          {"categories", detail::row_values(of.categories, "category", owner)},
          {"sizes", detail::row_values(of.sizes, "least_size", [](const comparison_row& row) { return std::stoll(row.owner); })},
          {"callers",
           detail::row_values(of.callers, "caller", [](const comparison_row& row) { return detail::text_or_null(row.owner); })}};
}

}  // namespace memprof::inline MEMPROF_ABI
