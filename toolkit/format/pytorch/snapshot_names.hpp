#pragma once

#include <memprof/toolkit/format/pytorch/snapshot_events.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// @file
/// What a PyTorch memory snapshot identifies by numbers or parts, and a trace by names.

namespace memprof::inline MEMPROF_ABI::detail {

/// Splits `name (file:line)`, the form in which operations are named after frames; if there is no file, it is empty.
struct snapshot_frame {
  std::string_view name;
  std::string_view file;
  std::int64_t line = 0;

  explicit snapshot_frame(std::string_view operation);
};

/// By space: `cuda:3` is device 3; other spaces get the numbers after the last.
[[nodiscard]] std::vector<int> snapshot_devices(const snapshot_scan& scan, const replay_state& at);

/// A stream and a pool as PyTorch numbers them.
struct snapshot_stream {
  std::int64_t stream = 0;
  std::int64_t pool_first = 0;
  std::int64_t pool_second = 0;
};

/// Numbers streams: `default` is 0, addresses and numbers are kept, and other names are numbered in turn.
class snapshot_streams {
 public:
  /// The stream of a name in the trace: `stream\x1fpool`, both of which may be empty.
  [[nodiscard]] snapshot_stream of(const replay_state& at, label name);

 private:
  [[nodiscard]] std::int64_t number_of(std::string_view stream);

  std::unordered_map<std::string, std::size_t> other_streams_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
