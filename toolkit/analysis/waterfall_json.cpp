#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json changes_value(const std::vector<std::int64_t>& bytes) {
  nlohmann::ordered_json changes = nlohmann::ordered_json::array();
  for (std::size_t column = 1; column < bytes.size(); ++column) changes.push_back(change_at(bytes, column));
  return changes;
}

nlohmann::ordered_json column_value(const compared_run& column) {
  return {{"title", column.title},
          {"file", text_or_null(column.file)},
          {"space", column.space},
          {"mode", to_string(column.mode)},
          {"peak_bytes", column.bytes},
          {"peak_segment", text_or_null(column.segment)},
          {"peak_operation", text_or_null(column.operation)},
          {"optimizer_steps",
           column.training_steps < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(column.training_steps)},
          {"script_ended",
           column.script ? nlohmann::ordered_json(column.script->ended_itself != 0) : nlohmann::ordered_json(nullptr)},
          {"has_categories", column.has_categories},
          {"resident_bytes", column.process && column.process->reading.resident_bytes >= 0
                                 ? nlohmann::ordered_json(column.process->reading.resident_bytes)
                                 : nullptr},
          {"unrecorded_heap_bytes", column.process && column.process->is_heap_known()
                                        ? nlohmann::ordered_json(column.process->reading.unrecorded_heap_bytes)
                                        : nullptr}};
}

nlohmann::ordered_json part_value(const waterfall_part& part) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const waterfall_row& row : part.rows) {
    rows.push_back({{"operation", row.operation},
                    {"bytes", row.bytes},
                    {"changes", changes_value(row.bytes)},
                    {"blocks", row.blocks},
                    {"paths", row.paths}});
  }
  return {{"part", part.name}, {"bytes", part.bytes}, {"changes", changes_value(part.bytes)}, {"operations", rows}};
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const waterfall& of) {
  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  for (const compared_run& column : of.columns) columns.push_back(detail::column_value(column));
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const waterfall_part& part : of.parts) parts.push_back(detail::part_value(part));
  nlohmann::ordered_json categories = nlohmann::ordered_json::array();
  for (const waterfall_category& row : of.categories)
    categories.push_back({{"category", row.name}, {"bytes", row.bytes}, {"changes", detail::changes_value(row.bytes)}});
  return {{"format", waterfall_json_format},
          {"version", waterfall_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"columns", columns},
          {"changes", detail::changes_value(of.total())},
          {"parts", parts},
          {"categories", categories}};
}

}  // namespace memprof::inline MEMPROF_ABI
