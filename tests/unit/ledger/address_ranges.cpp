#include <memprof/ledger/address_ranges.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace memprof_tests::ledger_address_ranges {

namespace {

using memprof::detail::address_range;
using memprof::detail::address_ranges;

using pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

pairs contents(const address_ranges& ranges) {
  pairs found;
  ranges.for_each([&](const address_range& each) { found.emplace_back(each.begin, each.end); });
  return found;
}

/// The same from its definition, in a map of ends by begins.
class model {
 public:
  void insert(std::uint64_t begin, std::uint64_t end) { ends_[begin] = end; }
  std::uint64_t erase(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t erased = 0;
    auto each = ends_.upper_bound(begin);
    if (each != ends_.begin()) --each;
    while (each != ends_.end() && each->first < end) {
      const auto [from, to] = *each;
      if (to <= begin) {
        ++each;
        continue;
      }
      erased += std::min(to, end) - std::max(from, begin);
      each = ends_.erase(each);
      if (from < begin) ends_[from] = begin;
      if (to > end) ends_[end] = to;
    }
    return erased;
  }
  std::uint64_t bytes_from(std::uint64_t address) const {
    const auto found = ends_.find(address);
    return found == ends_.end() ? 0 : found->second - address;
  }
  pairs contents() const { return {ends_.begin(), ends_.end()}; }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;
};

}  // namespace

TEST_CASE("address ranges: as a map, whatever is inserted and erased") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  const std::uint64_t most_at_once = GENERATE(10U, 100'000U);  // erased
  CAPTURE(seed, most_at_once);
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  address_ranges ranges;
  model expected;
  std::uint64_t wrong = 0;
  for (int step = 0; step < 30'000; ++step) {
    REQUIRE(ranges.make_room());
    const std::uint64_t begin = below(1'000'000);
    const bool is_reserved = below(100) < 80;
    const std::uint64_t end = begin + 1 + below(is_reserved ? 40 : most_at_once);
    wrong += ranges.erase(begin, end) != expected.erase(begin, end);
    if (is_reserved) {
      ranges.insert({begin, end});
      expected.insert(begin, end);
    }
    const std::uint64_t asked = below(2) == 0 ? begin : below(1'000'000);
    wrong += ranges.bytes_from(asked) != expected.bytes_from(asked);
    if (step % 1000 == 0) wrong += contents(ranges) != expected.contents();
  }
  CHECK(wrong == 0);
  CHECK(contents(ranges) == expected.contents());
  CHECK(ranges.size() == expected.contents().size());
  REQUIRE(ranges.make_room());
  CHECK(ranges.erase(0, ~std::uint64_t{0}) == expected.erase(0, ~std::uint64_t{0}));
  CHECK(ranges.size() == 0);
}

TEST_CASE("address ranges: rising, falling and scattered ones take a few times their size, and what is erased is used again") {
  constexpr std::uint64_t count = 100'000;
  const int order = GENERATE(0, 1, 2);
  CAPTURE(order);
  address_ranges ranges;
  const auto fill = [&] {
    for (std::uint64_t index = 0; index < count; ++index) {
      // 77,773 has no factor in common with 100,000.
      const std::uint64_t address = 64 * (order == 0 ? index : order == 1 ? count - index : index * 77'773 % count);
      REQUIRE(ranges.make_room());
      ranges.insert({address, address + 32});
    }
  };
  fill();
  CHECK(ranges.size() == count);
  const std::size_t bytes = ranges.bytes();
  CHECK(bytes < 5 * count * sizeof(address_range));  // chunks half full, and pages that are doubled
  for (int round = 0; round < 10; ++round) {
    REQUIRE(ranges.make_room());
    CHECK(ranges.erase(0, 64 * (count + 1)) == 32 * count);
    CHECK(ranges.size() == 0);
    fill();
  }
  CHECK(ranges.bytes() <= 2 * bytes);
}

}  // namespace memprof_tests::ledger_address_ranges
