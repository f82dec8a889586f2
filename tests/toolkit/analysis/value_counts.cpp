#include <memprof/toolkit/analysis/value_counts.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

namespace memprof_tests::analysis_value_counts {

using memprof::detail::value_counts;

namespace {

value_counts counted(const std::vector<std::int64_t>& values) {
  value_counts counts;
  for (std::size_t index = 0; index < values.size(); ++index) counts.add(values[index], index);
  return counts;
}

}  // namespace

TEST_CASE("value counts: the median is the lower of two, that of the distances the upper") {
  const value_counts counts = counted({24, 20, 21, 20});
  CHECK(counts.median().value == 20);
  CHECK(counts.median().key == 1);         // the first of both
  CHECK(counts.median_distance(20) == 1);  // 0 0 1 4
  CHECK(counts.count_beyond(20, 1) == 1);
  CHECK(counted({7}).median().value == 7);
  CHECK(counted({7}).median_distance(7) == 0);
  CHECK(counted({5, 9}).median_distance(5) == 4);
}

TEST_CASE("value counts: with few different values everything is exact, however many there are") {
  std::mt19937_64 random{35};
  std::vector<std::int64_t> values;
  for (int count = 0; count < 20'001; ++count) values.push_back(static_cast<std::int64_t>(random() % value_counts::most) << 40);
  const value_counts counts = counted(values);
  CHECK(counts.unit() == 1);
  std::sort(values.begin(), values.end());
  const std::int64_t median = values[10'000];
  CHECK(counts.median().value == median);
  std::vector<std::int64_t> distances;
  for (const std::int64_t value : values) distances.push_back(std::abs(value - median));
  std::sort(distances.begin(), distances.end());
  CHECK(counts.median_distance(median) == distances[10'000]);
}

TEST_CASE("value counts: with many different values the median is one of them, closer than the unit") {
  std::mt19937_64 random{36};
  value_counts counts;
  std::vector<std::int64_t> values;
  for (std::uint64_t count = 0; count < 50'001; ++count) {
    values.push_back(20'000'000'000 + static_cast<std::int64_t>(random() % 100'000'000));
    counts.add(values.back(), count);
    REQUIRE(counts.different() <= value_counts::most);
  }
  // The values span 10^8, which 1,024 units cover: a unit is less than 2^18.
  CHECK(counts.unit() > 1);
  CHECK(counts.unit() <= std::int64_t{1} << 17);
  const value_counts::representative median = counts.median();
  CHECK(values[median.key] == median.value);
  std::sort(values.begin(), values.end());
  CHECK(std::abs(median.value - values[25'000]) < counts.unit());
  CHECK(counts.count() == 50'001);
}

TEST_CASE("value counts: one value far away does not make the others coarse") {
  value_counts counts;
  counts.add(std::int64_t{1} << 60, 0);
  for (std::uint64_t index = 1; index <= 3000; ++index) counts.add(static_cast<std::int64_t>(index), index);
  CHECK(counts.unit() <= 4);  // 3,000 values in 1,023 rows
  CHECK(std::abs(counts.median().value - 1501) < counts.unit());
}

}  // namespace memprof_tests::analysis_value_counts
