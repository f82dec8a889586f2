#include <memprof/config.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>
#include <memprof/toolkit/analysis/rank_merge_text.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/format/tables/markdown.hpp>

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

std::string rank_name(std::int64_t rank) { return rank < 0 ? "one without a rank" : "rank " + std::to_string(rank); }

/// "rank 3 (host b)"; without the host if there is only one.
std::string name_and_host(const ranked_run& run, const merged_ranks& of) {
  const bool has_host = of.has_several_hosts && !run.host.empty();
  return on_one_line(rank_title(run)) + (has_host ? " (host " + on_one_line(run.host) + ")" : "");
}

/// "4.00 GiB above the median of 20.0 GiB (+20.0 %)".
std::string distance_from_median(const rank_finding& finding, std::int64_t median) {
  const std::int64_t change = finding.change;
  std::string text = short_bytes(std::abs(change)) + (change < 0 ? " below" : " above") + " the median of " + short_bytes(median);
  if (median != 0 && std::abs(change) / median < 100)
    text += " (" + (change > 0 ? std::string{"+"} : "") + short_percent(change, median) + ")";
  return text;
}

/// The rows that changed as the whole did, of which the first are named.
std::vector<const comparison_row*> owners_to_name(const rank_finding& finding) {
  constexpr std::size_t most = 3;
  std::vector<const comparison_row*> reasons;
  if (!finding.difference) return reasons;
  for (const comparison_row& row : finding.difference->operations) {
    if (reasons.size() < most && row.change() != 0 && (row.change() < 0) == (finding.change < 0)) reasons.push_back(&row);
  }
  return reasons;
}

std::string_view name_of_owner(const comparison_row& row) {
  return row.owner.empty() ? outside_every_operation : std::string_view{row.owner};
}

/// "since step 12 (BACKWARD_PASS)", or where the peak is, if it is not known since when; empty: neither is.
std::string text_of_departure(const rank_finding& finding) {
  const bool has_steps = finding.run.steps > 1;
  if (finding.since_step < 0) {
    return finding.run.segment.empty()
               ? std::string{}
               : "in " + on_one_line(finding.run.segment) +
                     (has_steps && finding.run.step >= 0 ? ", step " + grouped(finding.run.step + 1) : "");
  }
  const std::string segment = on_one_line(finding.since_segment);
  if (!has_steps) return "since " + segment;
  std::string text = "since step " + grouped(finding.since_step + 1) + " (" + segment + ")";
  if (finding.last_alike_step >= 0 && finding.last_alike_step + 1 < finding.since_step)
    text += " at the latest, but not in step " + grouped(finding.last_alike_step + 1);
  return text;
}

void add_owners_and_step(marked_text& line, const rank_finding& finding) {
  const std::vector<const comparison_row*> reasons = owners_to_name(finding);
  for (const comparison_row* const row : reasons) {
    line.add(row == reasons.front() ? ": " : ", ").add_name(name_of_owner(*row));
    if (row->operations > 1) line.add(" x" + std::to_string(row->operations), emphasis::faint);
    line.add(" ").add_change(row->change());
  }
  if (reasons.empty() && !finding.unexplained.empty()) line.add(", whose memory is unknown");
  if (const std::string since = text_of_departure(finding); !since.empty()) line.add(", ").add(since);
  line.end_line();
}

void add_rank_verdict(marked_text& line, const merged_ranks& of) {
  constexpr std::size_t most = 4;
  if (of.ranks == 1) {
    line.add("one recording", emphasis::caution).add(": a comparison needs those of other ranks").end_line();
    return;
  }
  if (of.standing_out == 0) {
    line.add("no rank stands out", emphasis::strong);
    if (of.least == of.greatest) {
      line.add(": the peak of each is ").add_total(of.greatest).end_line();
    } else if (of.findings.empty()) {
      line.add(": peaks are from ").add_bytes(of.least).add(" to ").add_bytes(of.greatest).end_line();
    } else {
      const rank_finding& greatest = of.findings.front();
      line.add("; the greatest, ")
          .add(name_and_host(greatest.run, of))
          .add(", peaks ")
          .add(distance_from_median(greatest, of.median));
      add_owners_and_step(line, greatest);
    }
    return;
  }
  const std::size_t shown = std::min(of.findings.size(), most);
  for (std::size_t index = 0; index < shown; ++index) {
    const rank_finding& finding = of.findings[index];
    line.add(name_and_host(finding.run, of), emphasis::alarm)
        .add(" peaks ")
        .add(distance_from_median(finding, of.median), emphasis::strong);
    add_owners_and_step(line, finding);
  }
  const std::int64_t others = of.standing_out - static_cast<std::int64_t>(shown);
  if (others > 0)
    line.add_count(others, "other rank stands out", "other ranks stand out").add(" of ").add_count(of.ranks).end_line();
}

void add_rank_peaks(marked_text& line, const merged_ranks& of) {
  line.add_count(of.ranks, "rank", "ranks");
  if (of.world_size >= 0) line.add(" of ").add_count(of.world_size);
  line.add(", peaks of ").add_name(of.space).add(": least ").add_bytes(of.least).add(", mean ").add_bytes(of.mean());
  line.add(", median ").add_bytes(of.median).add(", greatest ").add_bytes(of.greatest).add("; sum ").add_total(of.sum);
  line.add("; imbalance ").add(decimal(100 * of.imbalance(), 1) + " %").end_line();
  if (of.rounding > 1) line.add("The median is that of peaks rounded to ").add_bytes(of.rounding).end_line();
}

/// "1, 4-6 and 12 others".
std::string ranks_text(const std::vector<std::int64_t>& ranks, std::int64_t count) {
  constexpr std::size_t most_parts = 8;
  std::string text;
  std::size_t parts = 0;
  std::size_t index = 0;
  while (index < ranks.size() && parts < most_parts) {
    std::size_t last = index;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[index]);
    if (last > index) text += "-" + std::to_string(ranks[last]);
    index = last + 1;
    ++parts;
  }
  const std::int64_t others = count - static_cast<std::int64_t>(index);
  if (others > 0) text += " and " + grouped(others, "other", "others");
  return text;
}

void add_missing_ranks(marked_text& line, const merged_ranks& of) {
  if (of.missing_count == 0) return;
  line.add(of.missing_count == 1 ? "rank " : "ranks ", emphasis::alarm)
      .add(ranks_text(of.missing, of.missing_count), emphasis::alarm);
  line.add(" of ").add_count(of.world_size).add(" left no recording").end_line();
}

void add_unfinished_ranks(marked_text& line, const merged_ranks& of) {
  constexpr std::size_t most = 4;
  const std::size_t shown = std::min(of.unfinished.size(), most);
  for (std::size_t index = 0; index < shown; ++index) {
    const unfinished_rank& each = of.unfinished[index];
    ranked_run named;
    named.rank = each.rank;
    named.file = each.file;
    line.add(on_one_line(rank_title(named)), emphasis::caution).add(": ").add(on_one_line(each.reason)).end_line();
  }
  const std::int64_t others = of.unfinished_count - static_cast<std::int64_t>(shown);
  if (others > 0) line.add_count(others, "other", "others").end_line();
}

/// The number of letters that all values have in common at the beginning, or with `from_end` at the end, up to whole words.
std::size_t common_words(const rank_difference& of, bool from_end) {
  const std::string& first = of.values.front().value;
  std::size_t common = first.size();
  for (const rank_difference::alternative& each : of.values) {
    const std::string& value = each.value;
    std::size_t size = 0;
    const auto letter = [&](const std::string& text) { return from_end ? text[text.size() - 1 - size] : text[size]; };
    while (size < common && size < value.size() && letter(first) == letter(value)) ++size;
    common = size;
  }
  const auto is_word_end = [&](const rank_difference::alternative& each) {
    const std::string& value = each.value;
    return common == value.size() || (from_end ? value[value.size() - 1 - common] : value[common]) == ' ';
  };
  while (common > 0 && !std::all_of(of.values.begin(), of.values.end(), is_word_end)) --common;
  return common;
}

/// The values without the words that all have in common: command lines are long.
std::vector<std::string> distinct_words(const rank_difference& of) {
  const std::size_t before = common_words(of, false);
  const std::size_t after = common_words(of, true);
  std::vector<std::string> words;
  for (const rank_difference::alternative& each : of.values) {
    const std::string& value = each.value;
    std::string rest = before + after < value.size() ? value.substr(before, value.size() - before - after) : std::string{};
    rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
    rest.erase(rest.find_last_not_of(' ') + 1);
    words.push_back(rest.empty() ? "nothing more" : rest);
  }
  return words;
}

void add_rank_differences(marked_text& line, const merged_ranks& of) {
  for (const rank_difference& each : of.differences) {
    line.add(each.what, emphasis::caution).add(": ");
    const std::vector<std::string> words = distinct_words(each);
    for (std::size_t index = 0; index < words.size(); ++index) {
      const rank_difference::alternative& value = each.values[index];
      if (index != 0) line.add(", ");
      line.add_command(words[index]).add(" on ");
      if (value.ranks == 1) {
        line.add(rank_name(value.least_rank));
      } else {
        line.add_count(value.ranks).add(" ranks");
      }
    }
    if (each.other_ranks > 0) line.add(", others on ").add_count(each.other_ranks, "rank", "ranks");
    line.end_line();
  }
}

void add_inexact_ranks(marked_text& line, const merged_ranks& of) {
  if (of.inexact_count == 0) return;
  if (of.inexact.empty()) {
    line.add_count(of.inexact_count, "recording", "recordings");
  } else {
    line.add(of.inexact_count == 1 ? "rank " : "ranks ").add(ranks_text(of.inexact, of.inexact_count));
  }
  line.add(of.inexact_count == 1 ? " is" : " are").add(" not exact", emphasis::caution).end_line();
}

/// "rank 3: ...", "all 4 ranks: ...", "12 ranks, of which rank 3: ...".
void add_remarks_of_ranks(marked_text& line, const merged_ranks& of) {
  for (const rank_remark& remark : of.remarks) {
    if (remark.ranks == 1) {
      line.add(rank_name(remark.first_rank));
    } else {
      line.add(remark.ranks == of.ranks ? "all " : "").add_count(remark.ranks, "rank", "ranks");
      if (remark.has_other_numbers) line.add(", of which ").add(rank_name(remark.first_rank));
    }
    line.add(": ").add(on_one_line(remark.text)).end_line();
  }
}

void add_rank_accuracy(marked_text& line, const merged_ranks& of) {
  add_inexact_ranks(line, of);
  add_remarks_of_ranks(line, of);
}

bool is_beyond_threshold(const ranked_run& run, const merged_ranks& of) { return std::abs(run.bytes - of.median) > of.threshold; }

/// "FORWARD_PASS, step 3".
void add_place_of_peak(marked_text& cell, const ranked_run& run) {
  cell.add_name(run.segment.empty() ? std::string_view{"-"} : std::string_view{run.segment});
  if (run.step >= 0 && run.steps > 1) cell.add(", step ").add_count(run.step + 1);
}

summary_section rank_table(const merged_ranks& of, bool shows_all) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  const auto has = [&](auto&& member) { return std::any_of(of.rows.begin(), of.rows.end(), member); };
  const bool has_device = has([](const ranked_run& run) { return !run.device.empty(); });
  section.table.titles = std::string{"Rank"} + (of.has_several_hosts ? "\thost" : "") + (has_device ? "\tdevice" : "") +
                         "\tpeak\tfrom median\tat\tin";
  section.table.alignment = std::string{"l"} + (of.has_several_hosts ? "l" : "") + (has_device ? "l" : "") + "rrrl";
  marked_text& rows = section.table.rows;
  const std::vector<const ranked_run*> shown = of.shown_rows(shows_all);
  for (const ranked_run* const run : shown) {
    const bool stands_out = is_beyond_threshold(*run, of) && of.ranks > 1;
    const emphasis how = stands_out ? emphasis::alarm : emphasis::none;
    if (run->rank >= 0) {
      rows.add(std::to_string(run->rank), how);
    } else {
      rows.add_name(rank_title(*run), how);
    }
    if (of.has_several_hosts) rows.next_cell().add_name(run->host.empty() ? std::string_view{"-"} : std::string_view{run->host});
    if (has_device) rows.next_cell().add_name(run->device.empty() ? std::string_view{"-"} : std::string_view{run->device});
    rows.next_cell().add_bytes(run->bytes, how).next_cell().add_change(run->bytes - of.median);
    rows.next_cell().add_time(run->time_ns).next_cell();
    add_place_of_peak(rows, *run);
    rows.end_line();
  }
  const auto others = of.ranks - static_cast<std::int64_t>(shown.size());
  if (others > 0) {
    section.further_lines.add_count(others, "other", "others").add(" between them");
    if (shown.size() < of.rows.size()) section.further_lines.add(": --all lists up to " + std::to_string(rank_merge::most_rows));
    section.further_lines.end_line();
  }
  return section;
}

summary_section segment_table(const merged_ranks& of) {
  constexpr std::size_t most = 12;
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.titles = "Peak in segments\tranks\tleast\tmean\tgreatest\ton rank";
  section.table.alignment = "lrrrrr";
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < std::min(most, of.segments.size()); ++index) {
    const rank_segment& each = of.segments[index];
    rows.add_name(each.name).next_cell().add_count(each.ranks).next_cell().add_bytes(each.least);
    rows.next_cell().add_bytes(each.sum / std::max<std::int64_t>(1, each.ranks)).next_cell();
    rows.add(short_bytes(each.greatest), each.greatest > each.least ? emphasis::strong : emphasis::none).next_cell();
    rows.add(each.greatest == each.least ? "all" : each.greatest_rank < 0 ? "-" : std::to_string(each.greatest_rank)).end_line();
  }
  if (of.segments.size() > most) {
    section.further_lines.add_count(static_cast<std::int64_t>(of.segments.size() - most), "other name", "other names");
    section.further_lines.end_line();
  }
  return section;
}

}  // namespace
}  // namespace detail

std::string to_text(const merged_ranks& of, const text_options& options, bool shows_all) {
  using namespace detail;
  answer_text text{options};
  const auto add_lines = [&](std::string_view heading, auto&& write) {
    text.add_lines(heading, [&](marked_text& lines) { write(lines, of); });
  };
  add_lines("Ranks", add_rank_verdict);
  add_lines("Missing", add_missing_ranks);
  add_lines("Partial", add_unfinished_ranks);
  add_lines("Peak", add_rank_peaks);
  add_lines("Differs", add_rank_differences);
  add_lines("Accuracy", add_rank_accuracy);
  text.add_table(rank_table(of, shows_all));
  if (of.segments.size() > 1) text.add_table(segment_table(of));
  return text.take();
}

std::string to_markdown(const merged_ranks& of) {
  using namespace detail;
  std::string text = "**";
  if (of.standing_out == 0) {
    text += of.ranks == 1 ? "One recording" : "No rank stands out";
  } else {
    const rank_finding& first = of.findings.front();
    text += markdown_text(name_and_host(first.run, of)) + " peaks " + distance_from_median(first, of.median);
    for (const comparison_row* const row : owners_to_name(first)) {
      text += (row == owners_to_name(first).front() ? ": " : ", ") + markdown_code(name_of_owner(*row), false) + " " +
              signed_short_bytes(row->change());
    }
    if (const std::string since = text_of_departure(first); !since.empty()) text += ", " + markdown_text(since);
    if (of.standing_out > 1) text += "; " + grouped(of.standing_out - 1, "other rank stands out", "other ranks stand out");
  }
  text += "**\n\n";
  if (of.missing_count != 0) text += "Missing: " + ranks_text(of.missing, of.missing_count) + "\n\n";
  text += "| rank | host | peak | from median | in |\n|---|---|---:|---:|---|\n";
  for (const ranked_run* const run : of.shown_rows(false)) {
    text += "| " + (run->rank >= 0 ? std::to_string(run->rank) : markdown_code(rank_title(*run), true)) + " | " +
            (run->host.empty() ? "" : markdown_code(run->host, true)) + " | " + short_bytes(run->bytes) + " | " +
            signed_short_bytes(run->bytes - of.median) + " | " + (run->segment.empty() ? "" : markdown_code(run->segment, true)) +
            (run->step >= 0 && run->steps > 1 ? ", step " + grouped(run->step + 1) : "") + " |\n";
  }
  return text + "\nSum " + short_bytes(of.sum) + ", mean " + short_bytes(of.mean()) + ", median " + short_bytes(of.median) +
         ", imbalance " + decimal(100 * of.imbalance(), 1) + " %\n";
}

std::string verdict_of(const merged_ranks& of) {
  return detail::plain_line([&](detail::marked_text& lines) { detail::add_rank_verdict(lines, of); });
}

std::vector<std::string> caveats_of(const merged_ranks& of) {
  return detail::plain_lines([&](detail::marked_text& lines) {
    detail::add_missing_ranks(lines, of);
    detail::add_unfinished_ranks(lines, of);
    detail::add_rank_accuracy(lines, of);
  });
}

}  // namespace memprof::inline MEMPROF_ABI
