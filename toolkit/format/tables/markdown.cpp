#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/summary_lines.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/format/tables/markdown.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (std::string_view{"\\`*_<>[]|~#"}.find(character) != std::string_view::npos) result += '\\';
    result += character;
  }
  return result;
}

std::string markdown_code(std::string_view name, bool is_in_table) {
  if (name.empty()) return {};
  std::size_t longest = 0;
  std::size_t run = 0;
  std::string inner;
  for (const char character : name) {
    run = character == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (character == '|' && is_in_table) inner += '\\';
    inner += character;
  }
  const std::string fence(longest + 1, '`');
  const bool touches_fence = inner.front() == '`' || inner.back() == '`' || (inner.front() == ' ' && inner.back() == ' ');
  return touches_fence ? fence + " " + inner + " " + fence : fence + inner + fence;
}

namespace {

[[nodiscard]] std::string markdown_line(const page_line& line, bool is_in_table) {
  std::string text;
  for (const page_part& part : line.parts()) {
    const bool is_strong = part.how == emphasis::strong || part.how == emphasis::alarm || part.how == emphasis::caution;
    std::string_view words = part.text;
    if (part.is_name) {
      text += markdown_code(words, is_in_table);
      continue;
    }
    const bool ends_with_space = is_strong && words.ends_with(' ');  // inside the asterisks, it would disable them
    if (ends_with_space) words.remove_suffix(1);
    text += is_strong ? "**" + markdown_text(words) + "**" : markdown_text(words);
    if (ends_with_space) text += ' ';
  }
  return text;
}

void append_markdown_table(std::string& text, const page_table& table) {
  if (table.rows.empty()) return;
  text += '\n';
  for (const page_column& column : table.columns) text += "| " + markdown_text(column.title) + ' ';
  text += "|\n";
  for (const page_column& column : table.columns) text += column.is_right_aligned ? "|---:" : "|---";
  text += "|\n";
  for (const std::vector<page_line>& row : table.rows) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      text += "| " + (column < row.size() ? markdown_line(row[column], true) : std::string{}) + ' ';
    }
    text += "|\n";
  }
}

void append_markdown_section(std::string& text, const page_section& section) {
  if (section.lines.empty() && section.table.rows.empty()) return;
  text += "\n**" + section.heading + "**";
  for (std::size_t index = 0; index < section.lines.size(); ++index) {
    text += (index == 0 ? ": " : "; ") + markdown_line(section.lines[index], false);
  }
  text += '\n';
  append_markdown_table(text, section.table);
  for (const page_line& line : section.further_lines) text += '\n' + markdown_line(line, false) + '\n';
}

/// All numbers of a name in one row, since lines may be of any length here.
[[nodiscard]] page_table wide_segment_table(const std::vector<segments_of_name>& names) {
  page_table table;
  table.columns = {{"Segment", false}, {"Count", true}, {"Peak, first", true}, {"last", true},
                   {"min", true},      {"max", true},   {"mean", true},        {"Change, first", true},
                   {"last", true},     {"min", true},   {"max", true},         {"mean", true}};
  for (const segments_of_name& name : names) {
    std::vector<page_line>& row = table.rows.emplace_back();
    row = {name_of(name), grouped(name.count)};
    const value_summary& peak = name.segment_peak;
    for (const std::int64_t value : {peak.first, peak.last, peak.least, peak.greatest}) row.emplace_back(short_bytes(value));
    row.emplace_back(short_bytes(mean_of(peak, name.count)));
    const value_summary& change = name.segment_change;
    for (const std::int64_t value : {change.first, change.last, change.least, change.greatest}) {
      row.emplace_back(signed_short_bytes(value));
    }
    row.emplace_back(signed_short_bytes(mean_of(change, name.count)));
  }
  return table;
}

}  // namespace

}  // namespace detail

std::string to_markdown(const profile& source, const text_options& options) {
  using namespace detail;
  const std::vector<const space_profile*> spaces = ordered_spaces(source, options);
  const segment_steps steps = steps_of(source);
  summary_limits limits = summary_levels.front();
  if (options.owners > text_options{}.owners) limits.owners = limits.owners_at_end = options.owners;
  if (options.all_faults) limits.faults = all_faults;
  std::string text = "# Memory profile\n";
  if (spaces.empty()) {
    append_markdown_section(text, run_section(source, steps));
    append_markdown_section(text, process_section(source));
    append_markdown_section(text, check_section(source, limits.faults));
    text += "\nNo allocations recorded.\n";
    for (const std::string& cause : causes_of_silence(source)) text += cause + '\n';
    return text;
  }
  for (const page_section& section : summary_sections(source, spaces, steps, options, limits))
    append_markdown_section(text, section);
  const std::size_t tables = options.all_spaces ? spaces.size() : 1;
  for (std::size_t index = 0; index < tables && !source.segments.empty(); ++index) {
    const space_profile& space = *spaces[index];
    text += "\n**Segments** in " + markdown_code(on_one_line(space.name), false) + '\n';
    append_markdown_table(text, options.all_segments ? every_segment_section(source, space, steps).table
                                                     : wide_segment_table(segments_by_name(source, space)));
  }
  if (const page_section checkpoints = checkpoint_section(source, options.checkpoints, options.largest_blocks);
      !checkpoints.table.rows.empty()) {
    text += "\n**Checkpoints**\n";
    append_markdown_table(text, checkpoints.table);
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
