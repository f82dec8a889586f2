#pragma once

#include <cstdint>

namespace memprof {

/// A straight line from stamps to nanoseconds since a capture began.
struct time_scale {
  std::uint64_t first_stamp = 0;
  double ns_per_stamp = 1.0;

  [[nodiscard]] std::int64_t to_ns(std::uint64_t stamp) const noexcept {
    return stamp <= first_stamp ? 0 : static_cast<std::int64_t>(static_cast<double>(stamp - first_stamp) * ns_per_stamp);
  }
};

}  // namespace memprof
