#pragma once

#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>

#include <string>
#include <vector>

/// @file
/// What a log of tt-mlir's runtime says, as lines for people.

namespace memprof::inline MEMPROF_ABI {

/// The operations of a rank, those that its files leave out, and a line for each const-eval.
[[nodiscard]] std::string to_text(const tt_rank_summary& rank);

/// A line for each kind of memory: its peak and fragmentation, and before which operation.
[[nodiscard]] std::string to_text(const std::vector<tt_memory_fact>& memories);

}  // namespace memprof::inline MEMPROF_ABI
