#include <memprof/config.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_events.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_names.hpp>
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
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

snapshot_frame::snapshot_frame(std::string_view operation) : name(operation) {
  const std::size_t open = operation.rfind(" (");
  const std::size_t colon = operation.rfind(':');
  if (open == operation.npos || colon == operation.npos || colon < open || !operation.ends_with(')')) return;
  const char* const end = operation.data() + operation.size() - 1;
  std::int64_t number = 0;
  if (const auto [stop, fault] = std::from_chars(operation.data() + colon + 1, end, number); fault != std::errc{} || stop != end)
    return;
  name = operation.substr(0, open);
  file = operation.substr(open + 2, colon - open - 2);
  line = number;
}

std::vector<int> snapshot_devices(const snapshot_scan& scan, const replay_state& at) {
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

snapshot_stream snapshot_streams::of(const replay_state& at, label name) {
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

std::int64_t snapshot_streams::number_of(std::string_view stream) {
  if (stream.empty() || stream == "default") return 0;
  const bool is_address = stream.starts_with("0x");
  const char* const end = stream.data() + stream.size();
  std::int64_t number = 0;
  const auto [stop, fault] = std::from_chars(stream.data() + (is_address ? 2 : 0), end, number, is_address ? 16 : 10);
  if (fault == std::errc{} && stop == end) return number;
  const auto counted = other_streams_.try_emplace(std::string{stream}, other_streams_.size() + 1);
  return static_cast<std::int64_t>(counted.first->second);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
