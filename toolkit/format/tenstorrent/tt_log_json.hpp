#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// @file
/// The files that tt-mlir's own profiler (tt-swiss, `ttmem`) makes from a log: `NAME_memory.json`, `NAME_operations.json` and
/// `NAME_inputs_registry.json`. The nth operation of one is the nth of the other.

namespace memprof::inline MEMPROF_ABI {

/// What the files need to know about a rank of a log before its first operation.
struct tt_rank_summary {
  tt_rank rank;
  tt_memory_state first;            ///< the state before the first operation
  std::uint64_t operations = 0;     ///< in the files
  std::uint64_t deallocations = 0;  ///< not in the files, like the next two
  std::uint64_t get_devices = 0;
  std::uint64_t without_state = 0;
  std::map<std::string, std::uint64_t> const_evals;  ///< number of operations of each
  std::map<std::string, bool> cache_misses;          ///< whether it missed, by name
};

/// What must be known about a log before its files are written, for each rank that has operations with states. The caller keeps
/// the file. Raises an error like `tt_log_source` for numbers that no device can have.
struct tt_log_content {
  std::vector<tt_rank_summary> ranks;
  std::vector<tt_input> inputs;
  bool has_module = false;
  tt_log_status status;
};

[[nodiscard]] tt_log_content content_of_tt_log(std::FILE* file, const std::filesystem::path& path);

/// Writes the memory state before each of a rank's operations, and the operations themselves, the nth of one file with the nth of
/// the other. Reads the file once, with one line in memory at a time.
void write_tt_json(std::FILE* file, const std::filesystem::path& path, const tt_rank_summary& rank,
                   const std::vector<tt_input>& inputs, byte_sink_view memory, byte_sink_view operations);

/// Writes the arguments of the compiled module, or empty objects if there is none.
void write_tt_inputs(const tt_log_content& content, byte_sink_view sink);

}  // namespace memprof::inline MEMPROF_ABI
