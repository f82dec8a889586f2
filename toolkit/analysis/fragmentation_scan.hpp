#pragma once

#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// @file
/// The causes of a trace in which an allocator said what it reserved: of a real device, or of a PyTorch snapshot.

namespace memprof::inline MEMPROF_ABI {

/// What was reserved at one moment of a trace, and why.
struct fragmentation_moment {
  std::uint64_t event = 0;     ///< index among all events, from 0, after which it was so
  std::int64_t requested = 0;  ///< of the allocation that failed; 0: none did
  std::string stream;          ///< `stream\x1fpool` of the request that more was reserved for, or that failed; empty: unknown
  fragmentation parts;
};

/// The peak of what was reserved, and the first failure for lack of memory.
struct recorded_fragmentation {
  fragmentation_moment at_peak;
  std::optional<fragmentation_moment> at_failure;
  /// Of blocks that lie in no reserved range at the peak. They are in none of the parts: if they are many, the addresses of
  /// blocks have nothing to do with those of ranges, as in a simulated run.
  std::int64_t outside = 0;
};

/// Divides what an allocator reserved of the memory space, by the addresses of blocks and ranges. Nothing if it reserved none, or
/// if the trace lacks events.
///
/// Blocks of a trace have their requested sizes: what the rules of PyTorch's allocator with these `settings` add to them is
/// `rounding`, as far as it is free. Ranges that touch are one segment if a block has ever lain in both, as in expandable
/// segments; otherwise each is its own. The peak is taken after the allocation for which more was reserved.
///
/// Reads the trace twice, and takes memory for live blocks and ranges.
[[nodiscard]] std::optional<recorded_fragmentation> fragmentation_in(const trace_source_view& source, std::string_view space,
                                                                     const caching_allocator_options& settings = {});

}  // namespace memprof::inline MEMPROF_ABI
