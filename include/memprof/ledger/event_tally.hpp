#pragma once

#include <memprof/trace/field_names.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// How often something happened, and how many bytes it involved.
struct event_tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  /// Counts an event about any number of bytes; their sum stops at the greatest value.
  void add(std::uint64_t more) noexcept {
    ++count;
    const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - bytes);
    bytes += static_cast<std::int64_t>(std::min(more, room));
  }

  bool operator==(const event_tally&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<event_tally>{"count", "bytes"};

}  // namespace memprof::inline MEMPROF_ABI
