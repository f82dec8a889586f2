#include <memprof/config.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/script_run.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// A column is named after a file, whose name may hold anything.
std::string column_title(const compared_run& column) { return on_one_line(column.title); }

/// "estimate 1.43 GiB (1,533,996,032 B) in BACKWARD_PASS, operation backward/lm_head".
void add_peak(marked_text& line, const compared_run& column) {
  line.add(column_title(column)).add(" ").add_total(column.bytes, emphasis::strong);
  if (!column.segment.empty()) line.add(" in ").add_name(column.segment);
  if (!column.operation.empty()) line.add(", operation ").add_name(column.operation);
  line.end_line();
}

/// "measured: the first 2 optimizer steps of the script": what of the training the column rests on, if that is known.
void add_steps(marked_text& line, const compared_run& column) {
  if (column.training_steps < 0) return;
  line.add(column_title(column)).add(": ");
  if (!column.script) {
    column.training_steps == 1 ? line.add("one step") : line.add_count(column.training_steps, "step", "steps");
  } else if (column.script->optimizer_steps == 0) {
    line.add("none: the script ended before an optimizer made a step");
  } else if (column.script->ended_itself == 0) {
    line.add("the first ").add_count(column.script->optimizer_steps, "optimizer step", "optimizer steps").add(" of the script");
  } else {
    line.add_count(column.script->optimizer_steps, "optimizer step", "optimizer steps").add(", then the script ended");
    if (column.script->optimizer_steps < column.script->wanted_steps)
      line.add(": ").add(std::to_string(column.script->wanted_steps)).add(" were asked for");
  }
  line.end_line();
}

/// What the numbers of scripts' steps say against a comparison.
void add_step_notes(marked_text& lines, const waterfall& of) {
  std::vector<std::int64_t> steps;
  for (const compared_run& column : of.columns) {
    if (column.script) steps.push_back(column.script->optimizer_steps);
  }
  if (steps.empty()) return;
  if (*std::max_element(steps.begin(), steps.end()) == 0) {
    lines.add("no optimizer made a step: the peaks are those of what the script did, not of a training step").end_line();
  } else if (std::adjacent_find(steps.begin(), steps.end(), std::not_equal_to<>{}) != steps.end()) {
    lines.add("the script made different numbers of optimizer steps in its runs").end_line();
  }
}

/// The number of operations that differ between two columns in parts that do not.
std::int64_t operations_that_change(const waterfall& of, std::size_t column) {
  std::int64_t count = 0;
  for (const waterfall_part& part : of.parts) {
    if (change_at(part.bytes, column) != 0) continue;
    count += std::count_if(part.rows.begin(), part.rows.end(),
                           [&](const waterfall_row& row) { return change_at(row.bytes, column) != 0; });
  }
  return count;
}

/// Why column `column` is higher or lower than the one before, in at most `most` parts.
void add_reason(marked_text& line, const waterfall& of, std::size_t column, std::size_t most) {
  const std::string title = column_title(of.columns[column]);
  const std::string before = column_title(of.columns[column - 1]);
  const std::int64_t change = change_at(of.total(), column);
  std::vector<const waterfall_part*> parts;
  for (const waterfall_part& part : of.parts) {
    if (change_at(part.bytes, column) != 0) parts.push_back(&part);
  }
  if (parts.empty()) {
    line.add(title).add(" equals ").add(before).add(", part by part to the byte");
    const std::int64_t moved = operations_that_change(of, column);
    if (moved != 0) line.add("; ").add_count(moved, "operation differs", "operations differ").add(" within them");
    line.end_line();
    return;
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const waterfall_part* left, const waterfall_part* right) {
    return std::abs(change_at(left->bytes, column)) > std::abs(change_at(right->bytes, column));
  });
  if (change == 0) {
    line.add(title + " equals " + before + ", but its parts do not: ");
  } else {
    line.add(title).add(" is ").add_total(std::abs(change), emphasis::strong);
    line.add(change > 0 ? " more than " : " less than ").add(before);
    const std::int64_t base = of.columns[column - 1].bytes;
    const std::string share = short_percent(change, base);
    if (base != 0 && share != "0.0 %" && share != "-0.0 %" && share.front() != '<')
      line.add(" (" + std::string{change > 0 ? "+" : ""} + share + ")");
    line.add(": ");
  }
  std::int64_t rest = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    if (index >= most) {
      rest += change_at(parts[index]->bytes, column);
      continue;
    }
    line.add(index == 0 ? "" : ", ").add_name(parts[index]->name);
    line.add(" ").add_change(change_at(parts[index]->bytes, column));
  }
  if (parts.size() > most) {
    line.add(", ").add_count(static_cast<std::int64_t>(parts.size() - most), "other part", "other parts");
    line.add(" ").add_change(rest);
  }
  line.end_line();
}

/// By how much the process of column `column` differs from that of the one before, if that is notable and both are known.
void add_process_change(marked_text& line, const waterfall& of, std::size_t column) {
  const std::optional<process_account>& process = of.columns[column].process;
  const std::optional<process_account>& before = of.columns[column - 1].process;
  if (!process || !before || process->reading.resident_bytes < 0 || before->reading.resident_bytes < 0) return;
  const auto change = [&](auto bytes_of) { return bytes_of(*process) - bytes_of(*before); };
  const auto heap_of = [](const process_account& each) { return std::max<std::int64_t>(0, each.reading.unrecorded_heap_bytes); };
  const std::int64_t resident = change([](const process_account& each) { return each.reading.resident_bytes; });
  const std::int64_t heap = change(heap_of);
  const std::int64_t largest = std::max(process->reading.resident_bytes, before->reading.resident_bytes);
  if (!is_notable(std::max(std::abs(resident), std::abs(heap)), largest)) return;
  const std::int64_t recorded = change([](const process_account& each) { return each.recorded; });
  const std::int64_t resident_heap = change([](const process_account& each) { return each.unrecorded_heap; });
  line.add(column_title(of.columns[column])).add(" ").add_bytes(process->reading.resident_bytes).add(" resident, ");
  line.add_bytes(std::abs(resident), emphasis::strong).add(resident < 0 ? " less" : " more");
  line.add(" than ").add(column_title(of.columns[column - 1])).add(": recorded ").add_change(recorded);
  if (process->is_heap_known() && before->is_heap_known())
    line.add(", heap not recorded ").add(signed_short_bytes(resident_heap), emphasis::alarm);
  line.add(", others ").add_change(resident - recorded - resident_heap);
  if (heap != resident_heap) line.add("; ").add_change(heap - resident_heap).add(" of unrecorded heap not resident");
  line.end_line();
}

/// The cells of a row behind its name: bytes in each column, then the changes. `is_there` says which columns have the operation.
template <class IsThere>
void add_waterfall_cells(marked_text& rows, const std::vector<std::int64_t>& bytes, IsThere&& is_there) {
  for (std::size_t column = 0; column < bytes.size(); ++column) {
    rows.next_cell();
    is_there(column) ? rows.add_bytes(bytes[column]) : rows.add("-");
  }
  for (std::size_t column = 1; column < bytes.size(); ++column) {
    const std::int64_t change = change_at(bytes, column);
    rows.next_cell().add(signed_short_bytes(change), change == 0 ? emphasis::faint : emphasis::strong);
  }
  rows.end_line();
}

constexpr auto is_everywhere = [](std::size_t) { return true; };

summary_table waterfall_table(const waterfall& of, std::string_view first) {
  summary_table table;
  table.has_titles = true;
  table.titles = first;
  table.alignment = "l";
  const auto add = [&](std::string_view title) {
    table.titles.append("\t").append(title);
    table.alignment += 'r';
  };
  for (const compared_run& column : of.columns) add(column_title(column));
  for (std::size_t column = 1; column < of.columns.size(); ++column) add("change");
  return table;
}

/// "  forward/block/attention x12": an operation, and how many operations of the program it stands for.
void add_operation(marked_text& cell, const waterfall_row& row) {
  const std::int64_t paths = row.paths.empty() ? 0 : *std::max_element(row.paths.begin(), row.paths.end());
  cell.add("  ").add_name(row.operation);
  if (paths > 1) cell.add(" x" + std::to_string(paths), emphasis::faint);
}

/// The rows of a table that are shown: those that differ, which come first, up to `most`, or all. The others are summed up.
struct shown_rows {
  std::size_t count = 0;    ///< shown
  std::int64_t others = 0;  ///< that differ, too
  std::vector<std::int64_t> others_sum;
  std::int64_t equal = 0;
  std::vector<std::int64_t> equal_sum;
};

template <class Row>
shown_rows choose_rows(const std::vector<Row>& rows, std::size_t columns, std::size_t most, bool shows_all) {
  shown_rows chosen;
  chosen.others_sum.resize(columns);
  chosen.equal_sum.resize(columns);
  const auto first_equal = std::find_if_not(rows.begin(), rows.end(), [](const Row& row) { return differ(row.bytes); });
  const auto differing = static_cast<std::size_t>(first_equal - rows.begin());
  chosen.count = shows_all ? rows.size() : differing > most + 1 ? most : differing;  // one more takes the line of the others
  for (std::size_t index = chosen.count; index < rows.size(); ++index) {
    const bool is_equal = index >= differing;
    ++(is_equal ? chosen.equal : chosen.others);
    std::vector<std::int64_t>& sum = is_equal ? chosen.equal_sum : chosen.others_sum;
    for (std::size_t column = 0; column < columns; ++column) sum[column] += rows[index].bytes[column];
  }
  return chosen;
}

/// Each part that differs with its operations that differ, the greatest changes first, or all parts and operations; then the sum.
summary_section part_section(const waterfall& of, bool shows_all) {
  constexpr std::size_t most_parts = 16;
  constexpr std::size_t most_operations = 10;
  summary_section section;
  section.is_wide = true;
  section.table = waterfall_table(of, "Operation at the peak");
  marked_text& rows = section.table.rows;
  const std::size_t columns = of.columns.size();
  const auto add_sum = [&](std::int64_t count, const char* one, const char* several, const std::vector<std::int64_t>& sum) {
    if (count != 0) add_waterfall_cells(rows.add_name(grouped(count, one, several)), sum, is_everywhere);
  };
  const shown_rows parts = choose_rows(of.parts, columns, most_parts, shows_all);
  for (std::size_t index = 0; index < parts.count; ++index) {
    const waterfall_part& part = of.parts[index];
    add_waterfall_cells(rows.add_name(part.name, emphasis::strong), part.bytes, is_everywhere);
    const shown_rows operations = choose_rows(part.rows, columns, most_operations, shows_all);
    for (std::size_t shown = 0; shown < operations.count; ++shown) {
      const waterfall_row& row = part.rows[shown];
      add_operation(rows, row);
      add_waterfall_cells(rows, row.bytes, [&](std::size_t column) { return row.paths[column] != 0; });
    }
    if (operations.others != 0) rows.add("  ");
    add_sum(operations.others, "other operation", "other operations", operations.others_sum);
  }
  add_sum(parts.others, "other part", "other parts", parts.others_sum);
  add_sum(parts.equal, "equal part", "equal parts", parts.equal_sum);
  add_waterfall_cells(rows.add_name("sum", emphasis::strong), of.total(), is_everywhere);
  return section;
}

summary_section category_section(const waterfall& of) {
  summary_section section;
  section.is_wide = true;
  section.table = waterfall_table(of, "Category at the peak");
  for (const waterfall_category& row : of.categories)
    add_waterfall_cells(section.table.rows.add_name(row.name), row.bytes, is_everywhere);
  return section;
}

/// Caveats about the columns.
summary_section waterfall_notes(const waterfall& of, bool shows_all) {
  summary_section section;
  section.heading = "Notes";
  const auto same = [&](auto field) {
    return std::all_of(of.columns.begin(), of.columns.end(),
                       [&](const compared_run& column) { return column.*field == of.columns.front().*field; });
  };
  if (!same(&compared_run::segment))
    section.lines.add("The peaks are in different phases: each column has what was live at its own.").end_line();
  if (!same(&compared_run::space)) {
    section.lines.add("The columns are of different memory spaces:");
    for (const compared_run& column : of.columns) section.lines.add(" ").add_name(column.space);
    section.lines.end_line();
  }
  if (!shows_all) {
    const std::int64_t parts = std::count_if(of.parts.begin(), of.parts.end(), [](const waterfall_part& part) {
      return !differ(part.bytes) &&
             std::any_of(part.rows.begin(), part.rows.end(), [](const auto& row) { return differ(row.bytes); });
    });
    if (parts != 0) {
      section.lines.add_count(parts, "equal part consists", "equal parts consist")
          .add(" of different operations in some columns: --all lists them.")
          .end_line();
    }
  }
  const auto lacks =
      std::find_if_not(of.columns.begin(), of.columns.end(), [](const compared_run& column) { return column.has_categories; });
  if (lacks != of.columns.end()) {
    section.lines.add("For ").add(column_title(*lacks));
    section.lines.add(" it is unknown which operation held which category, so parts go by name alone; a trace records it.")
        .end_line();
  }
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> remarks;
  for (const compared_run& column : of.columns) {
    titles.push_back(column.title);
    remarks.push_back(column.remarks);
  }
  add_step_notes(section.lines, of);
  add_remarks(section.lines, titled_remarks(titles, remarks));
  return section;
}

}  // namespace
}  // namespace detail

std::string to_text(const waterfall& of, const text_options& options, bool shows_all) {
  using namespace detail;
  constexpr std::size_t max_reasons = 4;
  answer_text text{options};
  summary_section peaks;
  peaks.heading = "Peak";
  for (const compared_run& column : of.columns) add_peak(peaks.lines, column);
  summary_section reasons;
  reasons.heading = "Change";
  summary_section processes;
  processes.heading = "Process";
  for (std::size_t column = 1; column < of.columns.size(); ++column) {
    add_reason(reasons.lines, of, column, max_reasons);
    add_process_change(processes.lines, of, column);
  }
  summary_section steps;
  steps.heading = "Steps";
  for (const compared_run& column : of.columns) add_steps(steps.lines, column);
  text.add(peaks);
  text.add(steps);
  text.add(reasons);
  text.add(processes);
  text.add(waterfall_notes(of, shows_all));
  text.add_table(part_section(of, shows_all));
  if (!of.categories.empty()) text.add_table(category_section(of));
  return text.take();
}

std::string verdict_of(const waterfall& of) {
  constexpr std::size_t max_reasons = 4;
  return detail::plain_line([&](detail::marked_text& lines) {
    for (std::size_t column = 1; column < of.columns.size(); ++column) detail::add_reason(lines, of, column, max_reasons);
  });
}

std::vector<std::string> caveats_of(const waterfall& of) {
  return detail::plain_lines(
      [&](detail::marked_text& lines) { lines.add_lines(detail::waterfall_notes(of, true).lines.text()); });
}

}  // namespace memprof::inline MEMPROF_ABI
