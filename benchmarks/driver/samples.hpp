#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// The results of a measurement, one per round.
using samples = std::vector<double>;

/// The median: the mean of the two middle ones if their number is even; 0 for none.
[[nodiscard]] inline double median(samples values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

[[nodiscard]] inline double least(const samples& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

[[nodiscard]] inline double greatest(const samples& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// Applies `operation(left, right)` round by round: compares adjacent measurements, so that slow drifts cancel out.
template <class Operation>
[[nodiscard]] samples combine(const samples& left, const samples& right, Operation operation) {
  samples result;
  for (std::size_t round = 0; round < std::min(left.size(), right.size()); ++round) {
    result.push_back(operation(left[round], right[round]));
  }
  return result;
}

[[nodiscard]] inline samples differences(const samples& left, const samples& right) {
  return combine(left, right, [](double with, double without) { return with - without; });
}

[[nodiscard]] inline samples ratios(const samples& left, const samples& right) {
  return combine(left, right, [](double with, double without) { return without == 0 ? 0 : with / without; });
}

}  // namespace bench
