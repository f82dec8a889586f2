#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct saved_segments;
}

namespace extend {

/// Maps event stamps to time, by linear interpolation between readings of both clocks.
///
/// The stamp clock drifts against the system clock by parts per million, which over days adds up to seconds; readings a second
/// apart keep the error below a microsecond. At most `max_kept` are kept: when there are more, every second one is dropped, and
/// from then on they are kept twice as far apart.
class clock_readings {
 public:
  static constexpr std::size_t max_kept = 4096;

  /// `begin`: the stamp at which the capture began.
  explicit clock_readings(std::uint64_t begin = 0) noexcept : begin_(begin) {}

  /// Adds a reading: `ns` nanoseconds after the capture began, the stamp clock showed `stamp`. Ignores a reading that is not
  /// later than the last one or precedes the beginning.
  void add(std::uint64_t stamp, std::int64_t ns) noexcept {
    const std::size_t count = kept_.size();
    if (ns < 0) return;
    if (count != 0 && (stamp <= kept_[count - 1].stamp || ns < kept_[count - 1].ns)) return;
    // The last reading stands for the present and is replaced until it is far enough from the one before it.
    if (count >= 2 && ns - kept_[count - 2].ns < least_distance_ns_) {
      kept_[count - 1] = {stamp, ns};
      return;
    }
    if (count == max_kept) thin_out();
    (void)kept_.push_back({stamp, ns});  // without memory for it, the last line is extended
  }

  /// Nanoseconds since the capture began; 0 before the first reading. With fewer than two readings, a tick of the stamp clock
  /// counts as a nanosecond; without any, from the begin on.
  [[nodiscard]] std::int64_t to_ns(std::uint64_t stamp) const noexcept {
    constexpr wide most = INT64_MAX;
    const reading first = kept_.empty() ? reading{begin_, 0} : kept_[0];
    if (stamp <= first.stamp) return first.ns;
    if (kept_.size() <= 1)
      return static_cast<std::int64_t>(std::min<wide>(first.ns + static_cast<wide>(stamp - first.stamp), most));
    const std::size_t after =
        detail::partition_point(kept_.size(), [&](std::size_t index) { return kept_[index].stamp < stamp; });
    const std::size_t right = after < kept_.size() ? after : kept_.size() - 1;
    const reading& left = kept_[right - 1];
    const auto width = static_cast<wide>(kept_[right].stamp - left.stamp);
    const auto rise = static_cast<wide>(kept_[right].ns - left.ns);
    const wide ns = left.ns + static_cast<wide>(stamp - left.stamp) * rise / width;
    return static_cast<std::int64_t>(std::min<wide>(ns, most));
  }

  /// Whether there are no readings.
  [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }
  /// Time of the last reading, in nanoseconds since the capture began.
  [[nodiscard]] std::int64_t last_ns() const noexcept { return kept_.empty() ? 0 : kept_[kept_.size() - 1].ns; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.bytes(); }

 private:
  friend struct detail::saved_segments;

  __extension__ using wide = __int128;

  struct reading {
    std::uint64_t stamp;
    std::int64_t ns;
  };
  void thin_out() noexcept {
    for (std::size_t index = 1; 2 * index < kept_.size(); ++index) kept_[index] = kept_[2 * index];
    (void)kept_.resize(kept_.size() / 2);
    least_distance_ns_ = kept_.back().ns / static_cast<std::int64_t>(kept_.size());
  }

  std::uint64_t begin_;
  detail::page_array<reading> kept_;
  std::int64_t least_distance_ns_ = 0;  ///< between kept readings
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
