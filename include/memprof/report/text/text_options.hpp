#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What kind of text a report is.
enum class text_format : std::uint8_t {
  summary,  ///< answers for people, in at most `text_options::max_lines` lines
  tracker,  ///< what tt-train's memory tracker prints, every segment: for scripts that read its logs
};

/// What a text report shows. What is asked for beyond the defaults may take more lines than `max_lines`.
struct text_options {
  text_format format = text_format::summary;
  /// The memory space that comes first, and whose lines say "DRAM" in the tracker's format. Empty: of a summary, the space that
  /// is full, else the one with the greatest peak; of the tracker's format, the space "dram" if there is one, else the first that
  /// is not "cpu" and not on cores, else "cpu".
  std::string_view primary_space = {};
  std::size_t columns = 100;       ///< width of the text, at least 60; names are shortened to fit
  std::size_t max_lines = 40;      ///< at least 32
  bool is_colored = false;         ///< with the control sequences of terminals (ECMA-48)
  std::size_t owners = 5;          ///< operations named at the peak, and at the end
  std::size_t largest_blocks = 0;  ///< blocks named at the peak
  std::size_t streams = 0;         ///< streams and pools named, for a space whose allocator reports them
  std::size_t checkpoints = 4;  ///< named, of those that the profile keeps; with as many blocks each as `largest_blocks`, or one
  std::size_t core_ranges = 0;  ///< rectangles of cores named, for a space whose blocks lie on cores
  bool all_spaces = false;      ///< the whole answer for every memory space, not for the first one alone
  bool all_faults = false;      ///< a line for every kind of fault in the numbers
  bool all_segments = false;    ///< a line for each segment in the order of time, in place of one for each name
};

}  // namespace memprof::inline MEMPROF_ABI
