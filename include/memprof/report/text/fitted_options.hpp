#pragma once

#include <memprof/detail/terminal.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace memprof::inline MEMPROF_ABI::detail {

/// The options for a text written to `stream`: no wider than its terminal, and coloured if the terminal shows colours.
[[nodiscard]] inline text_options fitted_to(std::FILE* stream, text_options options) noexcept {
  if (const std::size_t columns = terminal_columns(stream); columns != 0) options.columns = std::min(options.columns, columns);
  options.is_colored = options.is_colored || shows_colors(stream);
  return options;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
