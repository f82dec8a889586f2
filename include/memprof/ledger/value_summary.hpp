#pragma once

#include <memprof/ledger/running_summary.hpp>
#include <memprof/trace/field_names.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// One number over several segments, in chronological order. The mean is `sum / count`, where `count` is the number of those
/// segments.
struct value_summary {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::int64_t sum = 0;                ///< at most 2^63-1
  std::int64_t least_segment = -1;     ///< `segment::number` of the first with `least`
  std::int64_t greatest_segment = -1;  ///< the same for `greatest`

  bool operator==(const value_summary&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<value_summary>{"first", "last",          "least",           "greatest",
                                                                      "sum",   "least_segment", "greatest_segment"};

template <>
inline constexpr auto detail::signed_fields<value_summary> = detail::field_names<value_summary>;

namespace detail {

[[nodiscard]] inline value_summary to_value_summary(const running_summary& of) {
  return {of.first,
          of.last,
          of.least,
          of.greatest,
          of.sum(),
          static_cast<std::int64_t>(of.least_segment),
          static_cast<std::int64_t>(of.greatest_segment)};
}

/// The summary of a single value.
[[nodiscard]] inline value_summary summary_of(std::int64_t value, std::int64_t number) {
  return {value, value, value, value, value, number, number};
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
