#include <memprof/config.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/hlo_answer_json.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>
#include <memprof/toolkit/analysis/hlo_table.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {
namespace {

/// "12.34", without a unit.
[[nodiscard]] std::string in_mebibytes(double bytes) { return detail::decimal(bytes / (1 << 20), 2); }
/// With a unit: memory of threads is often less than a hundredth of a mebibyte.
[[nodiscard]] std::string with_unit(double bytes) { return detail::short_bytes(bytes); }
[[nodiscard]] std::string in_gibibytes(double bytes) { return detail::decimal(bytes / (1 << 30), 3); }

struct value_range {
  double least;
  double mean;
  double most;
};
value_range range_of(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return {static_cast<double>(*least), sum / static_cast<double>(values.size()), static_cast<double>(*most)};
}

std::vector<std::int64_t> markers_of(const std::vector<hlo_worker>& workers) {
  std::vector<std::int64_t> markers;
  markers.reserve(workers.size());
  for (const hlo_worker& each : workers) markers.push_back(each.found.markers);
  return markers;
}

/// Rows of cells, the first column left-aligned and the others right-aligned.
[[nodiscard]] std::string aligned_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t index = 0; index < row.size(); ++index) widths[index] = std::max(widths[index], row[index].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t index = 0; index < row.size(); ++index) {
      const std::string padding(widths[index] - row[index].size(), ' ');
      line += index == 0 ? row[index] + padding : "  " + padding + row[index];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// The same, between tabulators.
[[nodiscard]] std::string tab_separated(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (const std::string& cell : row) line += (line.empty() ? "" : "\t") + cell;
    text += line + '\n';
  }
  return text;
}

/// What is live at the greatest peak, at most `max_rows` of its blocks.
[[nodiscard]] std::string blocks_text(const hlo_worker& greatest, const hlo_class_rules& rules, std::size_t max_rows,
                                      std::string_view remedy) {
  const heap_simulation& simulated = greatest.found.simulation;
  std::string text = "\nLive at the peak of " + detail::on_one_line(greatest.program) + " on " +
                     detail::on_one_line(greatest.host) + ", " + detail::megabytes(simulated.peak) + " (" +
                     detail::megabytes(simulated.unpadded_peak) + " without padding), in MB with and without padding:\n";
  std::size_t printed = 0;
  for (const hlo_attributed_block& row : greatest.found.rows) {
    if (printed++ == max_rows) break;
    const hlo_block& block = row.block;
    std::string line =
        in_mebibytes(static_cast<double>(block.bytes)) + "  " + in_mebibytes(static_cast<double>(block.unpadded_bytes)) + "  " +
        (row.of_class < rules.classes.size() ? rules.classes[row.of_class].name : std::string{to_string(block.group)}) + "  " +
        block.instruction + "  " + block.shape;
    if (!block.op_name.empty()) line += "  " + block.op_name;
    if (!block.source_file.empty()) line += "  " + block.source_file + ':' + std::to_string(block.source_line);
    text += "  " + detail::on_one_line(line) + "\n";
  }
  if (printed > max_rows) {
    text += "  and " + std::to_string(greatest.found.rows.size() - max_rows) + " more";
    if (!remedy.empty()) text += " (" + std::string{remedy} + ")";
    text += '\n';
  }
  return text + "  " + in_mebibytes(static_cast<double>(greatest.found.small)) + "  in blocks of less than " +
         std::to_string(small_hlo_block) + " bytes\n";
}

}  // namespace

std::vector<hlo_column> hlo_columns(const std::vector<hlo_worker>& workers, const hlo_class_rules& rules, bool all_columns) {
  std::vector<hlo_column> columns;
  const auto add = [&](const std::string& name, const std::string& aggregate, auto&& bytes) {
    hlo_column& made = columns.emplace_back(hlo_column{name, aggregate, {}, in_mebibytes});
    for (const hlo_worker& each : workers) made.bytes.push_back(bytes(each.found));
  };
  using found = hlo_attribution;
  add("peak", "peak", [](const found& of) { return of.simulation.peak; });
  add("entry_params", "entry_params", [](const found& of) { return of.simulation.parameters; });
  for (std::size_t index = 0; index < rules.classes.size(); ++index) {
    const std::string& name = rules.classes[index].name;
    if (all_columns || rules.classes[index].has_column) add(name, name, [&](const found& of) { return of.classes[index]; });
  }
  add("temporary", "group_temporary", [](const found& of) { return of.group(hlo_group::temporary); });
  add("output", "group_output", [](const found& of) { return of.group(hlo_group::output); });
  if (all_columns) {
    add("thread_local", "thread_local", [](const found& of) { return of.simulation.thread_local_bytes; });
    columns.back().text = with_unit;
  }
  return columns;
}

std::string hlo_table_tsv(const std::vector<hlo_worker>& workers, const std::vector<hlo_column>& columns) {
  std::string text = "workers analyzed: " + std::to_string(workers.size()) + "\n\nhost";
  for (const hlo_column& each : columns) text += '\t' + each.name + "_GiB";
  text += "\tgradient_hits\n";
  for (std::size_t index = 0; index < workers.size(); ++index) {
    text += detail::on_one_line(workers[index].host);
    for (const hlo_column& each : columns) text += '\t' + in_gibibytes(static_cast<double>(each.bytes[index]));
    text += '\t' + std::to_string(workers[index].found.markers) + '\n';
  }
  text += "\nAggregate min/avg/max (GiB):\n";
  for (const hlo_column& each : columns) {
    const value_range range = range_of(each.bytes);
    text += each.aggregate + "_mib: " + in_gibibytes(range.least) + '/' + in_gibibytes(range.mean) + '/' +
            in_gibibytes(range.most) + '\n';
  }
  const value_range hits = range_of(markers_of(workers));
  text += "gradient_marker_hits: " + detail::decimal(hits.least, 0) + " / " + detail::decimal(hits.most, 0) + '\n';
  return text;
}

std::string hlo_table_text(const std::vector<hlo_worker>& workers, const std::vector<hlo_column>& columns,
                           const hlo_class_rules& rules, std::size_t max_rows, std::string_view remedy) {
  std::vector<std::vector<std::string>> table(1, {"MB"});
  for (const hlo_column& each : columns) table[0].push_back(each.name);
  table[0].emplace_back("gradient hits");
  for (std::size_t index = 0; index < workers.size(); ++index) {
    std::vector<std::string>& row = table.emplace_back(1, detail::on_one_line(workers[index].host));
    for (const hlo_column& each : columns) row.push_back(each.text(static_cast<double>(each.bytes[index])));
    row.push_back(std::to_string(workers[index].found.markers));
  }
  if (workers.size() > 1) {
    const auto add = [&](const char* name, double value_range::*of, int decimals) {
      std::vector<std::string>& row = table.emplace_back(1, name);
      for (const hlo_column& each : columns) row.push_back(each.text(range_of(each.bytes).*of));
      row.push_back(detail::decimal(range_of(markers_of(workers)).*of, decimals));
    };
    add("minimum", &value_range::least, 0);
    add("average", &value_range::mean, 1);
    add("maximum", &value_range::most, 0);
  }
  const hlo_worker& greatest = *std::max_element(
      workers.begin(), workers.end(),
      [](const hlo_worker& left, const hlo_worker& right) { return left.found.simulation.peak < right.found.simulation.peak; });
  return aligned_columns(table) + blocks_text(greatest, rules, max_rows, remedy);
}

std::string hlo_programs_text(const std::vector<hlo_listed_program>& programs, bool as_tsv) {
  std::vector<std::vector<std::string>> table(
      1, {"module", "workers", "runs", "peak", "entry_params", "output", "simulated", "taken", "thread_local"});
  if (!as_tsv) table[0][0] = "module (MB, of the worker with the greatest peak)";
  for (const hlo_listed_program& each : programs) {
    const heap_simulation& of = each.greatest;
    std::vector<std::string>& row = table.emplace_back();
    row = {detail::on_one_line(each.name), std::to_string(each.workers), std::to_string(each.runs)};
    const auto add = [&](std::int64_t bytes, std::string (*text)(double)) {
      row.push_back(as_tsv ? std::to_string(bytes) : text(static_cast<double>(bytes)));
    };
    for (const std::int64_t bytes : {of.peak, of.parameters, of.outputs, of.peak - of.indefinite, of.all_allocations})
      add(bytes, in_mebibytes);
    add(of.thread_local_bytes, with_unit);
  }
  return as_tsv ? tab_separated(table) : aligned_columns(table);
}

}  // namespace memprof::inline MEMPROF_ABI
