#include <memprof/config.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

std::string title_of(const compared_run& run) { return on_one_line(run.title); }

std::string_view heading_of(compared_moment moment) {
  switch (moment) {
    case compared_moment::end: return "At end";
    case compared_moment::segment: return "Segment";
    default: return "Peak";
  }
}

/// "new", or nothing where the sign of the change says all.
std::string_view word_for(owner_change what) {
  switch (what) {
    case owner_change::came: return "new";
    case owner_change::went: return "gone";
    case owner_change::moved_in: return "was not live";
    case owner_change::moved_out: return "no longer live";
    default: return {};
  }
}

/// "before 24.0 MiB (25,165,824 B) of cpu in FORWARD_PASS, step 3, operation forward/attention".
void add_run(marked_text& line, const compared_run& run) {
  line.add(title_of(run)).add(" ").add_total(run.bytes, emphasis::strong).add(" of ").add_name(run.space);
  if (!run.segment.empty()) line.add(" in ").add_name(run.segment);
  if (run.step >= 0) line.add(", step ").add_count(run.step + 1);
  if (!run.operation.empty()) line.add(", operation ").add_name(run.operation);
  line.end_line();
}

/// "+8.3 %", or nothing if it cannot be said.
std::string signed_share(std::int64_t change, std::int64_t whole) {
  if (whole == 0 || std::abs(change) / whole >= 100) return {};  // a percentage of next to nothing says nothing
  const std::string share = short_percent(change, whole);
  if (share.empty() || share.front() == '<' || share == "0.0 %" || share == "-0.0 %") return {};
  return (change > 0 ? "+" : "") + share;
}

/// The rows whose bytes or blocks differ, which come first.
std::size_t count_of_differing(const std::vector<comparison_row>& rows) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const comparison_row& row) { return row.change() != 0; }));
}

void add_reason(marked_text& line, const comparison& of) {
  constexpr std::size_t most = 4;
  const std::string before = title_of(of.before);
  const std::string after = title_of(of.after);
  const std::int64_t change = of.change();
  const std::size_t differing = count_of_differing(of.operations);
  if (change == 0) {
    line.add(after).add(" equals ").add(before);
    const auto has_blocks_that_differ = [](const std::vector<comparison_row>& rows) {
      return std::any_of(rows.begin(), rows.end(), [](const comparison_row& row) {
        return row.what != owner_change::equal || row.blocks_before != row.blocks_after;
      });
    };
    if (differing != 0) {
      line.add(", but not in who holds it: ");
    } else if (has_blocks_that_differ(of.operations) || has_blocks_that_differ(of.sizes)) {
      line.add(", but not in the number or size of its blocks");
    } else if (has_blocks_that_differ(of.categories)) {
      line.add(", but not in its categories");
    } else {
      line.add(": every operation holds the same bytes");
    }
  } else {
    line.add(after).add(" is ").add_total(std::abs(change), emphasis::strong);
    line.add(change > 0 ? " more than " : " less than ").add(before);
    if (const std::string share = signed_share(change, of.before.bytes); !share.empty()) line.add(" (" + share + ")");
    line.add(": ");
  }
  for (std::size_t index = 0; index < std::min(differing, most); ++index) {
    const comparison_row& row = of.operations[index];
    line.add(index == 0 ? "" : ", ").add_name(row.owner).add(" ").add_change(row.change());
  }
  if (differing > most) {
    std::int64_t rest = 0;
    for (std::size_t index = most; index < differing; ++index) rest += of.operations[index].change();
    line.add(", ").add_count(static_cast<std::int64_t>(differing - most), "other operation", "other operations");
    line.add(" ").add_change(rest);
  }
  line.end_line();
}

/// "the second highest", "number 4".
std::string rank_text(std::size_t rank) {
  if (rank == 0) return "the highest";
  return rank == 1 ? "the second highest" : rank == 2 ? "the third highest" : "number " + std::to_string(rank + 1);
}

/// Where the phase of one run's peak was in the other: "before, B reached 800 B, the second highest of 3 phases".
void add_rank(marked_text& line, const compared_run& in, const std::string& segment) {
  const auto is_it = [&](const phase_peak& phase) {
    return phase.segment == segment || phase.segment == without_numbers(segment);
  };
  const auto found = std::find_if(in.phases.begin(), in.phases.end(), is_it);
  line.add(title_of(in)).add(", ");
  if (found == in.phases.end()) {
    line.add("there is no ").add_name(segment);
    return;
  }
  line.add_name(segment).add(" reached ").add_bytes(found->bytes).add(", ");
  line.add(rank_text(static_cast<std::size_t>(found - in.phases.begin()))).add(" of ");
  line.add_count(static_cast<std::int64_t>(in.phases.size()), "phase", "phases");
}

/// Whether it is the same peak, or another that was lower before.
void add_moment(marked_text& line, const comparison& of) {
  if (of.before.space != of.after.space) {
    line.add("two memory spaces", emphasis::caution)
        .add(": ")
        .add_name(of.before.space)
        .add(" before, ")
        .add_name(of.after.space);
    line.add(" after").end_line();
    return;
  }
  if (of.before.moment != compared_moment::peak || of.before.segment.empty() || of.after.segment.empty()) return;
  if (of.is_same_moment()) {
    line.add("the same peak: in ").add_name(of.after.segment);
    if (!of.after.operation.empty()) line.add(", operation ").add_name(of.after.operation);
  } else if (of.before.segment == of.after.segment) {
    line.add("in ").add_name(of.after.segment).add(" as before, but reached by another operation");
  } else {
    line.add("another peak: ", emphasis::caution);
    add_rank(line, of.before, of.after.segment);
    line.add("; ");
    add_rank(line, of.after, of.before.segment);
  }
  line.end_line();
}

void add_range(marked_text& line, const compared_run& run, const number_range& range) {
  line.add(title_of(run)).add(" ");
  if (range.runs == 1) {
    line.add_bytes(range.median).add(" in one run");
    return;
  }
  line.add_count(range.runs).add(" runs: least ").add_bytes(range.least).add(", median ").add_bytes(range.median);
  line.add(", greatest ").add_bytes(range.greatest);
}

void add_noise(marked_text& line, const comparison& of) {
  if (of.runs_before.runs == 1 && of.runs_after.runs == 1) return;
  add_range(line, of.before, of.runs_before);
  line.end_line();
  add_range(line, of.after, of.runs_after);
  line.end_line();
  if (of.runs_before.runs == 1 || of.runs_after.runs == 1) {
    line.add("one run on a side does not show how much its peak varies");
  } else if (of.are_ranges_apart()) {
    line.add("more than noise: the ranges do not overlap");
  } else {
    line.add("within the noise: the ranges overlap", emphasis::caution);
  }
  line.end_line();
}

/// The other memory spaces whose peaks differ.
void add_other_spaces(marked_text& line, const comparison& of) {
  constexpr std::size_t most = 3;
  for (std::size_t index = 0; index < std::min(of.other_spaces.size(), most); ++index) {
    const comparison_row& row = of.other_spaces[index];
    line.add_name(row.owner).add(" differs too", emphasis::caution).add(": peak ").add_bytes(row.before).add(" before, ");
    line.add_bytes(row.after).add(" after (--space ").add_name(row.owner).add(")").end_line();
  }
  if (of.other_spaces.size() > most)
    line.add_count(static_cast<std::int64_t>(of.other_spaces.size() - most), "other space differs", "other spaces differ")
        .end_line();
}

/// Reserved bytes, divided into the peak of the blocks and what is reserved above it.
void add_reserved(marked_text& line, const comparison& of) {
  if (!of.has_reserved()) return;
  line.add_bytes(of.before.reserved).add(" before, ").add_bytes(of.after.reserved).add(" after: ");
  line.add_change(of.reserved_change()).add(", of which peak ").add_change(of.reserved_change_of_peak());
  line.add(", reserved above the peak ").add_change(of.reserved_change_above_peak()).end_line();
}

/// By how much the processes differ, if both were looked at and the difference is notable.
void add_process(marked_text& line, const comparison& of) {
  if (!of.before.process || !of.after.process) return;
  const std::int64_t before = of.before.process->reading.resident_bytes;
  const std::int64_t after = of.after.process->reading.resident_bytes;
  if (before < 0 || after < 0 || !is_notable(std::abs(after - before), std::max(before, after))) return;
  const std::int64_t recorded = of.after.process->recorded - of.before.process->recorded;
  line.add_bytes(before).add(" resident before, ").add_bytes(after).add(" after: ").add_change(after - before);
  line.add(", of which recorded ").add_change(recorded).add(", not recorded ").add_change(after - before - recorded).end_line();
}

void add_accuracy(marked_text& line, const comparison& of) {
  if (of.before.mode != of.after.mode) {
    line.add("the runs' modes differ", emphasis::caution);
    line.add(": before ").add(to_string(of.before.mode)).add(", after ").add(to_string(of.after.mode)).end_line();
  }
  if (of.are_devices_different()) {
    line.add("the runs' devices differ", emphasis::caution);
    line.add(": before ").add_name(of.before.device).add(", after ").add_name(of.after.device).end_line();
  }
  add_remarks(line, titled_remarks({of.before.title, of.after.title}, {of.before.remarks, of.after.remarks}));
}

void add_cells(marked_text& rows, std::int64_t before, std::int64_t after, owner_change what) {
  rows.next_cell().add_bytes(before).next_cell().add_bytes(after).next_cell();
  rows.add(signed_short_bytes(after - before), before == after ? emphasis::faint : emphasis::strong);
  rows.next_cell().add(word_for(what)).end_line();
}

/// "512 B" for blocks of 512 to 1,023 bytes.
std::string size_class_text(const std::string& least) {
  const std::int64_t size = std::stoll(least);
  return size == 0 ? "0 B" : "from " + short_bytes(size);
}

constexpr std::string_view without_a_caller = "blocks without a stack";

/// What the rows of a table are.
enum class row_kind : std::uint8_t { operations, categories, callers, sizes };

void add_owner(marked_text& text, const comparison_row& row, row_kind kind) {
  if (kind == row_kind::sizes) {
    text.add(size_class_text(row.owner));
    return;
  }
  if (row.owner.empty()) {
    text.add_name(kind == row_kind::callers ? without_a_caller : std::string_view{outside_every_operation});
  } else {
    text.add_name(row.owner);
  }
  if (row.operations > 1 && kind != row_kind::callers) text.add(" x" + std::to_string(row.operations), emphasis::faint);
}

summary_section table_of(const comparison& of, const std::vector<comparison_row>& rows, std::string_view first, std::size_t most,
                         bool shows_all, row_kind kind) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.titles = std::string{first} + "\t" + title_of(of.before) + "\t" + title_of(of.after) + "\tchange\t";
  section.table.alignment = "lrrrl";
  marked_text& text = section.table.rows;
  const std::size_t differing = count_of_differing(rows);
  const std::size_t shown = shows_all ? rows.size() : differing > most + 1 ? most : differing;  // one more takes the others' line
  comparison_row others;
  comparison_row equal;
  std::int64_t other_count = 0;
  std::int64_t equal_count = 0;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const comparison_row& row = rows[index];
    if (index < shown) {
      add_owner(text, row, kind);
      add_cells(text, row.before, row.after, row.what);
      continue;
    }
    comparison_row& sum = index < differing ? others : equal;
    ++(index < differing ? other_count : equal_count);
    sum.before += row.before;
    sum.after += row.after;
  }
  if (other_count != 0) {
    text.add(grouped(other_count, "other", "others"));
    add_cells(text, others.before, others.after, owner_change::equal);
  }
  if (equal_count != 0) {
    text.add(grouped(equal_count, "without a change", "without a change"));
    add_cells(text, equal.before, equal.after, owner_change::equal);
  }
  text.add("sum", emphasis::strong);
  add_cells(text, of.before.bytes, of.after.bytes, owner_change::equal);
  return section;
}

/// A name in a cell of a Markdown table: as code, on one line, without what ends the cell or the code.
std::string markdown_name(std::string_view name) {
  std::string text = "`";
  for (const char letter : on_one_line(name)) {
    if (letter == '|') text += '\\';
    text += letter == '`' ? '\'' : letter;
  }
  return text + "`";
}

}  // namespace
}  // namespace detail

std::string to_text(const comparison& of, const text_options& options, bool shows_all) {
  using namespace detail;
  constexpr std::size_t most_operations = 20;
  constexpr std::size_t most_sizes = 8;
  answer_text text{options};
  text.add_lines(heading_of(of.after.moment), [&](marked_text& lines) {
    add_run(lines, of.before);
    add_run(lines, of.after);
  });
  text.add_lines("Change", [&](marked_text& lines) { add_reason(lines, of); });
  text.add_lines("Moment", [&](marked_text& lines) { add_moment(lines, of); });
  text.add_lines("Spaces", [&](marked_text& lines) { add_other_spaces(lines, of); });
  text.add_lines("Noise", [&](marked_text& lines) { add_noise(lines, of); });
  text.add_lines("Reserved", [&](marked_text& lines) { add_reserved(lines, of); });
  text.add_lines("Process", [&](marked_text& lines) { add_process(lines, of); });
  text.add_lines("Accuracy", [&](marked_text& lines) { add_accuracy(lines, of); });
  if (of.is_equal() && !shows_all) return text.take();
  const auto add_table = [&](const std::vector<comparison_row>& rows, std::string_view first, std::size_t most, row_kind kind) {
    if (rows.empty() || (count_of_differing(rows) == 0 && !shows_all)) return;
    text.add_table(table_of(of, rows, first, most, shows_all, kind));
  };
  add_table(of.operations, "Operation", most_operations, row_kind::operations);
  add_table(of.callers, "Asked for by", most_operations, row_kind::callers);
  add_table(of.categories, "Category", most_operations, row_kind::categories);
  add_table(of.sizes, "Size of block", most_sizes, row_kind::sizes);
  return text.take();
}

std::string to_markdown(const comparison& of, std::size_t most) {
  using namespace detail;
  const std::int64_t change = of.change();
  std::string what = of.after.moment == compared_moment::end       ? "Live at the end"
                     : of.after.moment == compared_moment::segment ? "Peak of " + markdown_name(of.after.segment)
                                                                   : "Peak";
  std::string text = "**" + what + " of " + markdown_name(of.after.space) + ": " + short_and_exact_bytes(of.after.bytes);
  if (change == 0) {
    text += of.is_equal() ? ", as before**\n" : ", as before, but not in who holds it**\n";
    if (of.is_equal()) return text;
  } else {
    const std::string share = signed_share(change, of.before.bytes);
    text += ", " + short_bytes(std::abs(change)) + (change > 0 ? " more" : " less") + " than before" +
            (share.empty() ? "" : " (" + share + ")") + "**\n";
  }
  const std::size_t differing = count_of_differing(of.operations);
  const std::size_t shown = differing > most + 1 ? most : differing;
  text += "\n| operation | before | after | change | |\n|---|---:|---:|---:|---|\n";
  const auto add_row = [&](const std::string& owner, std::int64_t before, std::int64_t after, owner_change row_change) {
    text += "| " + owner + " | " + short_bytes(before) + " | " + short_bytes(after) + " | " + signed_short_bytes(after - before) +
            " | " + std::string{word_for(row_change)} + " |\n";
  };
  comparison_row others;
  comparison_row equal;
  for (std::size_t index = 0; index < of.operations.size(); ++index) {
    const comparison_row& row = of.operations[index];
    if (index < shown) {
      const std::string count = row.operations > 1 ? " x" + std::to_string(row.operations) : std::string{};
      add_row(markdown_name(row.owner) + count, row.before, row.after, row.what);
      continue;
    }
    comparison_row& sum = index < differing ? others : equal;
    sum.before += row.before;
    sum.after += row.after;
  }
  if (shown < differing)
    add_row(grouped(static_cast<std::int64_t>(differing - shown), "other", "others"), others.before, others.after, {});
  if (differing < of.operations.size()) add_row("without a change", equal.before, equal.after, {});
  add_row("sum", of.before.bytes, of.after.bytes, {});
  return text;
}

std::string verdict_of(const comparison& of) {
  return detail::plain_line([&](detail::marked_text& lines) { detail::add_reason(lines, of); });
}

std::vector<std::string> caveats_of(const comparison& of) {
  return detail::plain_lines([&](detail::marked_text& lines) {
    if (!of.is_same_moment()) detail::add_moment(lines, of);
    detail::add_noise(lines, of);
    detail::add_accuracy(lines, of);
  });
}

}  // namespace memprof::inline MEMPROF_ABI
