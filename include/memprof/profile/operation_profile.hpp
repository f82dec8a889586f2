#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>

#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// One invocation of an operation in one memory space. Delta and peak are inclusive, as in `operation_usage`.
struct operation_invocation {
  std::int64_t thread = -1;  ///< number of the thread; -1: no such invocation
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t delta = 0;
  std::int64_t peak = 0;

  bool operator==(const operation_invocation&) const = default;
};

/// What one operation did in one memory space. Inclusive values contain nested operations; self values do not, so a table of self
/// values sums to the total. Deltas and peaks count what the operation's own thread, and those that had adopted it, allocated and
/// freed while it was open.
struct operation_usage {
  std::string space;
  std::int64_t total_delta = 0;  ///< inclusive: allocated - freed, over all invocations
  std::int64_t self_delta = 0;
  std::int64_t max_delta = 0;  ///< inclusive: greatest delta of one finished invocation
  std::int64_t allocated = 0;  ///< inclusive, bytes
  std::int64_t freed = 0;      ///< inclusive, bytes, regardless of who allocated them
  std::int64_t self_allocated = 0;
  std::int64_t self_freed = 0;
  std::int64_t allocation_count = 0;    ///< self
  std::int64_t deallocation_count = 0;  ///< self
  std::int64_t peak = 0;                ///< inclusive: greatest rise above the bytes at entry, in any invocation
  std::int64_t self_peak = 0;           ///< the same, excluding nested operations
  std::int64_t live = 0;                ///< bytes allocated by this operation itself and live at the end
  /// Among the finished invocations whose delta and peak are not both 0: the first and last to end, and the one with the greatest
  /// peak (the first if equal). A trace has all of them.
  operation_invocation first_invocation;
  operation_invocation last_invocation;
  operation_invocation largest_invocation;
  /// Inclusive: the part of `allocated` by threads without an operation, for which `capture_options::infer_operations` assumed
  /// this one.
  std::int64_t inferred = 0;

  bool operator==(const operation_usage&) const = default;
};

/// One node of the operation tree. `path` joins the names from the outermost operation, as `append_operation` does.
struct operation_profile {
  std::string path;
  std::string name;
  std::int64_t parent = -1;  ///< index into `profile::operations`, -1 for an outermost operation
  std::int64_t invocations = 0;
  vector<operation_usage> usage;   ///< one for each space it used
  bool stands_for_others = false;  ///< for the operations in `parent` beyond `capture_options::operations`

  bool operator==(const operation_profile&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI
