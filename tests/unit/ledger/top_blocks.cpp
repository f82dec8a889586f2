#include <memprof/ledger/top_blocks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof_tests::ledger_top_blocks {

using memprof::detail::block;
using memprof::detail::top_blocks_of_segments;
using memprof::detail::top_blocks_view;

namespace {

/// A block identified by its address: equal sizes are frequent, and earlier births have smaller addresses.
block made_block(std::uint64_t ordinal, std::uint64_t bytes) {
  block made{};
  made.address = ordinal;
  made.bytes = bytes;
  made.born_thread = ordinal << block::thread_bits;
  return made;
}

std::vector<std::uint64_t> sorted_addresses(std::vector<block> blocks, std::uint32_t limit) {
  std::sort(blocks.begin(), blocks.end(), memprof::detail::is_larger);
  if (blocks.size() > limit) blocks.resize(limit);
  std::vector<std::uint64_t> addresses;
  for (const block& each : blocks) addresses.push_back(each.address);
  return addresses;
}

}  // namespace

TEST_CASE("top blocks: of what was offered the largest stay, and of equal ones the earliest") {
  std::vector<block> room(3);
  std::uint32_t count = 0;
  const top_blocks_view best{room.data(), count, 3};
  std::uint64_t ordinal = 0;
  for (const std::uint64_t bytes : {5U, 9U, 5U, 1U, 9U, 5U, 0U}) best.offer(made_block(++ordinal, bytes));
  CHECK(count == 3);
  CHECK(sorted_addresses(room, 3) == std::vector<std::uint64_t>{2, 5, 1});
}

TEST_CASE("top blocks: a limit of 0 keeps nothing") {
  std::uint32_t count = 0;
  const top_blocks_view best{nullptr, count, 0};
  best.offer(made_block(1, 100));
  CHECK(count == 0);
  top_blocks_of_segments segments{0};
  CHECK(segments.offer(0, 9, made_block(1, 100)));
  segments.collect(4, best);
  CHECK(count == 0);
}

TEST_CASE("top blocks: every segment's largest are those of the intervals that contain it") {
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
  };
  for (const std::uint32_t limit : {1U, 3U, 10U}) {
    for (const std::size_t segments : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}, std::size_t{201}}) {
      top_blocks_of_segments kept{limit};
      std::vector<std::vector<block>> expected(segments);
      for (std::uint64_t ordinal = 1; ordinal <= 600; ++ordinal) {
        const std::size_t first = below(segments);
        const std::size_t last = first + below(segments - first + 1);  // empty intervals among them
        const block offered = made_block(ordinal, below(50));
        REQUIRE(kept.offer(first, last, offered));
        for (std::size_t segment = first; segment < last; ++segment) expected[segment].push_back(offered);
      }
      std::size_t wrong = 0;
      for (std::size_t segment = 0; segment < segments; ++segment) {
        std::vector<block> room(limit);
        std::uint32_t count = 0;
        kept.collect(segment, {room.data(), count, limit});
        room.resize(count);
        wrong += sorted_addresses(room, limit) != sorted_addresses(expected[segment], limit);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("top blocks: memory is some 2 * limit blocks a segment, however many were offered") {
  constexpr std::size_t segments = 1000;
  constexpr std::uint32_t limit = 10;
  top_blocks_of_segments kept{limit};
  for (std::size_t first = 0; first < segments; ++first) REQUIRE(kept.offer(first, segments, made_block(first + 1, first)));
  const std::size_t bytes = kept.bytes();
  for (std::uint64_t ordinal = 1; ordinal < 20'000; ++ordinal) {
    REQUIRE(kept.offer(ordinal % segments, segments, made_block(segments + ordinal, ordinal)));
  }
  CHECK(kept.bytes() <= 2 * bytes);
  CHECK(kept.bytes() <= 2 * 2 * segments * limit * sizeof(block));  // growing arrays may be half empty
}

TEST_CASE("top blocks: segments that are taken out leave the others with their blocks") {
  std::uint64_t state = 11;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
  };
  constexpr std::uint32_t limit = 3;
  top_blocks_of_segments known{limit};
  std::vector<std::vector<block>> expected;
  std::vector<block> scratch(limit);
  std::uint64_t ordinal = 0;
  for (int round = 0; round < 200; ++round) {
    expected.resize(expected.size() + below(6));
    for (int offered = 0; offered < 5 && !expected.empty(); ++offered) {
      const std::size_t first = below(expected.size());
      const std::size_t last = first + 1 + below(expected.size() - first);
      const block candidate = made_block(++ordinal, below(50));
      REQUIRE(known.offer(first, last, candidate));
      for (std::size_t segment = first; segment < last; ++segment) expected[segment].push_back(candidate);
    }
    std::vector<char> stays(expected.size());
    for (char& each : stays) each = static_cast<char>(below(2));
    known.compact(
        expected.size(), [&](std::size_t segment) { return stays[segment] != 0; }, scratch.data());
    std::size_t kept = 0;
    for (std::size_t segment = 0; segment < stays.size(); ++segment) {
      if (stays[segment] != 0) expected[kept++] = expected[segment];
    }
    expected.resize(kept);
    for (std::size_t segment = 0; segment < expected.size(); ++segment) {
      std::vector<block> room(limit);
      std::uint32_t count = 0;
      known.collect(segment, {room.data(), count, limit});
      room.resize(count);
      REQUIRE(sorted_addresses(room, limit) == sorted_addresses(expected[segment], limit));
    }
  }
}

}  // namespace memprof_tests::ledger_top_blocks
