#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Session profiles: the JSON of the memory profiler of pie-project/pie (backend-python/memory_profiler), with its snapshots,
/// operation calls and PyTorch operators. What it calls a tensor is a block here, so views and aliases count once.

namespace memprof::inline MEMPROF_ABI {

/// The number of largest blocks that a snapshot lists for each device and overall.
inline constexpr std::size_t session_largest_blocks = 10;

namespace detail {

/// A block of a snapshot.
struct session_tensor {
  std::int64_t bytes = 0;
  std::string_view shape;
  std::string_view dtype;
  std::string_view device;
  std::string_view operation;  ///< name of the innermost one
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;
  memprof::category category = category::other;
};

/// Inserts a block into the largest blocks, largest first, if it is one of them; among equals the earlier wins.
void keep_if_larger(std::vector<session_tensor>& largest, const session_tensor& offered);

/// One device of a snapshot.
struct session_device {
  std::string_view name;
  std::int64_t bytes = 0;
  std::int64_t blocks = -1;             ///< -1: unknown
  std::vector<session_tensor> largest;  ///< largest first
};

/// A finished call of an operation. Unknown values are -1, except `delta`.
struct session_call {
  std::int64_t unix_ns = 0;  ///< when it ended
  std::int64_t delta = 0;
  std::int64_t block_delta = 0;
  std::int64_t before = -1;  ///< live bytes across all devices
  std::int64_t allocated = -1;
  std::int64_t freed = -1;  ///< blocks, like `allocated`
  std::int64_t begin_unix_ns = 0;
  std::int64_t thread = -1;  ///< its number; -1: unknown, as is the begin
};

/// All calls of operations with the same name.
struct session_operation {
  std::int64_t invocations = 0;
  std::int64_t total_delta = 0;
  std::int64_t max_delta = 0;
  bool has_max = true;
  std::int64_t allocated = -1;  ///< blocks; -1: unknown
  std::set<std::string> children;
  std::vector<session_call> calls;
  std::vector<session_tensor> largest;  ///< of its own allocations, largest first; empty for a profile

  void add(const session_call& call);
};

/// Keyed by name.
using session_operations = std::map<std::string, session_operation>;

/// Writes a session profile from the start: snapshots one by one, then everything else.
class session_writer {
 public:
  explicit session_writer(byte_sink_view out) : out_(out) {}

  void begin(const profile& run, std::uint64_t snapshots, bool has_operations, const std::vector<std::string>& missing);

  void snapshot(std::int64_t unix_ns, std::string_view name, const std::vector<session_device>& devices);

  void finish(const session_operations& operations, const profile& run);

 private:
  void flush();

  /// Calls `put(operation)` after each name.
  template <class Put>
  void put_operations(const session_operations& operations, Put&& put);

  byte_sink_view out_;
  std::string text_;
  bool is_first_ = true;
};

/// The name of a checkpoint; periodic ones are numbered, as in the original.
[[nodiscard]] std::string checkpoint_name(std::string_view name, std::uint64_t number);

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
