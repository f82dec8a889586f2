#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_line.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

std::string check_owner_name(const check_owner& owner) {
  const std::string_view name = owner.operation.empty() ? outside_every_operation : std::string_view{owner.operation};
  return on_one_line(name) + (owner.operations > 1 ? " x" + std::to_string(owner.operations) : "");
}

/// For the verdict, a line that is not broken.
std::string name_in_verdict(std::string_view name) {
  constexpr std::size_t columns = 60;
  return shortened_name(name, columns);
}

/// With all digits where short forms would look alike.
std::string bytes_beside(std::int64_t bytes, std::int64_t other) {
  return bytes != other && short_bytes(bytes) == short_bytes(other) ? grouped(bytes) + " B" : short_bytes(bytes);
}

/// "0.010 B" of a growth, "1.30 GiB" of all else.
std::string held_text(const check_condition& of) {
  return of.reason == check_reason::growth && of.per_step > 0 ? growth_rate(of.per_step) : short_bytes(of.bytes);
}

/// "h.11/mlp +1.30 GiB and head +0.20 GiB since the baseline": as many owners as it takes to explain the excess, at most three.
std::string cause_of(const check_condition& of) {
  constexpr std::size_t most = 3;
  const bool are_changes = of.owners_are_changes || of.reason == check_reason::growth;
  std::string text;
  std::int64_t explained = 0;
  for (std::size_t index = 0; index < std::min(most, of.owners.size()) && explained < of.over(); ++index) {
    const check_owner& owner = of.owners[index];
    const std::int64_t part = are_changes ? owner.change : owner.bytes;
    explained = add_saturating(explained, part);
    const std::string change = of.reason == check_reason::growth ? "+" + growth_rate(owner.per_step) : signed_short_bytes(part);
    text += (index == 0 ? "" : ", ") + name_in_verdict(check_owner_name(owner)) +
            (are_changes ? " " + change : " holds " + short_bytes(part));
  }
  if (of.reason == check_reason::growth)
    return of.owners.empty() ? text : text + " per step, since step " + grouped(of.since_step + 1);
  return text + (of.owners_are_changes && !text.empty() ? " since the baseline" : "");
}

/// How near a condition that passed is to its limit; greater is nearer.
double share_used(const check_condition& of) {
  return of.at_most == 0 ? 0 : static_cast<double>(of.bytes) / static_cast<double>(of.at_most);
}

void add_condition(marked_text& rows, const check_condition& of, bool has_limits) {
  const bool is_other = has_limits && of.reason == check_reason::baseline;
  rows.add_name(condition_name(of) + (is_other ? " (baseline)" : ""))
      .next_cell()
      .add(held_text(of))
      .next_cell()
      .add_bytes(of.at_most)
      .next_cell();
  if (of.has_passed()) {
    rows.add("passed, ").add_bytes(-of.over()).add(" left");
  } else {
    const double over = of.per_step - static_cast<double>(of.at_most);
    rows.add("failed", emphasis::alarm).add(", ");
    rows.add(of.reason == check_reason::growth ? growth_rate(over) : short_bytes(of.over())).add(" over");
  }
  rows.end_line();
}

summary_section table_of_conditions(const check_report& of, bool shows_all) {
  constexpr std::size_t most = 20;
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns("Condition\tbytes\tat most\t", "lrrl");
  const bool has_limits = std::any_of(of.conditions.begin(), of.conditions.end(),
                                      [](const check_condition& each) { return each.reason == check_reason::limit; });
  std::size_t left_out = 0;
  for (const bool has_passed : {false, true}) {
    std::size_t shown = 0;
    for (const check_condition& each : of.conditions) {
      if (each.has_passed() != has_passed) continue;
      if (shown == most && !shows_all) {
        ++left_out;
        continue;
      }
      add_condition(section.table.rows, each, has_limits);
      ++shown;
    }
  }
  if (left_out != 0) section.further_lines.add_count(static_cast<std::int64_t>(left_out)).add(" more (--all)").end_line();
  return section;
}

summary_section table_of_owners(const check_condition& of) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  const bool is_growth = of.reason == check_reason::growth;
  section.table.titles = (is_growth || of.owners_are_changes ? "Who, in " : "Largest, in ") + condition_name(of) +
                         (is_growth               ? "\tper step"
                          : of.owners_are_changes ? "\tholds\tchange"
                                                  : "\tholds");
  section.table.alignment = of.owners_are_changes ? "lrr" : "lr";
  for (const check_owner& owner : of.owners) {
    marked_text& rows = section.table.rows;
    rows.add_name(check_owner_name(owner)).next_cell();
    rows.add(is_growth ? growth_rate(owner.per_step) : short_bytes(owner.bytes));
    if (of.owners_are_changes) rows.next_cell().add_change(owner.change);
    rows.end_line();
  }
  return section;
}

}  // namespace
}  // namespace detail

std::string condition_name(const check_condition& of) {
  const std::string space = detail::on_one_line(of.space);
  const std::string name = detail::on_one_line(of.name);
  if (of.reason == check_reason::growth) return "growth of " + space + " per step";
  switch (of.subject) {
    case check_subject::segment: return "peak of " + space + " in " + name;
    case check_subject::operation: return "peak of operation " + name + " in " + space;
    default: return "peak of " + space;
  }
}

std::string condition_text(const check_condition& of) {
  using namespace detail;
  std::string text;
  if (of.reason == check_reason::growth) {
    text = of.bytes == 0 ? on_one_line(of.space) + " does not grow"
                         : on_one_line(of.space) + " grows by " + held_text(of) + " per step, at most " +
                               short_bytes(of.at_most) + (of.has_passed() ? "" : " are allowed");
  } else {
    const bool is_compared = of.reason == check_reason::baseline;
    const std::int64_t whole = is_compared ? of.before : of.at_most;
    const std::int64_t change = of.bytes - whole;
    const bool is_near_limit = bytes_beside(of.bytes, of.at_most) != short_bytes(of.bytes);
    text = name_in_verdict(condition_name(of)) + " " +
           (is_near_limit ? bytes_beside(of.bytes, of.at_most) : bytes_beside(of.bytes, whole)) + " is ";
    const std::string against = (is_compared ? "the baseline's " : "") + bytes_beside(whole, of.bytes);
    if (change == 0) {
      text += (is_compared ? "that of the baseline" : "exactly " + against);
    } else {
      text += short_bytes(change < 0 ? -change : change) + (change < 0 ? " under " : " over ") + against;
    }
    if (is_compared && change > 0) text += " (at most " + bytes_beside(of.at_most, of.bytes) + ")";
  }
  const std::string cause = of.has_passed() ? std::string{} : cause_of(of);
  return cause.empty() ? text : text + ": " + cause;
}

std::string verdict_of(const check_report& of) {
  const std::size_t failures = of.failures();
  const check_condition* shown = nullptr;
  for (const check_condition& each : of.conditions) {
    if (each.has_passed() != (failures == 0)) continue;
    const bool is_nearer = failures == 0 && shown != nullptr && detail::share_used(each) > detail::share_used(*shown);
    if (shown == nullptr || is_nearer) shown = &each;
  }
  std::string text = failures == 0 ? "check: passed" : "check: failed";
  if (failures == 0 && of.conditions.size() > 1) text += ", " + std::to_string(of.conditions.size()) + " conditions";
  if (shown != nullptr) text += ": " + condition_text(*shown);
  if (failures != 0 && of.conditions.size() > 1) {
    text += " (" + std::to_string(failures) + " of " + std::to_string(of.conditions.size()) + " conditions failed)";
  }
  return of.exact ? text : text + " (the run is not exact)";
}

std::string to_text(const check_report& of, const text_options& options, bool shows_all) {
  using namespace detail;
  constexpr std::size_t most_tables = 3;
  answer_text text{options};
  text.add_table(table_of_conditions(of, shows_all));
  std::size_t tables = 0;
  for (const check_condition& each : of.conditions) {
    if (each.has_passed() || each.owners.empty() || (tables == most_tables && !shows_all)) continue;
    ++tables;
    text.add_table(table_of_owners(each));
  }
  if (!of.caveats.empty()) {
    summary_section section;
    section.heading = "Caveats";
    add_remarks(section.lines, of.caveats);
    text.add_table(section);
  }
  // The first line is for logs, and is not broken; memprof check breaks it for a terminal.
  const emphasis how = of.has_passed() ? emphasis::strong : emphasis::alarm;
  return with_emphasis(verdict_of(of), how, options.is_colored) + "\n" + text.take();
}

}  // namespace memprof::inline MEMPROF_ABI
