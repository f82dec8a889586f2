#pragma once

#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// What streams used, from its definition: every value that the active bytes ever took, by segment, and a list of the freed
/// blocks that wait for streams.
class active_model {
 public:
  /// `replaced` bytes were live at the address.
  void allocate(std::uint64_t address, std::int64_t bytes, std::int64_t replaced) {
    is_used_ = true;
    set(current() - std::min(replaced, current()));
    end_unfinished(address);
    set(current() + bytes);
  }
  /// A free that streams do not wait for.
  void deallocate(std::int64_t bytes) { set(current() - std::min(bytes, current())); }
  /// One that they do; `is_live` says whether there is a block at the address.
  void request(std::uint64_t address, std::int64_t bytes, bool is_live) {
    is_used_ = true;
    if (!is_live) return;
    end_unfinished(address);
    waiting_.emplace_back(address, bytes);
  }
  void complete(std::uint64_t address, std::uint64_t bytes) {
    is_used_ = true;
    if (!end(address)) note(unmatched_, bytes);
  }
  void end_segment() { values_.push_back({current()}); }

  [[nodiscard]] active_profile build(std::size_t first_segment, std::size_t segment_count) const {
    active_profile result;
    if (!is_used_) return result;
    result.current = current();
    result.segments.resize(first_segment);
    for (const std::vector<std::int64_t>& values : values_) {
      result.segments.push_back({*std::max_element(values.begin(), values.end()), values.back()});
      result.peak = std::max(result.peak, result.segments.back().peak);
    }
    result.segments.resize(segment_count);
    result.unmatched_completions = unmatched_;
    result.missing_completions = missing_;
    return result;
  }

 private:
  [[nodiscard]] std::int64_t current() const { return values_.back().back(); }
  void set(std::int64_t value) { values_.back().push_back(value); }

  bool end(std::uint64_t address) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& each) { return each.first == address; });
    if (found == waiting_.end()) return false;
    deallocate(found->second);
    waiting_.erase(found);
    return true;
  }
  void end_unfinished(std::uint64_t address) {
    for (const auto& [where, bytes] : waiting_) {
      if (where == address) note(missing_, static_cast<std::uint64_t>(bytes));
    }
    end(address);
  }

  static void note(event_tally& tally, std::uint64_t bytes) {
    const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - tally.bytes);
    ++tally.count;
    tally.bytes += static_cast<std::int64_t>(std::min(bytes, room));
  }

  std::vector<std::vector<std::int64_t>> values_{{0}};           // by segment; the last one is open
  std::vector<std::pair<std::uint64_t, std::int64_t>> waiting_;  // address and bytes
  event_tally unmatched_, missing_;
  bool is_used_ = false;
};

}  // namespace memprof::property
