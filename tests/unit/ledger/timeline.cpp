#include <memprof/ledger/timeline.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof_tests::ledger_timeline {

using memprof::detail::timeline;

namespace {

/// Feeds values of live bytes; the n-th event, from 1, has stamp 10 * n.
void feed(timeline& line, const std::vector<std::int64_t>& values) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    line.raise(values[index]);
    line.add(values[index], 10 * (index + 1));
  }
}

/// The greatest value of the line, the point that is still open included.
std::int64_t greatest(const timeline& line) {
  std::int64_t peak = line.has_open() ? line.open().peak : 0;
  for (const timeline::point& point : line.finished()) peak = std::max(peak, point.peak);
  return peak;
}

}  // namespace

TEST_CASE("timeline: a point has the time of its first event, the greatest value and the last") {
  timeline line{4};
  feed(line, {5, 3, 8});
  REQUIRE(line.finished().size() == 3);
  CHECK(line.events_per_point() == 1);
  CHECK_FALSE(line.has_open());
  CHECK(line.finished()[0].stamp == 10);
  CHECK(line.finished()[1].stamp == 20);
  CHECK(line.finished()[1].peak == 3);  // not the 5 before it
  CHECK(line.finished()[1].current == 3);
  CHECK(line.finished()[2].peak == 8);
}

TEST_CASE("timeline: when the points are used up, neighbours are joined and keep the greater peak and the later value") {
  timeline line{4};
  feed(line, {1, 9, 2, 7});
  CHECK(line.events_per_point() == 2);
  REQUIRE(line.finished().size() == 2);
  CHECK(line.finished()[0].peak == 9);
  CHECK(line.finished()[0].current == 9);
  CHECK(line.finished()[0].stamp == 10);
  CHECK(line.finished()[1].stamp == 30);
  CHECK(line.finished()[1].peak == 7);
  CHECK(line.finished()[1].current == 7);
}

TEST_CASE("timeline: the open point has the time of its first event, and what only falls has its first value as peak") {
  timeline line{2};
  feed(line, {8, 9, 7, 6, 4, 3});
  CHECK(line.has_open());
  REQUIRE(line.finished().size() == 1);
  CHECK(line.events_per_point() == 4);
  CHECK(line.finished()[0].peak == 9);
  CHECK(line.finished()[0].current == 6);
  CHECK(line.open().stamp == 50);
  CHECK(line.open().peak == 4);
}

TEST_CASE("timeline: a maximum is never lost and the points stay bounded, whatever the number of events") {
  for (const std::uint32_t max_points : {0U, 1U, 2U, 3U, 7U, 4096U}) {
    const std::size_t bound = max_points < 2 ? 2 : max_points;
    for (std::size_t events = 1; events <= 130; ++events) {
      for (const std::size_t at : {std::size_t{0}, events / 3, events / 2, events - 1}) {
        std::vector<std::int64_t> values(events, 1);
        values[at] = 100;
        timeline line{max_points};
        feed(line, values);
        CHECK(greatest(line) == 100);
        CHECK(line.finished().size() + (line.has_open() ? 1U : 0U) <= bound);
        CHECK(line.finished().size() == events / line.events_per_point());
        CHECK(line.has_open() == (events % line.events_per_point() != 0));
      }
    }
  }
}

TEST_CASE("timeline: millions of events fit the same memory") {
  timeline line{4096};
  std::size_t bytes = 0;
  for (std::uint64_t event = 1; event <= 3'000'000; ++event) {
    const auto live = static_cast<std::int64_t>(event % 1000);
    line.raise(live);
    line.add(live, event);
    if (event == 100'000) bytes = line.bytes();
  }
  CHECK(line.bytes() == bytes);
  CHECK(line.events_per_point() == 1024);
  CHECK(line.finished().size() == 3'000'000 / 1024);
  CHECK(greatest(line) == 999);
}

}  // namespace memprof_tests::ledger_timeline
