#pragma once

#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The name of a memory space of a rank: "dram", or "dram:3" if the log has labels of ranks.
[[nodiscard]] std::string tt_space_name(const tt_rank& rank, std::size_t memory);

/// What a pass over a log does with the changes between its states.
class tt_walk_target {
 public:
  virtual void on_rank(const tt_rank& rank) = 0;
  /// An operation or program of the current rank begins.
  virtual void enter(std::string_view name) = 0;
  virtual void leave() = 0;
  virtual void end_segment(std::string_view name) = 0;
  virtual void next_state() = 0;
  /// What one kind of memory holds before the operation `before`.
  virtual void state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view before,
                     std::uint64_t line) = 0;
  /// A block that the operation `by` made, if it is known.
  virtual void allocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& made,
                        const tt_executed_operation* by) = 0;
  virtual void deallocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& from, std::int64_t part) = 0;
  virtual void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) = 0;
  /// The last operation of a rank: no state shows its effect.
  virtual void unseen(const tt_rank& rank, const tt_executed_operation& last) = 0;

 protected:
  ~tt_walk_target() = default;
};

/// What a pass over a log found.
struct tt_walked_log {
  tt_log_reading reading;
  std::string last_segment;  ///< the name of the segment that ends with the log; empty if nothing followed the last one
};

/// Reads a log from its start and passes the changes between its states to `target`. Raises an error with the file for numbers
/// that no device can have.
[[nodiscard]] tt_walked_log walk_tt_log(std::FILE* file, const std::filesystem::path& path, tt_walk_target& target);

}  // namespace memprof::inline MEMPROF_ABI::detail
