#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI {

/// A count and the bytes it concerns, for events that are unusual.
struct tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  void add(std::uint64_t more) noexcept {
    ++count;
    const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - bytes);
    bytes += static_cast<std::int64_t>(std::min(more, room));  // what a caller tells may be anything
  }
};

}  // namespace memprof::inline MEMPROF_ABI
