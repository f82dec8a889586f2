#pragma once

#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// A rectangle of cores from its four bytes: left, top, right, bottom.
struct core_rectangle {
  std::uint32_t packed;

  [[nodiscard]] std::uint32_t left() const { return packed % 256; }
  [[nodiscard]] std::uint32_t top() const { return packed / 256 % 256; }
  [[nodiscard]] std::uint32_t right() const { return packed / 65'536 % 256; }
  [[nodiscard]] std::uint32_t bottom() const { return packed / 16'777'216; }
  [[nodiscard]] bool is_possible() const { return left() <= right() && top() <= bottom(); }
  [[nodiscard]] std::uint64_t size() const { return std::uint64_t{right() - left() + 1} * (bottom() - top() + 1); }
  [[nodiscard]] bool has(std::uint32_t x, std::uint32_t y) const {
    return x >= left() && x <= right() && y >= top() && y <= bottom();
  }
  [[nodiscard]] std::string text() const {
    return "[" + std::to_string(left()) + "-" + std::to_string(top()) + " - " + std::to_string(right()) + "-" +
           std::to_string(bottom()) + "]";
  }
};

/// What lies on each core, from the definition: a list of blocks, added up for every core after every event.
class core_model {
 public:
  struct block {
    std::int64_t bytes;  // on each core
    core_rectangle cores;
    bool is_circular;
    std::size_t ordinal;  // of the whole block in the space
  };

  void allocate(std::uint64_t address, const block& made) {
    const core_rectangle cores = made.cores;
    blocks_.erase(address);
    blocks_[address] = made;
    ranges_.insert(cores.packed);
    look();
  }
  void deallocate(std::uint64_t address) { blocks_.erase(address); }
  std::vector<std::uint64_t> deallocate_circular_buffers(core_rectangle cores) {
    std::vector<std::uint64_t> ended;
    for (const auto& [address, live] : blocks_) {
      const auto overlap = [](std::uint32_t first, std::uint32_t last, std::uint32_t other_first, std::uint32_t other_last) {
        return std::max(first, other_first) <= std::min(last, other_last);
      };
      if (live.is_circular && overlap(cores.left(), cores.right(), live.cores.left(), live.cores.right()) &&
          overlap(cores.top(), cores.bottom(), live.cores.top(), live.cores.bottom())) {
        ended.push_back(address);
      }
    }
    for (const std::uint64_t address : ended) blocks_.erase(address);
    return ended;
  }
  void end_segment() {
    segments_.emplace_back();
    look();
  }

  [[nodiscard]] core_profile build(std::size_t first_segment, std::size_t segment_count) const {
    core_profile result;
    if (ranges_.empty()) return result;
    result.segments.resize(segment_count);
    std::map<core, usage> overall;
    for (std::size_t own = 0; own < segments_.size(); ++own) {
      // The open segment of a capture that has ended is none of the profile's.
      if (first_segment + own < segment_count) result.segments[first_segment + own] = greatest(segments_[own], {0xFFFF0000});
      for (const auto& [where, peak] : segments_[own]) overall[where].raise_to(peak);
    }
    result.peaks = greatest(overall, {0xFFFF0000});
    std::vector<std::tuple<std::int64_t, std::uint32_t, core_range_peaks>> rows;
    for (const std::uint32_t packed : ranges_) {
      const core_peaks peaks = greatest(overall, {packed});
      rows.push_back({-peaks.total, packed, {core_rectangle{packed}.text(), peaks}});
    }
    std::sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
      return std::pair{std::get<0>(left), std::get<1>(left)} < std::pair{std::get<0>(right), std::get<1>(right)};
    });
    for (const auto& row : rows) result.ranges.push_back(std::get<2>(row));
    return result;
  }

  /// The blocks on a core, by address.
  [[nodiscard]] std::map<std::uint64_t, block> blocks_on(std::uint32_t x, std::uint32_t y) const {
    std::map<std::uint64_t, block> found;
    for (const auto& [address, live] : blocks_) {
      if (live.cores.has(x, y)) found[address] = live;
    }
    return found;
  }

 private:
  using core = std::pair<std::uint32_t, std::uint32_t>;  // row, column: in the order of the rows
  struct usage {
    std::int64_t circular = 0, other = 0, total = 0;
    void raise_to(const usage& seen) {
      circular = std::max(circular, seen.circular);
      other = std::max(other, seen.other);
      total = std::max(total, seen.total);
    }
  };

  /// Adds up what is live on every core that any block ever was on.
  void look() {
    std::map<core, usage> now;
    for (const auto& [address, live] : blocks_) {
      for (std::uint32_t y = live.cores.top(); y <= live.cores.bottom(); ++y) {
        for (std::uint32_t x = live.cores.left(); x <= live.cores.right(); ++x) {
          usage& here = now[{y, x}];
          (live.is_circular ? here.circular : here.other) += live.bytes;
          here.total += live.bytes;
        }
      }
    }
    for (const auto& [where, seen] : now) segments_.back()[where].raise_to(seen);
  }

  [[nodiscard]] static core_peaks greatest(const std::map<core, usage>& peaks, core_rectangle among) {
    usage most;
    std::string busiest;
    for (const auto& [where, peak] : peaks) {
      if (!among.has(where.second, where.first)) continue;
      if (peak.total > most.total) busiest = std::to_string(where.second) + "-" + std::to_string(where.first);
      most.raise_to(peak);
    }
    return {most.circular, most.other, most.total, busiest};
  }

  std::map<std::uint64_t, block> blocks_;  // by address
  std::set<std::uint32_t> ranges_;
  std::vector<std::map<core, usage>> segments_{{}};  // the last one is open
};

}  // namespace memprof::property
