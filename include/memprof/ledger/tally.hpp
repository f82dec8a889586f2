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

  bool operator==(const event_tally&) const = default;
};

template <>
inline constexpr name_list field_names<event_tally>{"count", "bytes"};

namespace detail {

/// An `event_tally` during counting.
struct tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  void add(std::uint64_t more) noexcept {
    ++count;
    const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - bytes);
    bytes += static_cast<std::int64_t>(std::min(more, room));  // a caller may pass any number
  }
};

[[nodiscard]] inline event_tally to_event_tally(const tally& counted) { return {counted.count, counted.bytes}; }

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
