#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/terminal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The kind of text that a report is.
enum class text_format : std::uint8_t {
  summary,  ///< answers for people, in at most `text_options::max_lines` lines
  tracker,  ///< the output of tt-train's memory tracker with every segment, for scripts that read its logs
};

/// What a text report shows. Anything beyond the defaults may exceed `max_lines`.
struct text_options {
  text_format format = text_format::summary;
  /// The memory space that comes first, or is printed as "DRAM" in the tracker's format. If empty, a summary takes the space that
  /// is full, else the one with the greatest peak; the tracker's format takes "dram" if it exists, else the first space that is
  /// neither "cpu" nor on cores, else "cpu".
  std::string_view primary_space = {};
  std::size_t columns = 100;       ///< width of the text, at least 60; names are shortened to fit
  std::size_t max_lines = 40;      ///< at least 32
  bool is_colored = false;         ///< with terminal control sequences (ECMA-48)
  std::size_t owners = 5;          ///< operations named at the peak and at the end
  std::size_t largest_blocks = 0;  ///< blocks named at the peak
  std::size_t streams = 0;         ///< streams and pools named, if the space's allocator reports them
  std::size_t checkpoints = 4;  ///< checkpoints named, of those that the profile keeps; each with `largest_blocks` blocks, or one
  std::size_t core_ranges = 0;  ///< rectangles of cores named, if the space's blocks lie on cores
  bool all_spaces = false;      ///< the full answer for every memory space, not just the first
  bool all_faults = false;      ///< a line for every kind of anomaly
  bool all_segments = false;    ///< a line for each segment in order of time instead of one for each name
};

namespace detail {

/// The options for a text written to `stream`: no wider than its terminal, and coloured if the terminal shows colours.
[[nodiscard]] inline text_options fitted_to(std::FILE* stream, text_options options) noexcept {
  if (const std::size_t columns = terminal_columns(stream); columns != 0) options.columns = std::min(options.columns, columns);
  options.is_colored = options.is_colored || shows_colors(stream);
  return options;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
