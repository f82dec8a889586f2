#include <memprof/trace/core_range.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <set>

namespace memprof_tests::trace_core_range {

using memprof::extend::address_on_cores;
using memprof::extend::core_range;

TEST_CASE("core range: both corners belong to it") {
  STATIC_CHECK(core_range{3, 4, 3, 4}.count() == 1);
  STATIC_CHECK(core_range{0, 0, 7, 7}.count() == 64);
  STATIC_CHECK(core_range{2, 1, 4, 1}.count() == 3);
  STATIC_CHECK(memprof::extend::any_core.count() == 65'536);
  STATIC_CHECK(core_range{2, 5, 2, 5}.is_valid());
  STATIC_CHECK_FALSE(core_range{2, 0, 1, 0}.is_valid());
  STATIC_CHECK_FALSE(core_range{0, 2, 0, 1}.is_valid());
}

TEST_CASE("core range: two overlap if they have a core in common") {
  const core_range middle{2, 2, 4, 4};
  CHECK(middle.overlaps({4, 4, 9, 9}));
  CHECK(middle.overlaps({0, 0, 2, 2}));
  CHECK(middle.overlaps({3, 0, 3, 9}));
  CHECK(middle.overlaps(memprof::extend::any_core));
  CHECK_FALSE(middle.overlaps({5, 2, 6, 4}));
  CHECK_FALSE(middle.overlaps({0, 2, 1, 4}));
  CHECK_FALSE(middle.overlaps({2, 5, 4, 6}));
  CHECK_FALSE(middle.overlaps({2, 0, 4, 1}));
}

TEST_CASE("core range: an event carries each corner as it is") {
  const core_range uneven{1, 20, 130, 255};
  STATIC_CHECK(core_range{1, 2, 3, 4}.packed() == 0x04030201);
  CHECK(core_range::unpacked(uneven.packed()) == uneven);
}

TEST_CASE("core range: one address on other cores is another block, and never an ordinary block's") {
  constexpr std::uint64_t address = 111'616;  // of a circular buffer in a captured program
  std::set<std::uint64_t> seen{address};
  for (std::uint8_t y = 0; y < 200; ++y) {
    for (std::uint8_t x = 0; x < 200; ++x) {
      const core_range cores{x, y, 255, 255};
      seen.insert(address_on_cores(address, cores));
      CHECK(address_on_cores(address_on_cores(address, cores), cores) == address);
    }
  }
  CHECK(seen.size() == 1 + 200 * 200);
  CHECK(address_on_cores(address, {1, 2, 3, 3}) == address_on_cores(address, {1, 2, 9, 9}));
  STATIC_CHECK(address_on_cores(0x1234, {1, 2, 3, 3}) == 0xFDFE000000001234);
}

}  // namespace memprof_tests::trace_core_range
