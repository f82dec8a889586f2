#include <memprof/config.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_text.hpp>
#include <memprof/toolkit/symbols/symbolizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI {

namespace {

[[nodiscard]] std::string percent_of(double part, double whole) { return detail::three_digits(100 * part / whole) + " %"; }

/// "50.0 MiB", or of a sample "~50.0 MiB +- 1.20 MiB".
[[nodiscard]] std::string estimate_text(const caller_bytes& row) {
  if (!row.is_estimated) return detail::short_bytes(row.bytes);
  return "~" + detail::short_bytes(row.bytes) + " +- " + detail::short_bytes(row.standard_error);
}

}  // namespace

std::string to_text(const peak_callers& of, const text_options& options) {
  if (!of.has_rows()) return {};
  detail::summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns("At peak\tShare\tBlocks\tAsked for by", "rrrl");
  detail::marked_text& rows = section.table.rows;
  const auto whole = static_cast<double>(of.bytes);
  const auto add = [&](const caller_bytes& row) -> detail::marked_text& {
    rows.add(estimate_text(row)).next_cell().add(percent_of(row.bytes, whole)).next_cell();
    if (row.blocks > 0)
      rows.add((row.is_estimated ? "~" : "") + detail::grouped(static_cast<std::int64_t>(std::llround(row.blocks))));
    return rows.next_cell();
  };
  const std::size_t shown = std::min(options.owners, of.callers.size());
  caller_bytes others;
  double variance = 0;
  bool has_estimates = false;
  for (std::size_t index = 0; index < of.callers.size(); ++index) {
    const caller_bytes& row = of.callers[index];
    has_estimates = has_estimates || row.is_estimated;
    if (index < shown) {
      add(row).add_name(row.caller).end_line();
    } else {
      others.bytes += row.bytes;
      others.blocks += row.blocks;
      others.is_estimated = others.is_estimated || row.is_estimated;
      variance += row.standard_error * row.standard_error;
    }
  }
  if (of.callers.size() > shown) {
    others.standard_error = std::sqrt(variance);
    add(others).add_count(static_cast<std::int64_t>(of.callers.size() - shown), "further caller", "further callers").end_line();
  }
  if (of.bytes_without > 0) add({{}, static_cast<double>(of.bytes_without)}).add("blocks without a stack").end_line();
  if (of.unsampled_blocks > 0) {
    add({{}, static_cast<double>(of.unsampled_bytes), static_cast<double>(of.unsampled_blocks)})
        .add("blocks below 64 KiB, of which ")
        .add_count(of.sampled_blocks, "has a stack", "have a stack")
        .add(": --stacks=all records each")
        .end_line();
  }
  detail::answer_text text{options};
  text.add_table(section);
  if (has_estimates) {
    text.add_lines("Sample", [&](detail::marked_text& line) {
      line.add("~: an estimate, with its standard error, from ")
          .add_count(of.sampled_blocks)
          .add(" of the blocks below 64 KiB; all else is exact")
          .end_line();
    });
  }
  if (of.missing_blocks > 0) {
    text.add_lines("Without", [&](detail::marked_text& line) {
      line.add_count(of.missing_blocks, "block has", "blocks have")
          .add(" no stack and should: the stacks were too many, or could not be walked")
          .end_line();
    });
  }
  if (!symbolizer::reads_debug_information()) {
    text.add_lines("Names", [](detail::marked_text& line) {
      line.add("are the files' own symbols: this memprof reads no debug information, as it was built without libdw").end_line();
    });
  }
  return text.take();
}

}  // namespace memprof::inline MEMPROF_ABI
