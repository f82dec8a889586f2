#pragma once

#include <memprof/config.hpp>
#include <memprof/report/text/display_width.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Breaks lines of more than `columns` (0: none) at spaces, but for those of such tables.
[[nodiscard]] inline std::string folded(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string{text};
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size()) + 2;
    const bool is_table = line.find(" | ") != line.npos || line.find("-+-") != line.npos;
    std::size_t room = columns;
    while (!is_table && display_width(line) > room) {
      std::size_t cut = line.rfind(' ', bytes_within(line, room));
      if (cut == line.npos || line.find_first_not_of(' ') > cut) cut = line.find(' ', bytes_within(line, room));
      if (cut == line.npos) break;
      result.append(line.substr(0, cut)) += '\n' + std::string(indent, ' ');
      line.remove_prefix(cut + 1);
      room = columns - indent;
    }
    result.append(line);
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
