#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/saved_state.hpp>
#include <memprof/profile/build.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace memprof_tests::ledger_checkpoints {

using namespace memprof;
using namespace memprof::extend;

namespace {

constexpr std::uint32_t ring = 1;

void record(ledger& events, const event& driver) { events.apply(&driver, &driver + 1, ring); }

/// What is live, and what was at each checkpoint, by brute force.
struct live_model {
  std::map<std::uint64_t, std::uint64_t> live[2];
  std::vector<std::int64_t> bytes;
  std::vector<std::vector<std::uint64_t>> largest;  ///< of both spaces, greatest first

  void remember() {
    std::int64_t sum = 0;
    for (const auto& space : live) {
      std::vector<std::uint64_t> sizes;
      for (const auto& [address, size] : space) {
        sum += static_cast<std::int64_t>(size);
        sizes.push_back(size);
      }
      std::sort(sizes.rbegin(), sizes.rend());
      if (sizes.size() > 10) sizes.resize(10);
      largest.push_back(sizes);
    }
    bytes.push_back(sum);
  }
};

std::int64_t widest_gap(const detail::checkpoint_history& kept) {
  std::int64_t widest = 0;
  for (std::size_t index = 1; index < kept.marks().size(); ++index) {
    const auto gap = static_cast<std::int64_t>(kept.marks()[index].number - kept.marks()[index - 1].number);
    REQUIRE(gap > 0);
    widest = std::max(widest, gap);
  }
  return widest;
}

}  // namespace

TEST_CASE("checkpoints: of a long run those that are kept are spread evenly, with the newest and the extremes") {
  constexpr std::uint64_t count = 10'000;
  enum class course { sawtooth, growing, shrinking };
  for (const course which : {course::sawtooth, course::growing, course::shrinking}) {
    ledger events;
    const auto bytes_at = [&](std::uint64_t number) -> std::uint64_t {
      if (number == 4321) return which == course::sawtooth ? 1'000'000 : 10'000 + number;
      if (which == course::sawtooth) return 1000 + number % 97;
      return which == course::growing ? 10'000 + number : 30'000 - number;
    };
    for (std::uint64_t number = 0; number < count; ++number) {
      record(events, {number + 1, 0x1000, bytes_at(number), 0, event_kind::allocate, 0, 0});
      record(events, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
      record(events, {0, 0x1000, 0, 0, event_kind::deallocate, 0, 0});
      REQUIRE(events.checkpoints().marks().size() <= detail::checkpoint_history::max_kept);
      REQUIRE(events.checkpoints().marks()[events.checkpoints().marks().size() - 1].number == number);
    }
    const detail::checkpoint_history& kept = events.checkpoints();
    CHECK(kept.count() == count);
    CHECK(kept.marks().size() >= detail::checkpoint_history::max_kept / 4);
    // 128 is the least power of two that leaves at most 96 of 10,000.
    CHECK(widest_gap(kept) <= 128);
    CHECK(kept.marks()[0].number == 0);
    std::int64_t greatest = 0;
    for (const detail::checkpoint_mark& mark : kept.marks()) {
      CHECK(mark.bytes == static_cast<std::int64_t>(bytes_at(mark.number)));
      CHECK(mark.blocks == 1);
      REQUIRE(mark.row_count == 1);
      CHECK(kept.rows(mark)->block_count == 1);
      CHECK(kept.largest_blocks(*kept.rows(mark))->bytes == bytes_at(mark.number));
      greatest = std::max(greatest, mark.bytes);
    }
    if (which == course::sawtooth) CHECK(greatest == 1'000'000);
    CHECK(events.rejected_events() == 0);
  }
}

TEST_CASE("checkpoints: the first of each name stays, of as many names as there is room for") {
  ledger events;
  for (label name = 1; name <= 1000; ++name) {
    for (int periodic = 0; periodic < 3; ++periodic) record(events, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
    record(events, {0, 0, 0, name, event_kind::checkpoint, any_space, 0});
  }
  const detail::checkpoint_history& kept = events.checkpoints();
  CHECK(kept.count() == 4000);
  CHECK(kept.marks().size() <= detail::checkpoint_history::max_kept);
  for (label name = 0; name < detail::checkpoint_history::max_names; ++name) {
    CHECK(std::count_if(kept.marks().begin(), kept.marks().end(),
                        [&](const detail::checkpoint_mark& mark) { return mark.name == name; }) >= 1);
  }
}

TEST_CASE("checkpoints: bytes, blocks and the largest blocks are those of that moment") {
  std::mt19937 random{20'250'113};
  ledger events;
  live_model model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint8_t space = random() % 2 == 0 ? 0 : 1;
    const std::uint64_t address = 0x1000 + 64 * (random() % 40);
    auto& live = model.live[space];
    if (live.count(address) != 0) {
      live.erase(address);
      record(events, {0, address, 0, 0, event_kind::deallocate, space, 0});
    } else {
      const std::uint64_t bytes = 1 + random() % 1000;
      live[address] = bytes;
      record(events, {0, address, bytes, 0, event_kind::allocate, space, 0});
    }
    if (random() % 50 != 0) continue;
    record(events, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
    model.remember();
  }

  // What a saved state brings over is the same.
  detail::page_array<unsigned char> saved;
  REQUIRE(detail::write_saved_state(events, saved));
  ledger copy;
  REQUIRE(detail::read_saved_state(copy, saved.data(), saved.size()));

  for (const ledger* each : {&events, &copy}) {
    const detail::checkpoint_history& kept = each->checkpoints();
    CHECK(kept.count() == model.bytes.size());
    CHECK(kept.marks().size() > 30);
    for (const detail::checkpoint_mark& mark : kept.marks()) {
      CHECK(mark.bytes == model.bytes[mark.number]);
      REQUIRE(mark.row_count <= 2);
      for (std::uint32_t row = 0; row < mark.row_count; ++row) {
        const detail::checkpoint_row& held = kept.rows(mark)[row];
        std::vector<std::uint64_t> sizes;
        for (std::uint32_t index = 0; index < held.block_count; ++index) sizes.push_back(kept.largest_blocks(held)[index].bytes);
        std::sort(sizes.rbegin(), sizes.rend());
        CHECK(sizes == model.largest[2 * mark.number + held.space]);
      }
    }
  }

  // And both go on alike.
  for (ledger* each : {&events, &copy}) {
    for (int more = 0; more < 300; ++more) record(*each, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
  }
  REQUIRE(events.checkpoints().marks().size() == copy.checkpoints().marks().size());
  for (std::size_t index = 0; index < copy.checkpoints().marks().size(); ++index) {
    CHECK(events.checkpoints().marks()[index].number == copy.checkpoints().marks()[index].number);
    CHECK(events.checkpoints().marks()[index].bytes == copy.checkpoints().marks()[index].bytes);
  }
}

TEST_CASE("checkpoints: a damaged saved state is refused") {
  ledger events;
  for (std::uint64_t number = 0; number < 40; ++number) {
    record(events, {0, 0x1000 + 64 * number, 64, 0, event_kind::allocate, static_cast<std::uint8_t>(number % 3), 0});
    record(events, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
  }
  detail::page_array<unsigned char> saved;
  REQUIRE(detail::write_saved_state(events, saved));
  std::mt19937 random{7};
  for (int attempt = 0; attempt < 4000; ++attempt) {
    std::vector<unsigned char> damaged(saved.data(), saved.data() + saved.size());
    // The section of the checkpoints is the last.
    const std::size_t at = damaged.size() - 1 - random() % std::min<std::size_t>(damaged.size(), 4000);
    damaged[at] = static_cast<unsigned char>(random());
    ledger copy;
    (void)detail::read_saved_state(copy, damaged.data(), damaged.size());
    // Whatever was read can be made a profile of, and goes on.
    record(copy, {0, 0, 0, 0, event_kind::checkpoint, any_space, 0});
    REQUIRE(copy.checkpoints().marks().size() <= detail::checkpoint_history::max_kept);
    const detail::label_table labels;
    const label spaces[any_space + 1] = {};
    (void)detail::build_profile(copy, {labels, spaces, copy.clock(), true});
  }
}

}  // namespace memprof_tests::ledger_checkpoints
