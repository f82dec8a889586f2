#pragma once

#include <cstddef>
#include <string_view>

namespace memprof {

/// What a text report shows.
struct text_options {
  /// The memory space whose lines say "DRAM", as the logs of tt-train do. Empty: the space "dram" if there is one, else the first
  /// that is not "cpu", else "cpu".
  std::string_view primary_space = {};
  std::size_t max_segments = 0;         ///< lines for the first segments only; 0 is no limit
  std::size_t owners = 5;               ///< operations named at a peak
  std::size_t largest_blocks = 5;       ///< blocks named at a peak
  std::size_t core_ranges = 5;          ///< rectangles of cores named for a space whose blocks lie on cores
  std::size_t streams = 10;             ///< streams and pools named for a space whose allocator tells them
  std::size_t out_of_memory = 3;        ///< allocations named for which a device had no memory
  std::size_t pytorch_operations = 10;  ///< rows of each table about PyTorch's operators
};

}  // namespace memprof
