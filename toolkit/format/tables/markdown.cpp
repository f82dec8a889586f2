#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/summary.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/format/tables/markdown.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

[[nodiscard]] std::string markdown_line(std::string_view line, bool is_in_table) {
  std::string text;
  for (text_part part; take_part(line, part);) {
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

void append_markdown_table(std::string& text, const summary_table& table) {
  if (table.rows.empty()) return;
  text += '\n';
  std::string_view titles = table.titles;
  for (std::size_t column = 0; column < table.alignment.size(); ++column)
    text += "| " + markdown_text(take_until('\t', titles)) + ' ';
  text += "|\n";
  for (const char alignment : table.alignment) text += alignment == 'r' ? "|---:" : "|---";
  text += "|\n";
  for (std::string_view rows = table.rows.text(); !rows.empty();) {
    std::string_view row = take_until('\n', rows);
    for (std::size_t column = 0; column < table.alignment.size(); ++column)
      text += "| " + markdown_line(take_until('\t', row), true) + ' ';
    text += "|\n";
  }
}

void append_markdown_section(std::string& text, const summary_section& section) {
  if (section.lines.empty() && section.table.rows.empty()) return;
  text.append("\n**").append(section.heading).append("**");
  const char* separator = ": ";
  for (std::string_view lines = section.lines.text(); !lines.empty(); separator = "; ")
    text += separator + markdown_line(take_until('\n', lines), false);
  text += '\n';
  append_markdown_table(text, section.table);
  for (std::string_view lines = section.further_lines.text(); !lines.empty();)
    text += '\n' + markdown_line(take_until('\n', lines), false) + '\n';
}

/// All numbers of a name in one row, since lines may be of any length here.
[[nodiscard]] summary_table wide_segment_table(const vector<segments_of_name>& names) {
  summary_table table;
  table.set_columns("Segment\tCount\tPeak, first\tlast\tmin\tmax\tmean\tChange, first\tlast\tmin\tmax\tmean", "lrrrrrrrrrrr");
  for (const segments_of_name& name : names) {
    add_name_cells(table.rows, name);
    add_value_cells(table.rows, name.segment_peak, name.count, false);
    add_value_cells(table.rows, name.segment_change, name.count, true);
    table.rows.end_line();
  }
  return table;
}

}  // namespace

}  // namespace detail

std::string to_markdown(const profile& source, const text_options& options) {
  using namespace detail;
  const vector<std::size_t> order = space_order(source, options);
  const segment_steps steps = steps_of(source);
  std::string text = "# Memory profile\n";
  for_each_section({source, steps, order, options, limits_for(options, 0)},
                   [&](const summary_section& section) { append_markdown_section(text, section); });
  if (order.empty()) return text.append("\nNo allocations recorded.\n").append(causes_of_silence(source));
  const std::size_t tables = options.all_spaces ? order.size() : 1;
  for (std::size_t index = 0; index < tables && !source.segments.empty(); ++index) {
    const space_profile& space = source.spaces[order[index]];
    text += "\n**Segments** in " + markdown_code(on_one_line(space.name), false) + '\n';
    append_markdown_table(text, options.all_segments ? every_segment_section(source, space, steps).table
                                                     : wide_segment_table(segments_by_name(source, space)));
  }
  if (const summary_section checkpoints = checkpoint_section(source, options); !checkpoints.table.rows.empty()) {
    text += "\n**Checkpoints**\n";
    append_markdown_table(text, checkpoints.table);
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
