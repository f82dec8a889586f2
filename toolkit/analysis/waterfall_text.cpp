#include <memprof/config.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/page_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// "estimate 1.43 GiB (1,533,996,032 B) in BACKWARD_PASS, operation backward/lm_head".
page_line peak_line(const waterfall_column& column) {
  page_line line;
  line.add(column.title + " ").add(short_and_exact_bytes(column.peak), emphasis::strong);
  if (!column.segment.empty()) line.add(" in ").add_name(column.segment);
  if (!column.operation.empty()) line.add(", operation ").add_name(column.operation);
  return line;
}

/// The number of operations that differ between two columns in parts that do not.
std::int64_t operations_that_change(const waterfall& of, std::size_t column) {
  std::int64_t count = 0;
  for (const waterfall_part& part : of.parts) {
    if (part.change(column) != 0) continue;
    count += std::count_if(part.rows.begin(), part.rows.end(), [&](const waterfall_row& row) { return row.change(column) != 0; });
  }
  return count;
}

/// Why column `column` is higher or lower than the one before, in at most `most` parts.
page_line reason_line(const waterfall& of, std::size_t column, std::size_t most) {
  const std::string& title = of.columns[column].title;
  const std::string& before = of.columns[column - 1].title;
  const std::int64_t change = of.total().change(column);
  std::vector<const waterfall_part*> parts;
  for (const waterfall_part& part : of.parts) {
    if (part.change(column) != 0) parts.push_back(&part);
  }
  page_line line;
  if (parts.empty()) {
    line.add(title + " equals " + before + ", part by part to the byte");
    const std::int64_t moved = operations_that_change(of, column);
    return moved == 0 ? line : line.add("; " + grouped(moved, "operation differs", "operations differ") + " within them");
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const waterfall_part* left, const waterfall_part* right) {
    return std::abs(left->change(column)) > std::abs(right->change(column));
  });
  if (change == 0) {
    line.add(title + " equals " + before + ", but its parts do not: ");
  } else {
    line.add(title + " is ").add(short_and_exact_bytes(std::abs(change)), emphasis::strong);
    line.add(change > 0 ? " more than " : " less than ").add(before);
    const std::int64_t base = of.columns[column - 1].peak;
    const std::string share = short_percent(change, base);
    if (base != 0 && share != "0.0 %" && share != "-0.0 %" && share.front() != '<')
      line.add(" (" + std::string{change > 0 ? "+" : ""} + share + ")");
    line.add(": ");
  }
  std::int64_t rest = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    if (index >= most) {
      rest += parts[index]->change(column);
      continue;
    }
    line.add(index == 0 ? "" : ", ").add_name(parts[index]->name);
    line.add(" " + signed_short_bytes(parts[index]->change(column)));
  }
  if (parts.size() > most) {
    line.add(", " + grouped(static_cast<std::int64_t>(parts.size() - most), "other part", "other parts") + " " +
             signed_short_bytes(rest));
  }
  return line;
}

/// By how much the process of column `column` differs from that of the one before, if that is notable and both are known.
page_line process_change_line(const waterfall& of, std::size_t column) {
  page_line line;
  const std::optional<process_account>& process = of.columns[column].process;
  const std::optional<process_account>& before = of.columns[column - 1].process;
  if (!process || !before || process->reading.resident_bytes < 0 || before->reading.resident_bytes < 0) return line;
  const auto change = [&](auto bytes_of) { return bytes_of(*process) - bytes_of(*before); };
  const auto heap_of = [](const process_account& each) { return std::max<std::int64_t>(0, each.reading.unrecorded_heap_bytes); };
  const std::int64_t resident = change([](const process_account& each) { return each.reading.resident_bytes; });
  const std::int64_t heap = change(heap_of);
  const std::int64_t largest = std::max(process->reading.resident_bytes, before->reading.resident_bytes);
  if (!is_notable(std::max(std::abs(resident), std::abs(heap)), largest)) return line;
  const std::int64_t recorded = change([](const process_account& each) { return each.recorded; });
  const std::int64_t resident_heap = change([](const process_account& each) { return each.unrecorded_heap; });
  line.add(of.columns[column].title + " " + short_bytes(process->reading.resident_bytes) + " resident, ");
  line.add(short_bytes(std::abs(resident)), emphasis::strong).add(resident < 0 ? " less" : " more");
  line.add(" than " + of.columns[column - 1].title + ": recorded " + signed_short_bytes(recorded));
  if (process->is_heap_known() && before->is_heap_known())
    line.add(", heap not recorded ").add(signed_short_bytes(resident_heap), emphasis::alarm);
  line.add(", others " + signed_short_bytes(resident - recorded - resident_heap));
  if (heap != resident_heap) line.add("; " + signed_short_bytes(heap - resident_heap) + " of unrecorded heap not resident");
  return line;
}

/// A row of the table: bytes in each column, then the changes. `is_there` says which columns have the operation.
template <class IsThere>
std::vector<page_line> waterfall_cells(page_line name, const waterfall_bytes& of, IsThere&& is_there) {
  std::vector<page_line> cells{std::move(name)};
  for (std::size_t column = 0; column < of.bytes.size(); ++column) {
    cells.emplace_back(is_there(column) ? short_bytes(of.bytes[column]) : std::string{"-"});
  }
  for (std::size_t column = 1; column < of.bytes.size(); ++column) {
    const std::int64_t change = of.change(column);
    cells.push_back(page_line{}.add(signed_short_bytes(change), change == 0 ? emphasis::faint : emphasis::strong));
  }
  return cells;
}

page_table waterfall_table(const waterfall& of, std::string_view first) {
  page_table table;
  table.has_titles = true;
  table.columns.push_back({first, false});
  for (const waterfall_column& column : of.columns) table.columns.push_back({column.title, true});
  for (std::size_t column = 1; column < of.columns.size(); ++column) table.columns.push_back({"change", true});
  return table;
}

/// "  forward/block/attention x12": an operation, and how many operations of the program it stands for.
page_line operation_name(const waterfall_row& row) {
  const std::int64_t paths = row.paths.empty() ? 0 : *std::max_element(row.paths.begin(), row.paths.end());
  page_line name;
  name.add("  ").add_name(row.operation);
  if (paths > 1) name.add(" x" + std::to_string(paths), emphasis::faint);
  return name;
}

/// Each part that differs with its operations that differ, or all parts and operations; then the sum.
page_section part_section(const waterfall& of, bool shows_all) {
  page_section section;
  section.is_wide = true;
  section.table = waterfall_table(of, "Operation at the peak");
  const auto everywhere = [](std::size_t) { return true; };
  waterfall_bytes equal{std::vector<std::int64_t>(of.columns.size())};
  std::int64_t equal_parts = 0;
  for (const waterfall_part& part : of.parts) {
    if (!shows_all && !part.differs()) {
      for (std::size_t column = 0; column < equal.bytes.size(); ++column) equal.bytes[column] += part.bytes[column];
      ++equal_parts;
      continue;
    }
    section.table.rows.push_back(waterfall_cells(page_line{}.add_name(part.name, emphasis::strong), part, everywhere));
    for (const waterfall_row& row : part.rows) {
      if (!shows_all && !row.differs()) continue;
      section.table.rows.push_back(
          waterfall_cells(operation_name(row), row, [&](std::size_t column) { return row.paths[column] != 0; }));
    }
  }
  if (equal_parts != 0) {
    section.table.rows.push_back(
        waterfall_cells(page_line{}.add_name(grouped(equal_parts, "equal part", "equal parts")), equal, everywhere));
  }
  section.table.rows.push_back(waterfall_cells(page_line{}.add_name("sum", emphasis::strong), of.total(), everywhere));
  return section;
}

page_section category_section(const waterfall& of) {
  page_section section;
  section.is_wide = true;
  section.table = waterfall_table(of, "Category at the peak");
  for (const waterfall_category& row : of.categories) {
    section.table.rows.push_back(waterfall_cells(page_line{}.add_name(row.name), row, [](std::size_t) { return true; }));
  }
  return section;
}

/// Caveats about the columns.
page_section waterfall_notes(const waterfall& of, bool shows_all) {
  page_section section;
  section.heading = "Notes";
  const auto same = [&](auto field) {
    return std::all_of(of.columns.begin(), of.columns.end(),
                       [&](const waterfall_column& column) { return column.*field == of.columns.front().*field; });
  };
  if (!same(&waterfall_column::segment))
    section.lines.emplace_back("The peaks are in different phases: each column has what was live at its own.");
  if (!same(&waterfall_column::space)) {
    page_line line{"The columns are of different memory spaces:"};
    for (const waterfall_column& column : of.columns) line.add(" ").add_name(column.space);
    section.lines.push_back(line);
  }
  if (!shows_all) {
    const std::int64_t parts = std::count_if(of.parts.begin(), of.parts.end(), [](const waterfall_part& part) {
      return !part.differs() && std::any_of(part.rows.begin(), part.rows.end(), [](const auto& row) { return row.differs(); });
    });
    if (parts != 0) {
      section.lines.emplace_back(grouped(parts, "equal part consists", "equal parts consist") +
                                 " of different operations in some columns: --all lists them.");
    }
  }
  const auto lacks = std::find_if_not(of.columns.begin(), of.columns.end(),
                                      [](const waterfall_column& column) { return column.has_categories; });
  if (lacks != of.columns.end()) {
    section.lines.push_back(page_line{"For "}
                                .add(lacks->title)
                                .add(" it is unknown which operation held which category, so parts go by name alone; a trace "
                                     "records it."));
  }
  return section;
}

}  // namespace
}  // namespace detail

std::string to_text(const waterfall& of, const text_options& options, bool shows_all) {
  constexpr std::size_t max_reasons = 4;
  constexpr std::size_t max_lines_each = 6;
  detail::page_section peaks;
  peaks.heading = "Peak";
  for (const waterfall_column& column : of.columns) peaks.lines.push_back(detail::peak_line(column));
  detail::page_section reasons;
  reasons.heading = "Change";
  for (std::size_t column = 1; column < of.columns.size(); ++column)
    reasons.lines.push_back(detail::reason_line(of, column, max_reasons));
  std::string text;
  const auto add = [&](const detail::page_section& section) {
    for (const std::string& line :
         detail::section_text(section, std::max<std::size_t>(options.columns, 60), max_lines_each, options.is_colored))
      text += line + '\n';
  };
  detail::page_section processes;
  processes.heading = "Process";
  for (std::size_t column = 1; column < of.columns.size(); ++column) {
    if (detail::page_line line = detail::process_change_line(of, column); !line.empty())
      processes.lines.push_back(std::move(line));
  }
  add(peaks);
  add(reasons);
  add(processes);
  add(detail::waterfall_notes(of, shows_all));
  text += '\n';
  add(detail::part_section(of, shows_all));
  if (of.categories.empty()) return text;
  text += '\n';
  add(detail::category_section(of));
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
