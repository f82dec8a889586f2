#include <memprof/ledger/step_ends.hpp>

#include <memprof/ledger/segment_history.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace memprof_tests::ledger_step_ends {

using memprof::detail::segment_history;
using memprof::detail::step_end_choice;
using memprof::detail::step_ends;
using memprof::extend::label;
using memprof::test::ledger_driver;

namespace {

/// Tells it what one owner had at the ends from the last one on.
void note(step_ends& ends, std::uint64_t count, std::int64_t bytes) {
  ends.begin(count);
  ends.add(1, bytes);
  REQUIRE(ends.finish());
}

/// The names whose segments end, and which of them ends the steps.
step_end_choice chosen(const std::vector<label>& names) {
  segment_history history{8, 4};
  for (const label name : names) {
    REQUIRE(history.add(name, 0, 1));
    history.drop_surplus();
    if (history.is_sparse()) history.compact();
  }
  return history.step_ends();
}

std::vector<label> repeated(const std::vector<label>& round, std::size_t times) {
  std::vector<label> names;
  for (; times != 0; --times) names.insert(names.end(), round.begin(), round.end());
  return names;
}

}  // namespace

TEST_CASE("step ends: parts have the least and the most bytes, in 64 parts at most, however the ends are told") {
  std::mt19937 random{11};
  for (int round = 0; round < 40; ++round) {
    step_ends ends;
    ends.restart({0, 0}, 0);
    std::vector<std::int64_t> bytes;
    while (bytes.size() < 10'000) {
      const std::size_t times = random() % 20 == 0 ? 1 + random() % 3'000 : 1;
      bytes.resize(bytes.size() + times, static_cast<std::int64_t>(random() % 1'000));
      note(ends, bytes.size(), bytes.back());
      if (random() % 50 != 0) continue;
      INFO(bytes.size());
      REQUIRE(ends.count() == bytes.size());
      REQUIRE(ends.part_count() <= step_ends::max_parts);
      REQUIRE((ends.width() == 1 || 2 * ends.part_count() > step_ends::max_parts));
      for (std::size_t part = 0; part < ends.part_count(); ++part) {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(part * ends.width());
        const auto last = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), (part + 1) * ends.width()));
        REQUIRE(ends.parts(0)[part].least == *std::min_element(first, last));
        REQUIRE(ends.parts(0)[part].most == *std::max_element(first, last));
      }
    }
  }
}

TEST_CASE("step ends: an owner that comes later had nothing before, and one that never has anything takes no part") {
  step_ends ends;
  ends.restart({0, 0}, 100);  // 50 parts of 2
  note(ends, 101, 0);
  CHECK(ends.owners().empty());
  note(ends, 103, 70);
  REQUIRE(ends.owners().size() == 1);
  CHECK(ends.width() == 2);
  CHECK(ends.parts(0)[49].most == 0);
  CHECK(ends.parts(0)[50].least == 0);
  CHECK(ends.parts(0)[50].most == 70);
  CHECK(ends.parts(0)[51].least == 70);
}

TEST_CASE("step ends: a million steps in which nothing changed are told at once") {
  step_ends ends;
  ends.restart({0, 0}, 0);
  for (std::uint64_t end = 1; end <= 11; ++end) note(ends, end, static_cast<std::int64_t>(end) * 10);
  note(ends, 1'000'000, 200);
  CHECK(ends.width() == 16'384);
  CHECK(ends.part_count() == 62);
  CHECK(ends.parts(0)[0].least == 10);
  CHECK(ends.parts(0)[0].most == 200);
  CHECK(ends.parts(0)[61].least == 200);
}

TEST_CASE("step ends: the most frequent name ends steps, of equals the last of a round") {
  CHECK(chosen({}) == step_end_choice{});
  CHECK(chosen({7}) == step_end_choice{0, 0});
  CHECK(chosen({7, 8, 1, 2, 3}) == step_end_choice{3, 0});  // the fifth name is beyond the limit
  CHECK(chosen(repeated({1, 2, 3}, 50)) == step_end_choice{2, 0});
  std::vector<label> in_the_middle = repeated({1, 2, 3}, 50);
  in_the_middle.push_back(1);
  CHECK(chosen(in_the_middle) == step_end_choice{2, 0});  // of a round that has just begun
  CHECK(chosen(repeated({1, 1, 1, 1, 2}, 50)) == step_end_choice{0, 0});
  std::vector<label> warm = repeated({9}, 10);
  const std::vector<label> steps = repeated({1}, 20);
  warm.insert(warm.end(), steps.begin(), steps.end());
  CHECK(chosen(warm) == step_end_choice{1, 9});  // as soon as there were as many
}

TEST_CASE("step ends: the profile names who grows, also outside every operation, and of what is reserved") {
  ledger_driver driver;
  std::uint64_t address = 0x1000;
  for (int step = 0; step < 40; ++step) {
    driver.begin("forward");
    driver.allocate(0x10, 5'000);
    driver.free(0x10);
    driver.allocate(address += 0x1000, 256);
    driver.end("forward");
    if (step >= 20) driver.allocate(address += 0x1000, 100);
    driver.reserve(address + (std::uint64_t{1} << 40), 4'096, {1});
    if (step == 0) driver.allocate(0x20, 10, {1});
    driver.snapshot("STEP");
  }
  const memprof::profile made = driver.open_profile();
  const memprof::vector<memprof::owner_growth>& cpu = made.space("cpu").growing;
  REQUIRE(cpu.size() == 2);
  CHECK(cpu[0] == memprof::owner_growth{"forward", 256, 0, 1, 40});
  CHECK(cpu[1] == memprof::owner_growth{"", 100, 19, 1, 40});
  const memprof::vector<memprof::owner_growth>& device = made.space("cuda:0").growing;
  REQUIRE(device.size() == 1);
  CHECK(device[0] == memprof::owner_growth{std::string{memprof::detail::reserved_beyond_blocks}, 4'096, 0, 1, 40});
}

TEST_CASE("step ends: a space that is first used late had nothing before, and one that rests keeps what it has") {
  ledger_driver driver;
  driver.allocate(0x10, 1);
  std::uint64_t address = 0x1000;
  for (int step = 0; step < 60; ++step) {
    if (step >= 30 && step % 3 == 0) driver.allocate(address += 0x1000, 30, {1});
    driver.snapshot("FORWARD");
    driver.snapshot("BACKWARD");
  }
  const memprof::profile made = driver.open_profile();
  REQUIRE(made.space("cuda:0").growing.size() == 1);
  // 30 bytes at the ends of the steps 30, 33, ..., 57: 300 in the 30 from step 29 to step 59.
  CHECK(made.space("cuda:0").growing[0] == memprof::owner_growth{"", 10, 29, 1, 60});
}

TEST_CASE("step ends: memory does not grow with steps, and owners that keep nothing take next to none") {
  const auto bytes_after = [](int steps, int operations) {
    ledger_driver driver;
    std::uint64_t address = 0x1000;
    for (int step = 0; step < steps; ++step) {
      for (int operation = 0; operation < operations; ++operation) {
        driver.begin("operation " + std::to_string(operation));
        driver.allocate(0x10, 5);
        driver.free(0x10);
        driver.end("operation " + std::to_string(operation));
      }
      driver.allocate(address += 0x1000, 1);
      driver.snapshot("STEP");
    }
    return driver.events.space(0)->ends_of_steps().bytes();
  };
  CHECK(bytes_after(100, 1) == bytes_after(3'000, 1));
  CHECK(bytes_after(20, 500) <= bytes_after(20, 1) + 4'096);
}

}  // namespace memprof_tests::ledger_step_ends
