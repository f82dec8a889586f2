#pragma once

#include <memprof/detail/page_array.hpp>

#include <algorithm>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The greatest sum of bytes, at one moment, of those blocks of a segment that are also freed in it.
///
/// Which ones those are is only known when they are freed. So the time since the start of the segment is cut at the allocation of
/// each block that is still live, and each stretch keeps the greatest number of bytes that blocks freed since had live in it.
/// Freeing a block adds its bytes to every stretch from its own on, and merges its own stretch into the previous one. Stretches
/// are stored as differences, which makes both a single step.
class passing_peak {
 public:
  /// Call when a block is allocated. Returns its stretch, to pass to `end_block`; 0 if the system has no memory, and the block
  /// does not count.
  [[nodiscard]] std::uint32_t begin_block() noexcept {
    if (stretches_.empty() && !stretches_.push_back({})) return 0;
    std::uint32_t made = free_;
    if (made != 0) {
      free_ = stretches_[made].next;
    } else {
      made = static_cast<std::uint32_t>(stretches_.size());
      if (!stretches_.push_back({})) return 0;
    }
    stretches_[made] = {last_, 0, -level_};
    stretches_[last_].next = made;
    last_ = made;
    level_ = 0;
    return made;
  }

  /// Call when the block with that stretch is freed in the segment in which it was allocated.
  void end_block(std::uint32_t index, std::int64_t bytes) noexcept {
    const stretch ended = stretches_[index];
    const std::int64_t rise = ended.rise + bytes;
    stretch& before = stretches_[ended.previous];
    level_ += bytes;
    if (rise > 0) {
      before.rise += rise;
    } else if (index == last_) {
      level_ -= rise;
    } else {
      stretches_[ended.next].rise += rise;
    }
    before.next = ended.next;
    if (index == last_) {
      last_ = ended.previous;
    } else {
      stretches_[ended.next].previous = ended.previous;
    }
    stretches_[index].next = free_;
    free_ = index;
  }

  /// The peak so far. Costs a step for each block of the segment that is still live.
  [[nodiscard]] std::int64_t peak() const noexcept {
    std::int64_t most = 0;
    std::int64_t level = 0;
    for (std::uint32_t index = 0; index < stretches_.size(); index = stretches_[index].next) {
      level += stretches_[index].rise;
      most = std::max(most, level);
      if (index == last_) break;
    }
    return most;
  }

  /// Begins a new segment: stretches of the last one must no longer be passed to `end_block`.
  void clear() noexcept {
    stretches_.clear();
    last_ = free_ = 0;
    level_ = 0;
  }

 private:
  struct stretch {
    std::uint32_t previous;
    std::uint32_t next;
    std::int64_t rise;  ///< its level minus that of the previous stretch; for the first stretch, its level
  };

  page_array<stretch> stretches_;  ///< the first begins with the segment
  std::uint32_t last_ = 0;
  std::uint32_t free_ = 0;  ///< first unused entry; 0: none
  std::int64_t level_ = 0;  ///< of the last stretch
};

}  // namespace memprof::inline MEMPROF_ABI::detail
