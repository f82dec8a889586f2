#pragma once

#include <memprof/detail/page_array.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_segments;

/// Live bytes over time in a bounded number of points, each covering the same number of events.
///
/// When the points are used up, neighbours are merged, so that each covers twice as many events and no maximum is lost.
class timeline {
 public:
  /// A stretch of consecutive events.
  struct point {
    std::uint64_t stamp;   ///< of its first event
    std::int64_t peak;     ///< greatest value after one of its events
    std::int64_t current;  ///< value after the last one
  };

  /// At most `max_points` points including the open one; at least 2.
  explicit timeline(std::uint32_t max_points) noexcept : max_points_(max_points < 2 ? 2 : max_points & ~1U) {}

  /// Live bytes grew to `live`; followed by `add` for the same event.
  void raise(std::int64_t live) noexcept {
    open_.peak = live > open_.peak ? live : open_.peak;  // always stored: whether it grows is unpredictable
  }

  /// The live bytes after one event.
  [[gnu::always_inline]] void add(std::int64_t live, std::uint64_t stamp) noexcept {
    if (--remaining_ == 0) [[unlikely]]
      turn(live, stamp);
  }

  /// Number of events that each finished point covers.
  [[nodiscard]] std::uint64_t events_per_point() const noexcept { return width_; }
  [[nodiscard]] const page_array<point>& finished() const noexcept { return points_; }
  /// The point that is not full yet; `has_open` says whether it contains any event.
  [[nodiscard]] const point& open() const noexcept { return open_; }
  [[nodiscard]] bool has_open() const noexcept { return has_open_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return points_.bytes(); }

 private:
  friend struct saved_segments;

  /// Handles a point's first event, which begins it, or its last, which ends it: `remaining_` counts down to either, so that
  /// events in between need no test.
  [[gnu::noinline]] void turn(std::int64_t live, std::uint64_t stamp) noexcept {
    if (!has_open_) {
      open_ = {stamp, live, live};  // values passed to `raise` before belong to no point
      has_open_ = true;
      remaining_ = width_ - 1;
      if (remaining_ != 0) return;
    }
    open_.current = live;
    // Without memory for another point, this one continues: coarser, but still no maximum is lost.
    remaining_ = width_ > 1 ? width_ - 1 : 1;
    if (!points_.push_back(open_)) return;
    if (points_.size() == max_points_) join_neighbours();
    has_open_ = false;
    remaining_ = 1;
  }

  void join_neighbours() noexcept {
    const std::size_t half = points_.size() / 2;
    for (std::size_t index = 0; index < half; ++index) {
      const point& left = points_[2 * index];
      const point& right = points_[2 * index + 1];
      points_[index] = {left.stamp, left.peak > right.peak ? left.peak : right.peak, right.current};
    }
    while (points_.size() > half) points_.pop_back();
    width_ *= 2;
  }

  std::uint64_t remaining_ = 1;  ///< events until the open point is full, or 1 if there is none
  std::uint64_t width_ = 1;
  bool has_open_ = false;
  std::uint32_t max_points_;
  point open_{0, 0, 0};
  page_array<point> points_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
