#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace memprof::property {

using namespace extend;

/// What streams had, from its definition: every value that a row ever took, and the greatest of them at the end.
class stream_model {
 public:
  void allocate(std::uint32_t name, std::int64_t bytes) {
    if (name == 0) return;
    row& changed = row_of(name);
    changed.live.push_back(next(changed.live.back(), bytes));
    ++changed.allocations;
  }
  void deallocate(std::uint32_t name, std::int64_t bytes) {
    if (name == 0 || bytes == 0) return;
    row& changed = row_of(name);
    changed.live.push_back(next(changed.live.back(), -bytes));
  }
  void change_reserved(std::uint32_t name, std::int64_t change) {
    if (name == 0 || change == 0) return;
    row& changed = row_of(name);
    changed.reserved.push_back(next(changed.reserved.back(), change));
  }

  /// `text_of(name)` is "stream\x1fpool", or only one of them.
  template <class TextOf>
  [[nodiscard]] memprof::vector<stream_usage> build(TextOf text_of) const {
    memprof::vector<stream_usage> result;
    for (const std::uint32_t name : order_) {
      const std::string text = text_of(name);
      const std::size_t end = std::min(text.find('\x1f'), text.size());
      stream_usage shown = usage_of(rows_.at(name));
      shown.stream = text.substr(0, end);
      if (end < text.size()) shown.pool = text.substr(end + 1);
      result.push_back(shown);
    }
    std::stable_sort(result.begin(), result.end(), [](const stream_usage& left, const stream_usage& right) {
      if (left.reserved_peak != right.reserved_peak) return left.reserved_peak > right.reserved_peak;
      return left.cumulative_peak > right.cumulative_peak;
    });
    return result;
  }

 private:
  struct row {
    std::vector<std::int64_t> live{0};
    std::vector<std::int64_t> reserved{0};
    std::int64_t allocations = 0;
  };

  /// A sequence has fewer names than there may be rows.
  [[nodiscard]] row& row_of(std::uint32_t name) {
    if (std::find(order_.begin(), order_.end(), name) == order_.end()) order_.push_back(name);
    return rows_[name];
  }

  [[nodiscard]] static std::int64_t next(std::int64_t value, std::int64_t change) {
    if (change < 0) return std::max(value + change, std::int64_t{0});
    return change > std::numeric_limits<std::int64_t>::max() - value ? std::numeric_limits<std::int64_t>::max() : value + change;
  }

  [[nodiscard]] static stream_usage usage_of(const row& shown) {
    stream_usage usage;
    usage.cumulative_peak = *std::max_element(shown.live.begin(), shown.live.end());
    usage.cumulative_current = shown.live.back();
    usage.allocation_count = shown.allocations;
    usage.reserved_peak = *std::max_element(shown.reserved.begin(), shown.reserved.end());
    usage.reserved_current = shown.reserved.back();
    return usage;
  }

  std::map<std::uint32_t, row> rows_;
  std::vector<std::uint32_t> order_;
};

}  // namespace memprof::property
