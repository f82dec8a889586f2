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
[[nodiscard]] std::string estimate_text(double bytes, double standard_error) {
  if (standard_error <= 0) return detail::short_bytes(bytes);
  return "~" + detail::short_bytes(bytes) + " +- " + detail::short_bytes(standard_error);
}

}  // namespace

std::string to_text(const peak_callers& of, const text_options& options) {
  if (of.bytes <= 0 || (of.callers.empty() && !of.is_sampled)) return {};
  detail::summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns("At peak\tShare\tBlocks\tAsked for by", "rrrl");
  detail::marked_text& rows = section.table.rows;
  const auto whole = static_cast<double>(of.bytes);
  const auto add = [&](double bytes, double error, double blocks) -> detail::marked_text& {
    rows.add(estimate_text(bytes, error)).next_cell().add(percent_of(bytes, whole)).next_cell();
    if (blocks > 0) rows.add((error > 0 ? "~" : "") + detail::grouped(static_cast<std::int64_t>(std::llround(blocks))));
    return rows.next_cell();
  };
  const std::size_t shown = std::min(options.owners, of.callers.size());
  double others = 0;
  double variance = 0;
  double blocks = 0;
  for (std::size_t index = 0; index < of.callers.size(); ++index) {
    const caller_bytes& row = of.callers[index];
    if (index < shown) {
      add(row.bytes, row.standard_error, row.blocks).add_name(row.caller).end_line();
    } else {
      others += row.bytes;
      blocks += row.blocks;
      variance += row.standard_error * row.standard_error;
    }
  }
  if (of.callers.size() > shown) {
    add(others, std::sqrt(variance), blocks);
    rows.add_count(static_cast<std::int64_t>(of.callers.size() - shown), "further caller", "further callers").end_line();
  }
  if (!of.is_sampled && of.bytes_without > 0)
    add(static_cast<double>(of.bytes_without), 0, 0).add("blocks without a stack").end_line();
  detail::answer_text text{options};
  text.add_table(section);
  if (of.is_sampled) {
    text.add_lines("Sample", [](detail::marked_text& line) {
      line.add("~: an estimate from a sample of the blocks below 64 KiB, with its standard error; what has none is exact")
          .end_line();
    });
  }
  if (of.missing_blocks > 0) {
    text.add_lines("Without", [&](detail::marked_text& line) {
      line.add_count(of.missing_blocks, "block has", "blocks have")
          .add(" no stack and should: the stacks were too many")
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
