#include "xplane_table.hpp"

#include "text_output.hpp"

#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tool {
namespace {

std::string gibibytes(double bytes) { return memprof::detail::decimal(bytes / (1 << 30), 3); }

struct extremes {
  double least;
  double mean;
  double most;
};
extremes extremes_of(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return {static_cast<double>(*least), sum / static_cast<double>(values.size()), static_cast<double>(*most)};
}

std::vector<std::int64_t> markers_of(const std::vector<memprof::hlo_worker>& workers) {
  std::vector<std::int64_t> markers;
  for (const memprof::hlo_worker& each : workers) markers.push_back(each.found.markers);
  return markers;
}

}  // namespace

std::string mebibytes(double bytes) { return memprof::detail::decimal(bytes / (1 << 20), 2); }

std::string few_bytes(double bytes) { return memprof::detail::short_bytes(bytes); }

std::vector<xplane_column> columns_of(const std::vector<memprof::hlo_worker>& workers, const memprof::hlo_class_rules& rules,
                                      bool all_columns) {
  using memprof::hlo_group;
  std::vector<xplane_column> columns;
  const auto add = [&](const std::string& name, const std::string& aggregate, auto&& bytes) {
    xplane_column& made = columns.emplace_back(xplane_column{name, aggregate, {}, mebibytes});
    for (const memprof::hlo_worker& each : workers) made.bytes.push_back(bytes(each.found));
  };
  using found = memprof::hlo_attribution;
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
    columns.back().text = few_bytes;
  }
  return columns;
}

void print_tsv(const std::vector<memprof::hlo_worker>& workers, const std::vector<xplane_column>& columns) {
  std::string text = "workers analyzed: " + std::to_string(workers.size()) + "\n\nhost";
  for (const xplane_column& each : columns) text += '\t' + each.name + "_GiB";
  text += "\tgradient_hits\n";
  for (std::size_t index = 0; index < workers.size(); ++index) {
    text += memprof::detail::on_one_line(workers[index].host);
    for (const xplane_column& each : columns) text += '\t' + gibibytes(static_cast<double>(each.bytes[index]));
    text += '\t' + std::to_string(workers[index].found.markers) + '\n';
  }
  text += "\nAggregate min/avg/max (GiB):\n";
  for (const xplane_column& each : columns) {
    const extremes range = extremes_of(each.bytes);
    text += each.aggregate + "_mib: " + gibibytes(range.least) + '/' + gibibytes(range.mean) + '/' + gibibytes(range.most) + '\n';
  }
  const extremes hits = extremes_of(markers_of(workers));
  text +=
      "gradient_marker_hits: " + memprof::detail::decimal(hits.least, 0) + " / " + memprof::detail::decimal(hits.most, 0) + '\n';
  print(text);
}

/// Prints rows of cells, the first xplane_column left-aligned and the others right-aligned.
void print_aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t index = 0; index < row.size(); ++index) widths[index] = std::max(widths[index], row[index].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t index = 0; index < row.size(); ++index) {
      const std::string padding(widths[index] - row[index].size(), ' ');
      line += index == 0 ? row[index] + padding : "  " + padding + row[index];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    print(line + "\n");
  }
}

void print_text(const std::vector<memprof::hlo_worker>& workers, const std::vector<xplane_column>& columns,
                const memprof::hlo_class_rules& rules, std::size_t max_rows) {
  std::vector<std::vector<std::string>> table(1, {"MB"});
  for (const xplane_column& each : columns) table[0].push_back(each.name);
  table[0].emplace_back("gradient hits");
  for (std::size_t index = 0; index < workers.size(); ++index) {
    std::vector<std::string>& row = table.emplace_back(1, memprof::detail::on_one_line(workers[index].host));
    for (const xplane_column& each : columns) row.push_back(each.text(static_cast<double>(each.bytes[index])));
    row.push_back(std::to_string(workers[index].found.markers));
  }
  if (workers.size() > 1) {
    const auto add = [&](const char* name, double extremes::*of, int decimals) {
      std::vector<std::string>& row = table.emplace_back(1, name);
      for (const xplane_column& each : columns) row.push_back(each.text(extremes_of(each.bytes).*of));
      row.push_back(memprof::detail::decimal(extremes_of(markers_of(workers)).*of, decimals));
    };
    add("minimum", &extremes::least, 0);
    add("average", &extremes::mean, 1);
    add("maximum", &extremes::most, 0);
  }
  print_aligned(table);
  const memprof::hlo_worker& greatest =
      *std::max_element(workers.begin(), workers.end(), [](const memprof::hlo_worker& left, const memprof::hlo_worker& right) {
        return left.found.simulation.peak < right.found.simulation.peak;
      });
  const memprof::heap_simulation& simulated = greatest.found.simulation;
  print("\nLive at the peak of " + memprof::detail::on_one_line(greatest.program) + " on " +
        memprof::detail::on_one_line(greatest.host) + ", " + memprof::detail::megabytes(simulated.peak) + " (" +
        memprof::detail::megabytes(simulated.unpadded_peak) + " without padding), in MB with and without padding:\n");
  std::size_t printed = 0;
  for (const memprof::hlo_attributed_block& row : greatest.found.rows) {
    if (printed++ == max_rows) break;
    const memprof::hlo_block& block = row.block;
    std::string line =
        mebibytes(static_cast<double>(block.bytes)) + "  " + mebibytes(static_cast<double>(block.unpadded_bytes)) + "  " +
        (row.of_class < rules.classes.size() ? rules.classes[row.of_class].name : std::string{to_string(block.group)}) + "  " +
        block.instruction + "  " + block.shape;
    if (!block.op_name.empty()) line += "  " + block.op_name;
    if (!block.source_file.empty()) line += "  " + block.source_file + ':' + std::to_string(block.source_line);
    print("  " + memprof::detail::on_one_line(line) + "\n");
  }
  if (printed > max_rows) print("  and " + std::to_string(greatest.found.rows.size() - max_rows) + " more (--rows shows more)\n");
  print("  " + mebibytes(static_cast<double>(greatest.found.small)) + "  in blocks of less than " +
        std::to_string(memprof::small_hlo_block) + " bytes\n");
}

}  // namespace memprof_tool
