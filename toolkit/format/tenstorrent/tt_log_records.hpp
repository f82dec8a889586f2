#pragma once

#include <memprof/toolkit/format/tenstorrent/mlir_operation.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What each kind of memory held at one moment, as far as the log shows; indexed like `tt_memory_names`.
using tt_memory_state = std::array<std::optional<tt_memory_view>, tt_memory_count>;

/// One of the processes that wrote to a log.
struct tt_rank {
  std::size_t index = 0;  ///< in the order of their first lines
  std::string number;     ///< from its label; empty if its lines have none
};

/// An operation that was executed according to the log.
struct tt_executed_operation {
  mlir_operation mlir;         ///< without a name if the log has only the state
  std::string type;            ///< "LoadCachedOp"
  std::uint64_t line = 0;      ///< of the file, from 1
  std::string program;         ///< the innermost one running; empty: none
  std::string const_eval;      ///< the innermost running program that computes weights; empty: none
  bool is_cache_miss = false;  ///< whether its result was not in the cache

  /// Its name, or else its type.
  [[nodiscard]] const std::string& name() const noexcept { return mlir.name.empty() ? type : mlir.name; }
};

/// How far a log could be read, and its anomalies.
struct tt_log_status {
  std::string damage;  ///< why the end is missing, as a sentence without a full stop; empty if it is not
  std::uint64_t lines = 0;
  std::uint64_t states = 0;         ///< before operations, before and after programs
  std::uint64_t without_state = 0;  ///< operations without a state before them, except deallocations
  std::string first_without_state;  ///< "'ttnn.mean' in line 41"
  std::uint64_t unreadable = 0;     ///< lines that should have a state or an operation but have none, or an impossible one
  std::string first_unreadable;     ///< "line 17: ..."
};

/// Whether the log is complete.
[[nodiscard]] inline bool is_whole(const tt_log_status& status) noexcept {
  return status.damage.empty() && status.unreadable == 0;
}

/// Operations that tt-mlir's profiler leaves out of its files.
[[nodiscard]] inline bool is_deallocation(const mlir_operation& operation) noexcept {
  return operation.name.find("deallocate") != std::string::npos;
}
[[nodiscard]] inline bool is_get_device(const mlir_operation& operation) noexcept {
  return operation.name.find("get_device") != std::string::npos;
}

/// A consumer of a log's contents.
class tt_log_sink {
 public:
  /// An operation with the state before it.
  virtual void operation(const tt_rank& rank, const tt_executed_operation& executed, const tt_memory_state& state) = 0;
  virtual void operation_without_state(const tt_rank& rank, const tt_executed_operation& executed) = 0;
  /// The state before or after a program.
  virtual void program_state(const tt_rank& rank, const tt_memory_state& state) = 0;
  virtual void begin_program(const tt_rank& rank, std::string_view name) = 0;
  virtual void end_program(const tt_rank& rank, std::string_view name) = 0;
  virtual void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) = 0;

 protected:
  ~tt_log_sink() = default;
};

}  // namespace memprof::inline MEMPROF_ABI
