#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/report/text/display_width.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// Names shortened to fit their column but kept distinct: stacks often begin with the same frames. The last component of a path
/// stays as long as it can, for it is the innermost operation, or the frame that asked for memory; frames of libraries count
/// less.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] constexpr bool continues_utf8(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

inline constexpr std::string_view ellipsis = "\xe2\x80\xa6";
/// Less than this of one end of a name is not worth showing.
inline constexpr std::size_t least_end = 6;

/// Where the escape begins that has its middle at `index`; `index` if there is none.
[[nodiscard]] constexpr std::size_t begin_of_unit(std::string_view text, std::size_t index) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(index, 3); ++back) {
    if (text[index - back] == '\\' && unit_at(text, index - back).bytes > back) return index - back;
  }
  return index;
}

/// The longest end of a text that takes at most `columns`.
[[nodiscard, gnu::cold]] inline std::string_view end_within(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  if (width <= columns) return text;
  text.remove_prefix(bytes_within(text, width - columns));
  // A wide character or an escape that would be cut.
  while (display_width(text) > columns) text.remove_prefix(unit_at(text, 0).bytes);
  return text;
}

/// The last component of a path, behind its last slash that is not escaped; the whole name if it has no other.
[[nodiscard]] constexpr std::string_view last_component(std::string_view name) noexcept {
  std::size_t slash = name.rfind('/');
  while (slash != name.npos && slash > 0 && name[slash - 1] == '\\') slash = name.rfind('/', slash - 1);
  return slash == name.npos ? name : name.substr(slash + 1);
}

/// Whether a frame is a function of Python's interpreter: "PyNumber_Add", "_PyType_Lookup", without a file.
[[nodiscard]] constexpr bool is_interpreter_frame(std::string_view frame) noexcept {
  if (frame.starts_with('_')) frame.remove_prefix(1);
  return frame.starts_with("Py") && frame.find('_') != frame.npos && frame.find_first_of(" :(") == frame.npos;
}

/// Whether a frame is one of the standard library, of libtorch, of Python's interpreter or of an allocator, rather than of the
/// program.
[[nodiscard]] constexpr bool is_library_frame(std::string_view frame) noexcept {
  if (is_interpreter_frame(frame)) return true;
  constexpr std::array<std::string_view, 6> begins{"std::", "__gnu_cxx::", "operator new", "at::", "c10::", "torch::"};
  return std::any_of(begins.begin(), begins.end(), [&](std::string_view begin) { return frame.starts_with(begin); });
}

/// A path without the frames of libraries at its end; empty if it has no others.
[[nodiscard]] constexpr std::string_view without_library_frames(std::string_view name) noexcept {
  while (is_library_frame(last_component(name))) {
    const std::size_t frame = last_component(name).size();
    name.remove_suffix(std::min(name.size(), frame + 1));  // and its slash
  }
  return name;
}

/// A name in at most `columns`: its middle is left out, but of a path the last component stays, or else its end. Of a stack, it
/// is the innermost frame of the program that stays.
[[nodiscard, gnu::cold]] inline std::string shortened_name(std::string_view name, std::size_t columns) {
  const std::string_view own = without_library_frames(name);
  if (!own.empty() && own.size() < name.size() && columns > 1 && display_width(name) > columns) {
    const std::string shown = shortened_name(own, columns - 1) + std::string{ellipsis};
    const std::size_t room = columns - display_width(shown);
    return room < least_end ? shown : shown + std::string{end_within(name.substr(own.size()), room)};
  }
  const std::string_view last = last_component(name);
  const std::size_t width = display_width(last);
  if (columns == 0 || last.size() == name.size() || 2 * width < columns) return shortened(name, columns);
  if (display_width(name) <= columns) return std::string{name};
  const std::size_t room = columns - 1 - std::min(columns - 1, width);
  if (room < least_end) return std::string{ellipsis} + std::string{end_within(name, columns - 1)};
  return std::string{name.substr(0, bytes_within(name, room))} + std::string{ellipsis} + std::string{last};
}

/// A range of bytes in a text.
struct text_range {
  std::size_t begin;
  std::size_t end;
};

/// The range in which a name differs from others: from the first path component (between slashes) that they do not all share to
/// the last such component. Of a long component, only `longest_common_part` characters before the first difference.
[[nodiscard, gnu::cold]] inline text_range difference_of(std::string_view name, const vector<std::string_view>& others,
                                                         std::size_t longest_common_part) {
  std::size_t prefix = name.size();
  std::size_t suffix = name.size();
  for (const std::string_view other : others) {
    const std::size_t most = std::min(name.size(), other.size());
    std::size_t same = 0;
    while (same < most && name[same] == other[same]) ++same;
    prefix = std::min(prefix, same);
    same = 0;
    while (same < most && name[name.size() - 1 - same] == other[other.size() - 1 - same]) ++same;
    suffix = std::min(suffix, same);
  }
  const std::size_t slash = prefix == 0 ? std::string_view::npos : name.rfind('/', prefix - 1);
  std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  if (prefix - begin > longest_common_part) begin = prefix - longest_common_part;
  while (begin > 0 && continues_utf8(name[begin])) --begin;
  begin = begin_of_unit(name, begin);
  const std::size_t end = name.find('/', std::max(begin, name.size() - suffix));
  return {begin, std::min(end, name.size())};
}

/// The part that distinguishes a name from others, with as much as fits of what follows it, or else of what precedes it; but the
/// last `kept_end` columns stay.
[[nodiscard, gnu::cold]] inline std::string shortened_around(std::string_view name, text_range difference, std::size_t columns,
                                                             std::size_t kept_end) {
  constexpr std::size_t ellipses = 2;
  if (columns <= ellipses) return shortened(name, columns);
  const std::string_view rest = name.substr(difference.begin);
  const std::string begin{difference.begin == 0 ? std::string_view{} : ellipsis};
  const std::size_t room = columns - display_width(begin);
  if (display_width(rest) <= room) return begin + std::string{rest};
  std::string_view middle = rest.substr(0, difference.end - difference.begin);
  middle = middle.substr(0, bytes_within(middle, room - 1 - std::min(room - 1, kept_end)));
  const std::size_t left = room - 1 - display_width(middle);
  if (left < least_end) return begin + std::string{middle} + std::string{ellipsis};
  return begin + std::string{middle} + std::string{ellipsis} + std::string{end_within(rest.substr(middle.size()), left)};
}

/// How much of the ends of names stays beside their difference: the last components if they take no more than half.
[[nodiscard, gnu::cold]] inline std::size_t kept_end_of(const vector<std::string>& names, std::size_t columns) {
  std::size_t longest = 0;
  for (const std::string& name : names) {
    const std::string_view last = last_component(name);
    if (last.size() != name.size()) longest = std::max(longest, display_width(last));
  }
  return std::min(longest, columns / 2);
}

/// The names in at most `columns` columns each, with ellipses for what was left out. Names that differ stay different if the
/// columns suffice: those that would look alike show where they differ.
[[nodiscard, gnu::cold]] inline vector<std::string> shortened_apart(const vector<std::string>& names, std::size_t columns) {
  constexpr int max_rounds = 16;
  vector<std::string> shown;
  shown.reserve(names.size());
  for (const std::string& name : names) shown.push_back(shortened_name(name, columns));
  std::size_t kept_end = kept_end_of(names, columns);
  for (int round = 0; round < max_rounds; ++round) {
    const vector<std::size_t> order =  // those that look alike side by side
        row_order(shown.size(), [&](std::size_t left, std::size_t right) { return shown[left] < shown[right]; });
    bool has_changed = false;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      const std::string text = shown[order[begin]];
      vector<std::string_view> same;
      bool has_difference = false;
      for (; end < order.size() && shown[order[end]] == text; ++end) {
        same.emplace_back(names[order[end]]);
        has_difference = has_difference || same.back() != same.front();
      }
      if (!has_difference) continue;
      for (std::size_t at = begin; at < end; ++at) {
        const std::string_view name = names[order[at]];
        std::string next = shortened_around(name, difference_of(name, same, (columns - kept_end) / 2), columns, kept_end);
        has_changed = has_changed || next != text;
        shown[order[at]] = std::move(next);
      }
    }
    if (has_changed) continue;
    if (kept_end == 0) break;
    kept_end = kept_end / 2 < least_end ? 0 : kept_end / 2;
  }
  return shown;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
