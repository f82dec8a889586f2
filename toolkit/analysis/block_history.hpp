#pragma once

#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// @file
/// The blocks of one memory space over a whole run, in an array: what questions of the form "what if" transform and replay.

namespace memprof::inline MEMPROF_ABI {

/// Allocations and frees of a space are counted from 1; these numbers serve as its time.
using event_number = std::uint32_t;

/// In place of the free of a block that is live at the end.
inline constexpr event_number never_freed = ~event_number{0};

/// A block: what was allocated, by whom, and from when to when it was live.
struct history_block {
  std::int64_t bytes = 0;  ///< on cores: across all of them
  event_number begin = 0;  ///< its allocation
  event_number end = never_freed;
  std::uint32_t operation = 0;   ///< the innermost open one at its allocation: an index of `block_history::operations`
  extend::label annotation = 0;  ///< a key of `block_history::annotations`; 0: none
  std::uint32_t born_in = 0;     ///< the innermost call then: an index of `block_history::calls`
  std::uint32_t freed_in = 0;    ///< the innermost call on the freeing thread
  memprof::category category = category::other;  ///< the last that it got
};

/// The blocks of a space, in the order of their allocation.
struct block_history {
  struct operation {
    std::uint32_t parent = 0;
    std::string name;
  };
  /// A call of an operation, from just before event `begin` to just before event `end`.
  struct call {
    std::uint32_t operation = 0;
    std::uint32_t parent = 0;  ///< the call around it on its thread; 0: none
    event_number begin = 0;
    event_number end = never_freed;
  };
  /// Until when the program used a block, as far as the trace says.
  struct use {
    bool is_known = false;
    event_number last = 0;  ///< the last event before the last use, or before the end of the operation that it was in
  };
  struct segment {
    extend::label name = 0;  ///< a key of `segment_names`
    event_number last = 0;   ///< the last event in it
  };
  struct tensor {
    std::vector<std::int64_t> shape;
    std::string dtype;  ///< "fp32" as "float32"; empty: unknown
  };

  std::string space;
  bool exact = false;                ///< as in the run's profile, which says it: `read_block_history` does not
  std::vector<std::string> remarks;  ///< caveats about the recording, as `remarks_on` of that profile
  std::vector<history_block> blocks;
  event_number events = 0;            ///< the last one
  std::vector<operation> operations;  ///< the first is "no operation"; parents come before their children
  std::vector<call> calls;            ///< the first is "no call"; empty if they were not asked for
  std::vector<use> uses;              ///< of each block; empty if the trace has none (`capture_options::uses`), or as for calls
  std::int64_t unmatched_uses = 0;    ///< of memory at which no live block of any space begins
  std::vector<segment> segments;      ///< those that ended, in order
  std::unordered_map<extend::label, std::string> segment_names;
  std::unordered_map<extend::label, tensor> annotations;
  bool has_allocator = false;  ///< the trace says what an allocator reserved in this space

  /// The names of an operation and those around it, outermost first.
  [[nodiscard]] std::vector<std::string> path(std::uint32_t of) const;
};

/// Reads the blocks of a space. One pass; 40 bytes a block, 16 a call (asked for
/// `with_calls`), 8 a block if there are uses. Throws `memprof::error` if events
/// before the last are missing, as from a trace of limited size, or if there are more than 4 billion.
[[nodiscard]] block_history read_block_history(const trace_source_view& source, std::string_view space, bool with_calls);

}  // namespace memprof::inline MEMPROF_ABI
