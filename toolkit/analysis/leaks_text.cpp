#include <memprof/config.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/growth.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

constexpr std::size_t most_owners = 20;

std::string_view step_word(const leak_report& of) { return of.is_by_count ? "part" : "step"; }

/// Step `step`, which counts from 0, as people count.
std::string step_text(std::int64_t step) { return grouped(step + 1); }

/// Whether steps are known to within a part of the run, which has several.
bool is_about(const leak_report& of) { return of.steps > static_cast<std::int64_t>(step_ends::max_parts); }

/// "since step 1", "since about step 513".
std::string since_text(const leak_report& of, std::int64_t step) {
  const std::string number{std::string{step_word(of)} + " " + step_text(step)};
  if (step == of.missing_steps) return of.missing_steps == 0 ? "since " + number : "since " + number + " or before";
  return (is_about(of) ? "since about " : "since ") + number;
}

std::string_view name_of(const growing_owner& owner) {
  return owner.operation.empty() ? outside_every_operation : owner.operation;
}

void add_verdict(marked_text& line, const leak_report& of) {
  if (!of.is_long_enough()) {
    line.add("not known", emphasis::caution).add(": ");
    line.add_count(of.steps, of.is_by_count ? "allocation is" : "step is", of.is_by_count ? "allocations are" : "steps are");
    line.add(" too few, " + std::to_string(growth_series::least_steps) + " are needed").end_line();
    return;
  }
  if (of.growing.empty()) {
    line.add("none", emphasis::strong);
    if (of.unclear.empty()) {
      line.add(": nothing grows from ").add(step_word(of)).add(" to ").add(step_word(of)).end_line();
    } else {
      line.add(" for certain, but ").add_name(name_of(of.unclear.front())).add(" grew until the end");
      if (of.unclear.size() > 1)
        line.add(", and ").add_count(static_cast<std::int64_t>(of.unclear.size() - 1), "other", "others");
      line.add(": a longer run would tell").end_line();
    }
    return;
  }
  for (const leak_report::space_row& space : of.spaces) {
    const auto is_here = [&](const growing_owner& owner) { return owner.space == space.name; };
    const auto first = std::find_if(of.growing.begin(), of.growing.end(), is_here);
    if (first == of.growing.end()) continue;
    const auto count = std::count_if(of.growing.begin(), of.growing.end(), is_here);
    if (space.is_made_up_for) {
      line.add_name(name_of(*first)).add(" grows by ").add(growth_rate(first->trend.per_step), emphasis::alarm);
      line.add(" per ")
          .add(step_word(of))
          .add(" in ")
          .add_name(space.name)
          .add(", ")
          .add(since_text(of, first->trend.since_step));
      line.add(", which as a whole does not: as much or more of other memory is freed").end_line();
      continue;
    }
    line.add_name(space.name).add(" grows by ").add(growth_rate(space.per_step), emphasis::alarm);
    line.add(" per ").add(step_word(of)).add(", ");
    if (count == 1) {
      line.add("all of it");
    } else if (first->trend.per_step * 2 > space.per_step) {
      line.add("most of it");
    } else {
      line.add(growth_rate(first->trend.per_step)).add(" of it");
    }
    line.add(" from ").add_name(name_of(*first));
    if (first->operations > 1) line.add(" x" + std::to_string(first->operations), emphasis::faint);
    line.add(", ").add(since_text(of, first->trend.since_step)).end_line();
  }
}

/// What will be live, and when a space is full.
void add_forecast(marked_text& line, const leak_report& of, std::int64_t more_steps) {
  for (const leak_report::space_row& space : of.spaces) {
    if (space.per_step <= 0 || space.is_made_up_for) continue;
    const double later = static_cast<double>(space.last) + space.per_step * static_cast<double>(more_steps);
    line.add_count(more_steps).add(" more ").add(step_word(of)).add(more_steps == 1 ? "" : "s").add(": ");
    line.add(short_bytes(later)).add(" of ").add_name(space.name).add(" instead of ").add_bytes(space.last);
    if (space.capacity > space.last) {
      const double steps = static_cast<double>(space.capacity - space.last) / space.per_step;
      line.add("; its ").add_bytes(space.capacity).add(" are full in ");
      constexpr double most = 9e18;
      line.add(grouped(static_cast<std::int64_t>(std::min(steps, most)))).add(" ").add(step_word(of)).add("s", emphasis::none);
    }
    line.end_line();
  }
}

void add_missing_steps(marked_text& line, const leak_report& of) {
  if (of.missing_steps == 0) return;
  line.add("The trace lacks the ")
      .add_count(of.missing_steps)
      .add(" steps before these, and the blocks from them, which no operation below has: its size was limited.");
  line.end_line();
}

void add_leak_accuracy(marked_text& line, const leak_report& of) {
  if (!of.exact) line.add("not exact", emphasis::caution).add(": lost frees look like leaks").end_line();
  add_remarks(line, of.remarks);
}

void add_steps(marked_text& line, const leak_report& of) {
  line.add_count(of.steps);
  if (of.is_by_count) {
    line.add(of.steps == 1 ? " part" : " parts");
    line.add(
        " with as many allocations each, as no segment's name repeats: snapshot(\"STEP\") at the end of each step marks them");
  } else {
    line.add(of.steps == 1 ? " end" : " ends")
        .add(" of ")
        .add_name(of.segment)
        .add("; memory that is freed again does not count");
  }
  line.end_line();
  add_missing_steps(line, of);
}

/// "1.00 KiB, 1 (999)": its size, the step in which it was allocated, and how many steps ago.
void add_block(marked_text& cell, const leak_report& of, std::int64_t bytes, std::int64_t step) {
  cell.next_cell();
  if (step < 0) {
    cell.add("-");
  } else {
    cell.add_bytes(bytes).add(", ").add(step_text(step)).add(" (" + grouped(of.age_of(step)) + ")");
  }
}

/// Columns of a terminal from which on there is room for the ages of blocks beside names.
constexpr std::size_t columns_for_ages = 100;

summary_section table_of(const leak_report& of, const std::vector<growing_owner>& owners, growth_kind kind, bool shows_all,
                         std::size_t columns) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  const bool are_growing = kind == growth_kind::grows;
  const bool has_spaces = of.spaces.size() > 1;
  const bool has_ages = columns == 0 || columns >= columns_for_ages;
  const std::string step{step_word(of)};
  std::string& titles = section.table.titles;
  titles = are_growing ? "Grows" : kind == growth_kind::unclear ? "Grew until the end" : "Grew, and stopped";
  section.table.alignment = "l";
  if (has_spaces) titles += "\tspace";
  if (has_spaces) section.table.alignment += 'l';
  const auto is_later = [&](const growing_owner& owner) { return owner.trend.since_step != of.missing_steps; };
  const bool is_vague = is_about(of) && (!are_growing || std::any_of(owners.begin(), owners.end(), is_later));
  const std::string at = is_vague ? "about " + step : step;
  titles += are_growing ? "\tper " + step + "\tlast\tblocks\tsince " + at : "\tlast\tblocks\tfrom " + at + "\tto " + at;
  section.table.alignment += "rrrr";
  if (are_growing && has_ages) titles += "\toldest, " + step + " (age)\tnewest, " + step + " (age)";
  if (are_growing && has_ages) section.table.alignment += "rr";
  marked_text& rows = section.table.rows;
  const std::size_t shown = shows_all || owners.size() <= most_owners + 1 ? owners.size() : most_owners;
  for (std::size_t index = 0; index < shown; ++index) {
    const growing_owner& owner = owners[index];
    rows.add_name(name_of(owner));
    if (owner.operations > 1) rows.add(" x" + std::to_string(owner.operations), emphasis::faint);
    if (has_spaces) rows.next_cell().add_name(owner.space);
    if (are_growing) rows.next_cell().add("+" + growth_rate(owner.trend.per_step), emphasis::strong);
    rows.next_cell().add_bytes(owner.trend.last).next_cell().add_count(owner.blocks);
    rows.next_cell().add(step_text(owner.trend.since_step));
    if (are_growing && has_ages) {
      add_block(rows, of, owner.oldest_bytes, owner.oldest_step);
      add_block(rows, of, owner.newest_bytes, owner.newest_step);
    } else if (!are_growing) {
      rows.next_cell().add(step_text(owner.trend.until_step));
    }
    rows.end_line();
  }
  for (std::size_t index = 0; index < shown && are_growing; ++index) {
    const growing_owner& owner = owners[index];
    if (owner.caller.empty()) continue;
    section.further_lines.add_name(name_of(owner)).add(": ");
    if (owner.caller_share < 0.995)
      section.further_lines.add(short_percent(static_cast<std::int64_t>(owner.caller_share * 1000), 1000)).add(" of it ");
    section.further_lines.add("asked for by ").add_name(owner.caller).end_line();
  }
  if (shown < owners.size()) {
    const auto others = static_cast<std::int64_t>(owners.size() - shown);
    section.further_lines.add_count(others, "other", "others").add(": --all lists them").end_line();
  }
  return section;
}

}  // namespace
}  // namespace detail

std::string to_text(const leak_report& of, std::int64_t more_steps, const text_options& options, bool shows_all) {
  using namespace detail;
  answer_text text{options, 4};
  text.add_lines("Leaks", [&](marked_text& lines) { add_verdict(lines, of); });
  text.add_lines("Steps", [&](marked_text& lines) { add_steps(lines, of); });
  text.add_lines("After", [&](marked_text& lines) { add_forecast(lines, of, more_steps); });
  text.add_lines("Accuracy", [&](marked_text& lines) { add_leak_accuracy(lines, of); });
  const auto add_table = [&](const std::vector<growing_owner>& owners, growth_kind kind) {
    if (!owners.empty()) text.add_table(table_of(of, owners, kind, shows_all, options.columns));
  };
  add_table(of.growing, growth_kind::grows);
  add_table(of.unclear, growth_kind::unclear);
  add_table(of.levelled, growth_kind::levels_off);
  return text.take();
}

std::string verdict_of(const leak_report& of) {
  return detail::plain_line([&](detail::marked_text& lines) { detail::add_verdict(lines, of); });
}

std::vector<std::string> caveats_of(const leak_report& of) {
  return detail::plain_lines([&](detail::marked_text& lines) {
    detail::add_missing_steps(lines, of);
    detail::add_leak_accuracy(lines, of);
  });
}

}  // namespace memprof::inline MEMPROF_ABI
