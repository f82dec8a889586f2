#pragma once

#include <memprof/toolkit/format/pytorch/snapshot_events.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
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

  explicit snapshot_frame(std::string_view operation) : name(operation) {
    const std::size_t open = operation.rfind(" (");
    const std::size_t colon = operation.rfind(':');
    if (open == operation.npos || colon == operation.npos || colon < open || !operation.ends_with(')')) return;
    const char* const end = operation.data() + operation.size() - 1;
    std::int64_t number = 0;
    if (const auto [stop, fault] = std::from_chars(operation.data() + colon + 1, end, number);
        fault != std::errc{} || stop != end)
      return;
    name = operation.substr(0, open);
    file = operation.substr(open + 2, colon - open - 2);
    line = number;
  }
};

/// By space: `cuda:3` is device 3; other spaces get the numbers after the last.
[[nodiscard]] inline std::vector<int> snapshot_devices(const snapshot_scan& scan, const replay_state& at) {
  constexpr int most = 64;
  std::vector<int> result(any_space + std::size_t{1}, -1);
  int next = 0;
  for (std::size_t space = 0; space < any_space; ++space) {
    const std::string_view name = at.space_name(static_cast<std::uint8_t>(space));
    if (!scan.spaces[space].is_used || !name.starts_with("cuda:")) continue;
    int number = 0;
    const auto [stop, fault] = std::from_chars(name.data() + 5, name.data() + name.size(), number);
    if (fault != std::errc{} || stop != name.data() + name.size() || number < 0 || number >= most) continue;
    result[space] = number;
    next = std::max(next, number + 1);
  }
  for (std::size_t space = 0; space < any_space; ++space) {
    if (scan.spaces[space].is_used && result[space] < 0) result[space] = next++;
  }
  return result;
}

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
  [[nodiscard]] snapshot_stream of(const replay_state& at, label name) {
    const std::string_view text = at.names.text(name);
    const std::size_t end = std::min(text.find(name_separator), text.size());
    snapshot_stream numbers{number_of(text.substr(0, end)), 0, 0};
    const std::string_view pool = end < text.size() ? text.substr(end + 1) : std::string_view{};
    const std::size_t colon = pool.find(':');
    if (colon == pool.npos) return numbers;
    (void)std::from_chars(pool.data(), pool.data() + colon, numbers.pool_first);
    (void)std::from_chars(pool.data() + colon + 1, pool.data() + pool.size(), numbers.pool_second);
    return numbers;
  }

 private:
  [[nodiscard]] std::int64_t number_of(std::string_view stream) {
    if (stream.empty() || stream == "default") return 0;
    const bool is_address = stream.starts_with("0x");
    const char* const end = stream.data() + stream.size();
    std::int64_t number = 0;
    const auto [stop, fault] = std::from_chars(stream.data() + (is_address ? 2 : 0), end, number, is_address ? 16 : 10);
    if (fault == std::errc{} && stop == end) return number;
    const auto counted = other_streams_.try_emplace(std::string{stream}, other_streams_.size() + 1);
    return static_cast<std::int64_t>(counted.first->second);
  }

  std::unordered_map<std::string, std::size_t> other_streams_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
