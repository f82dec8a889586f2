#include <memprof/ledger/segment_history.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace memprof_tests::ledger_segment_history {

using memprof::detail::segment_history;
using memprof::extend::label;

namespace {

/// Adds a segment and drops what is too much.
void add(segment_history& history, label name) {
  const std::uint64_t begin = history.count() * 10;
  REQUIRE(history.add(name, begin, begin + 10));
  history.drop_surplus();
  if (history.is_sparse()) history.compact();
}

std::vector<std::uint64_t> kept(const segment_history& history) {
  std::vector<std::uint64_t> numbers;
  for (const memprof::detail::segment_mark& mark : history.marks()) {
    if (!mark.is_dropped) numbers.push_back(mark.number);
  }
  return numbers;
}

using numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("segment history: all are kept while there are few, then the newest and the first of each name") {
  segment_history history{8, 8};
  add(history, 1);
  add(history, 2);
  for (int step = 0; step < 3; ++step) add(history, 3), add(history, 4);
  CHECK(kept(history) == numbers{0, 1, 2, 3, 4, 5, 6, 7});
  for (int step = 0; step < 1000; ++step) add(history, 3), add(history, 4);
  CHECK(kept(history) == numbers{0, 1, 2, 3, 2004, 2005, 2006, 2007});
  CHECK(history.count() == 2008);
  CHECK(history.rows()[2].count == 1003);
  CHECK(history.rows()[2].first_number == 2);
  CHECK(history.rows()[2].last_number == 2006);
  CHECK(history.rows()[2].duration.sum() == 10030);
}

TEST_CASE("segment history: what holds an extreme stays before others, and what is pinned whatever comes") {
  segment_history history{8, 8};
  for (int index = 0; index < 8; ++index) add(history, 1);
  history.hold(3);
  history.pin(5);
  for (int index = 0; index < 100; ++index) add(history, 1);
  CHECK(kept(history) == numbers{0, 3, 5, 103, 104, 105, 106, 107});
  history.release(3);
  add(history, 1);
  CHECK(kept(history) == numbers{0, 5, 103, 104, 105, 106, 107, 108});
  history.unpin(5);
  add(history, 1);
  CHECK(kept(history) == numbers{0, 103, 104, 105, 106, 107, 108, 109});
}

TEST_CASE("segment history: names beyond the limit share a row") {
  segment_history history{8, 2};
  for (label name = 1; name <= 1000; ++name) add(history, name);
  REQUIRE(history.rows().size() == 3);
  CHECK(history.rows()[0].name == 1);
  CHECK_FALSE(history.rows()[1].stands_for_others);
  CHECK(history.rows()[2].stands_for_others);
  CHECK(history.rows()[2].count == 998);
  CHECK(history.rows()[2].duration.sum() == 9980);
  CHECK(history.kept() == 8);
  add(history, memprof::extend::other_names);
  CHECK(history.rows()[2].count == 999);
}

TEST_CASE("segment history: a step is a round of the repeating names") {
  segment_history history{64, 8};
  std::vector<std::uint64_t> steps;
  // Setup, two steps of three phases, one with a validation, one of two micro-batches.
  for (const label name : {9U, 1U, 2U, 3U, 1U, 2U, 3U, 1U, 2U, 3U, 4U, 1U, 2U, 1U, 2U, 3U}) {
    add(history, name);
    steps.push_back(history.step());
  }
  CHECK(steps == numbers{0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4});
}

TEST_CASE("segment history: its memory does not grow with segments or names") {
  segment_history history{64, 64};
  for (label index = 0; index < 1000; ++index) add(history, 1 + index % 100);
  const std::size_t bytes = history.bytes();
  for (label index = 0; index < 100'000; ++index) add(history, 1 + index);
  CHECK(history.bytes() == bytes);
}

}  // namespace memprof_tests::ledger_segment_history
