#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memprof::property {

using namespace extend;

/// What an allocator held of the device, from its definition: a list of pieces, summed up anew after each event.
class reserved_model {
 public:
  [[nodiscard]] bool reserve(std::uint64_t address, std::uint64_t bytes) {
    if (bytes == 0 || bytes > ~address) return false;
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - total()) return false;
    const std::uint64_t before = total();
    cut(address, address + bytes);
    note(replaced_, before - total());
    pieces_.push_back({address, address + bytes});
    is_used_ = true;
    segments_.back().peak = std::max(segments_.back().peak, static_cast<std::int64_t>(total()));
    return true;
  }

  void release(std::uint64_t address, std::uint64_t bytes) {
    is_used_ = true;
    const std::uint64_t before = total();
    if (bytes == 0) {
      const auto whole = std::find_if(pieces_.begin(), pieces_.end(), [&](const piece& held) { return held.begin == address; });
      if (whole == pieces_.end()) {
        ++unmatched_.count;
      } else {
        pieces_.erase(whole);
      }
      return;
    }
    cut(address, bytes > ~address ? ~std::uint64_t{0} : address + bytes);
    note(unmatched_, bytes - (before - total()));
  }

  void end_segment() {
    segments_.back().current = static_cast<std::int64_t>(total());
    segments_.push_back({segments_.back().current, 0});
  }

  [[nodiscard]] std::int64_t current() const { return static_cast<std::int64_t>(total()); }

  [[nodiscard]] reserved_profile build(std::size_t first_segment, std::size_t segment_count) const {
    reserved_profile result;
    if (!is_used_) return result;
    result.current = static_cast<std::int64_t>(total());
    result.segments.resize(first_segment);
    result.segments.append(segments_.begin(), segments_.end());
    result.segments.back().current = result.current;
    for (const reserved_usage& usage : result.segments) result.peak = std::max(result.peak, usage.peak);
    result.segments.resize(segment_count);
    result.unmatched_releases = unmatched_;
    result.replaced_reservations = replaced_;
    return result;
  }

 private:
  struct piece {
    std::uint64_t begin, end;
  };

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const piece& held : pieces_) sum += held.end - held.begin;
    return sum;
  }

  void cut(std::uint64_t begin, std::uint64_t end) {
    std::vector<piece> left;
    for (const piece& held : pieces_) {
      if (held.begin < std::min(begin, held.end)) left.push_back({held.begin, std::min(begin, held.end)});
      if (std::max(end, held.begin) < held.end) left.push_back({std::max(end, held.begin), held.end});
    }
    pieces_ = left;
  }

  static void note(event_tally& tally, std::uint64_t bytes) {
    if (bytes == 0) return;
    const auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - tally.bytes);
    ++tally.count;
    tally.bytes += static_cast<std::int64_t>(std::min(bytes, greatest));
  }

  std::vector<piece> pieces_;
  memprof::vector<reserved_usage> segments_{1};  // the last one is open
  event_tally unmatched_, replaced_;
  bool is_used_ = false;
};

}  // namespace memprof::property
