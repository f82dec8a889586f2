#pragma once

#include <memprof/report/text/display_width.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Names shortened to fit their column but kept distinct: stacks often begin with the same frames and end in the same allocator.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] constexpr bool continues_utf8(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// A range of bytes in a text.
struct text_range {
  std::size_t begin;
  std::size_t end;
};

/// The range in which a name differs from others: from the first path component (between slashes) that they do not all share to
/// the last such component. Of a long component, only `longest_common_part` characters before the first difference.
[[nodiscard]] text_range difference_of(std::string_view name, const auto& others, std::size_t longest_common_part) {
  std::size_t prefix = name.size();
  std::size_t suffix = name.size();
  for (const std::string_view other : others) {
    const auto from_begin = std::mismatch(name.begin(), name.end(), other.begin(), other.end());
    prefix = std::min(prefix, static_cast<std::size_t>(from_begin.first - name.begin()));
    const auto from_end = std::mismatch(name.rbegin(), name.rend(), other.rbegin(), other.rend());
    suffix = std::min(suffix, static_cast<std::size_t>(from_end.first - name.rbegin()));
  }
  const std::size_t slash = prefix == 0 ? std::string_view::npos : name.rfind('/', prefix - 1);
  std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  if (prefix - begin > longest_common_part) begin = prefix - longest_common_part;
  while (begin > 0 && continues_utf8(name[begin])) --begin;
  const std::size_t end = name.find('/', std::max(begin, name.size() - suffix));
  return {begin, std::min(end, name.size())};
}

/// The part that distinguishes a name from others, with as much as fits of what follows it, or else of what precedes it.
[[nodiscard]] inline std::string shortened_around(std::string_view name, text_range difference, std::size_t columns) {
  constexpr std::size_t ellipses = 2;
  constexpr std::string_view ellipsis = "\xe2\x80\xa6";
  if (columns <= ellipses) return shortened(name, columns);
  const std::string_view rest = name.substr(difference.begin);
  const std::string begin{difference.begin == 0 ? std::string_view{} : ellipsis};
  const std::size_t room = columns - display_width(begin);
  if (display_width(rest) <= room) return begin + std::string{rest};
  const std::string_view middle = rest.substr(0, difference.end - difference.begin);
  const std::size_t used = display_width(middle);
  if (used + 1 >= room) return begin + std::string{middle.substr(0, bytes_within(middle, room - 1))} + std::string{ellipsis};
  // An end shorter than this is not worth showing.
  constexpr std::size_t least_end = 6;
  if (room - used - 1 < least_end) return begin + std::string{middle} + std::string{ellipsis};
  std::string_view end = rest.substr(middle.size());
  end.remove_prefix(bytes_within(end, display_width(end) - (room - used - 1)));
  while (display_width(end) > room - used - 1) {  // a wide character that would be cut in half
    end.remove_prefix(1);
    while (!end.empty() && continues_utf8(end.front())) end.remove_prefix(1);
  }
  return begin + std::string{middle} + std::string{ellipsis} + std::string{end};
}

/// The names in at most `columns` columns each, with ellipses for what was left out. Names that differ stay different if the
/// columns suffice: those that would look alike show where they differ.
template <class Names = std::vector<std::string>>
[[nodiscard]] std::vector<std::string> shortened_apart(const Names& names, std::size_t columns) {
  constexpr int max_rounds = 8;
  std::vector<std::string> shown(names.size());
  std::transform(names.begin(), names.end(), shown.begin(), [&](const std::string& name) { return shortened(name, columns); });
  for (int round = 0; round < max_rounds; ++round) {
    std::map<std::string, std::vector<std::size_t>> alike;
    for (std::size_t index = 0; index < shown.size(); ++index) alike[shown[index]].push_back(index);
    bool has_changed = false;
    for (const auto& [text, indices] : alike) {
      std::vector<std::string_view> same(indices.size());
      std::transform(indices.begin(), indices.end(), same.begin(),
                     [&](std::size_t index) { return std::string_view{names[index]}; });
      if (std::all_of(same.begin(), same.end(), [&](std::string_view name) { return name == same.front(); })) continue;
      for (const std::size_t index : indices) {
        std::string next = shortened_around(names[index], difference_of(names[index], same, columns / 2), columns);
        has_changed = has_changed || next != text;
        shown[index] = std::move(next);
      }
    }
    if (!has_changed) break;
  }
  return shown;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
