#include <memprof/config.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/frame_timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

frame_timeline::frame_timeline(std::size_t slots, std::uint64_t events, std::uint64_t stamps, std::size_t max_buckets)
    : stats_(slots), kept_(slots), max_buckets_(max_buckets) {
  // Buckets that end by event count are at most half as many as allowed, and so are those that end by time.
  const std::uint64_t half = max_buckets / 2 - 1;
  is_exact_ = events + 1 <= max_buckets;
  events_per_bucket_ = is_exact_ ? 1 : (events + half) / half;
  stamps_per_bucket_ = stamps / half + 1;
}

void frame_timeline::end_event(const moment& now, std::int64_t total, std::int64_t blocks, const of_allocator& held) {
  const bool is_new = buckets_.empty() || is_full(now);
  if (is_new) {
    close();
    buckets_.push_back({now, now, total, blocks, std::min(last_total_, total), last_held_.reserved, last_held_.active});
    events_in_bucket_ = 0;
  }
  bucket& open = buckets_.back();
  ++events_in_bucket_;
  before_last_ = {open.low, {open.reserved, open.active}, last_total_, last_held_};
  if (is_new || total > open.total) {
    open.at = now;
    open.total = total;
    open.blocks = blocks;
    ++epoch_;
  }
  open.low = std::min(open.low, total);
  open.reserved = std::max(open.reserved, held.reserved);
  open.active = std::max(open.active, held.active);
  last_ = now;
  last_total_ = total;
  last_blocks_ = blocks;
  last_held_ = held;
}

void frame_timeline::relabel(std::uint64_t born, std::size_t from, std::size_t to, std::int64_t bytes) {
  const bool is_in_moment = !buckets_.empty() && born <= buckets_.back().at.event;
  const auto move = is_in_moment ? &owner_stats::correct : &owner_stats::change;
  (stats_[from].*move)(epoch_, -bytes, -1);
  (stats_[to].*move)(epoch_, bytes, 1);
  const std::size_t closed = buckets_.empty() ? 0 : buckets_.size() - 1;
  const auto first = std::lower_bound(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(closed), born,
                                      [](const bucket& each, std::uint64_t event) { return each.at.event < event; });
  const auto index = static_cast<std::size_t>(first - buckets_.begin());
  if (index == closed) return;
  const auto add = [&](std::size_t slot, std::int64_t sign) {
    for (owned* const values : {&gains_[index * stats_.size() + slot], &kept_[slot]}) {
      values->bytes += sign * bytes;
      values->blocks += sign;
    }
  };
  add(from, -1);
  add(to, 1);
}

void frame_timeline::finish() {
  if (!buckets_.empty() && buckets_.back().at.event != last_.event) {
    buckets_.back().low = before_last_.low;
    buckets_.back().reserved = before_last_.greatest.reserved;
    buckets_.back().active = before_last_.greatest.active;
    close();
    ++epoch_;
    buckets_.push_back({last_, last_, last_total_, last_blocks_, std::min(before_last_.total, last_total_),
                        std::max(before_last_.held.reserved, last_held_.reserved),
                        std::max(before_last_.held.active, last_held_.active)});
  }
  close();
}

std::vector<frame_timeline::part> frame_timeline::parts() const {
  std::vector<part> rows;
  std::vector<owned> now(stats_.size());
  for (std::size_t index = 0; index < gains_.size(); ++index) {
    const owned& gain = gains_[index];
    if (gain.bytes == 0 && gain.blocks == 0) continue;
    const std::size_t slot = index % stats_.size();
    now[slot].bytes += gain.bytes;
    now[slot].blocks += gain.blocks;
    rows.push_back(
        {static_cast<std::uint32_t>(index / stats_.size()), static_cast<std::uint32_t>(slot), now[slot].bytes, now[slot].blocks});
  }
  return rows;
}

bool frame_timeline::is_full(const moment& now) const noexcept {
  if (is_exact_) return true;
  if (buckets_.size() + 1 >= max_buckets_) return false;  // one is for the end
  return events_in_bucket_ >= events_per_bucket_ || now.stamp - buckets_.back().begin.stamp >= stamps_per_bucket_;
}

void frame_timeline::close() {
  if (buckets_.empty()) return;
  for (std::size_t slot = 0; slot < stats_.size(); ++slot) {
    const owned at_moment{stats_[slot].bytes_at_peak(epoch_), stats_[slot].blocks_at_peak(epoch_)};
    gains_.push_back({at_moment.bytes - kept_[slot].bytes, at_moment.blocks - kept_[slot].blocks});
    kept_[slot] = at_moment;
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
