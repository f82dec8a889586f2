#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <map>

namespace memprof::inline MEMPROF_ABI::detail {

/// How often values occurred, for their median, in bounded memory. Exact while there are at most `most` different values; with
/// more, values are rounded down to multiples of `unit()`, which becomes as large as it must.
class value_counts {
 public:
  static constexpr std::size_t most = 1024;

  /// One of the values that became equal by rounding: the one added with the least `key`.
  struct representative {
    std::int64_t value = 0;
    std::uint64_t key = 0;
  };

  /// `value` is at least 0. Takes time logarithmic in `most`, but for the roundings, of which there are at most 62.
  void add(std::int64_t value, std::uint64_t key);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t unit() const noexcept { return std::int64_t{1} << shift_; }
  [[nodiscard]] std::size_t different() const noexcept { return rows_.size(); }

  /// The lower of two. There must be a value.
  [[nodiscard]] representative median() const;

  /// The median of the values' distances from `from`; the upper of two, so that of two values neither stands out. There must be
  /// a value.
  [[nodiscard]] std::int64_t median_distance(std::int64_t from) const;

  /// How many values are further from `from` than that.
  [[nodiscard]] std::int64_t count_beyond(std::int64_t from, std::int64_t distance) const;

 private:
  struct row {
    std::int64_t count = 0;
    representative first;
  };

  void add_row(std::int64_t value, const row& added);
  void coarsen();

  std::map<std::int64_t, row> rows_;  ///< by rounded value
  std::int64_t count_ = 0;
  int shift_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
