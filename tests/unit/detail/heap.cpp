#include <memprof/detail/heap.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof_tests::detail_heap {

namespace {

/// Different numbers in an order that looks random: 7919 is prime, so it has no factor in common with any count below.
std::vector<std::uint64_t> shuffled(std::size_t count) {
  std::vector<std::uint64_t> values;
  for (std::size_t index = 0; index < count; ++index) values.push_back(index * 7919 % count);
  return values;
}

constexpr auto is_less = [](std::uint64_t left, std::uint64_t right) { return left < right; };
constexpr auto is_greater = [](std::uint64_t left, std::uint64_t right) { return left > right; };

}  // namespace

TEST_CASE("heap: rows are sorted, whatever their number and order") {
  for (std::size_t count = 0; count <= 200; ++count) {
    for (std::vector<std::uint64_t> values : {shuffled(count), std::vector<std::uint64_t>(count, 3)}) {
      std::vector<std::uint64_t> expected = values;
      std::sort(expected.begin(), expected.end());
      memprof::detail::sort_rows(values.data(), values.size(), is_less);
      REQUIRE(values == expected);
      memprof::detail::sort_rows(values.data(), values.size(), is_greater);
      std::reverse(expected.begin(), expected.end());
      REQUIRE(values == expected);
    }
  }
}

TEST_CASE("heap: the last in the order is on top, after every addition and every replacement of the top") {
  const std::vector<std::uint64_t> values = shuffled(300);
  std::vector<std::uint64_t> heap(values.size());
  std::uint64_t greatest = 0;
  for (std::size_t count = 0; count < values.size(); ++count) {
    heap[count] = values[count];
    memprof::detail::push_into_heap(heap.data(), count, is_less);
    greatest = std::max(greatest, values[count]);
    REQUIRE(heap[0] == greatest);
  }
  for (std::uint64_t expected = values.size() - 1; expected > 0; --expected) {
    REQUIRE(heap[0] == expected);
    heap[0] = 0;  // comes before everything else
    memprof::detail::sift_into_heap(heap.data(), heap.size(), 0, is_less);
  }
}

}  // namespace memprof_tests::detail_heap
