#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// How much detail a ledger keeps. Totals, peaks and live sets do not depend on it.
struct ledger_options {
  std::uint32_t timeline_points = 4096;   ///< per space, at least 2
  std::uint32_t largest_blocks = 10;      ///< kept for each peak
  std::uint32_t owners_per_segment = 32;  ///< operations kept for each segment's peak; the overall peak keeps all
  std::uint32_t full_segments = 64;       ///< kept in full; at least 4
  std::uint32_t segment_names = 64;       ///< names with a row of their own
  std::uint32_t operations = 4096;        ///< operations with a node of their own
  /// Id in the system of the thread for whose open operation threads without one work; 0: these have none.
  std::uint64_t leading_thread = 0;
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
