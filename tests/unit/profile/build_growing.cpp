#include <memprof/profile/build_growing.hpp>

#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>

namespace memprof_tests::profile_build_growing {

using memprof::growth_kind;
using memprof::detail::step_ends;

namespace {

/// Calls `look(ends, steps)` after each step.
void each_step(std::int64_t steps, const std::function<std::int64_t(std::int64_t)>& bytes_at,
               const std::function<void(const step_ends&, std::int64_t)>& look) {
  step_ends ends;
  ends.restart({0, 0}, 0);
  for (std::int64_t step = 0; step < steps; ++step) {
    ends.begin(static_cast<std::uint64_t>(step) + 1);
    ends.add(1, bytes_at(step));
    REQUIRE(ends.finish());
    if (!ends.owners().empty()) look(ends, step + 1);
  }
}

/// In how many of the runs that end after so many of the steps it grows.
int runs_that_grow(std::int64_t first, std::int64_t last, const std::function<std::int64_t(std::int64_t)>& bytes_at) {
  int found = 0;
  each_step(last, bytes_at, [&](const step_ends& ends, std::int64_t steps) {
    if (steps >= first) found += judge_owner(ends, 0).kind == growth_kind::grows ? 1 : 0;
  });
  return found;
}

}  // namespace

TEST_CASE("who grows: what is added in every step is found from the eighth step on, to the byte, wherever the run ends") {
  const memprof::vector<std::string> paths{"", "leak"};
  each_step(
      5'000, [](std::int64_t step) { return 1'000 + 256 * step; },
      [&](const step_ends& ends, std::int64_t steps) {
        const memprof::vector<memprof::owner_growth> found = build_growing(ends, paths);
        INFO(steps);
        REQUIRE(found.size() == (steps < 8 ? 0 : 1));
        if (steps < 8) return;
        REQUIRE(found[0].owner == "leak");
        REQUIRE(found[0].per_step == 256);
        REQUIRE(found[0].since_step == 0);
        REQUIRE(found[0].steps == steps);
        REQUIRE(found[0].within_steps <= std::max<std::int64_t>(1, steps / 32));
      });
}

TEST_CASE("who grows: what is emptied from time to time does not, wherever the run ends") {
  for (const std::int64_t period : {2, 3, 7, 10, 16, 45, 64, 90}) {
    INFO(period);
    CHECK(runs_that_grow(2 * period, 3'000, [&](std::int64_t step) { return step % period * 1'000; }) == 0);
  }
}

TEST_CASE("who grows: what fills up and stops does not, from a tenth of its time on") {
  for (const std::int64_t full : {20, 100, 333, 1'000}) {
    INFO(full);
    CHECK(runs_that_grow(full + full / 8 + 2, 4'000, [&](std::int64_t step) { return std::min(step, full) * 1'000; }) == 0);
    CHECK(runs_that_grow(full, 4'000, [&](std::int64_t step) {  // random keys of a cache
            return static_cast<std::int64_t>(1e6 * (1 - std::exp(-8.0 * static_cast<double>(step) / static_cast<double>(full))));
          }) == 0);
  }
}

TEST_CASE("who grows: what began later, is rare, or comes in powers of two is found nearly wherever the run ends") {
  CHECK(runs_that_grow(600, 3'000, [](std::int64_t step) { return std::max<std::int64_t>(0, step - 300) * 64; }) == 2'401);
  CHECK(runs_that_grow(501, 3'000, [](std::int64_t step) { return step / 100 * 4'096; }) == 2'500);
  // When it has just doubled, it looks like what was made once.
  CHECK(runs_that_grow(300, 3'000, [](std::int64_t step) {
          std::int64_t capacity = 1;
          while (capacity < step + 1) capacity *= 2;
          return capacity * 4;
        }) > 2'600);
}

TEST_CASE("who grows: noise has no trend, and a leak below it has one") {
  std::mt19937 random{5};
  CHECK(runs_that_grow(100, 4'000, [&](std::int64_t) { return static_cast<std::int64_t>(random() % 100'000); }) == 0);
  CHECK(runs_that_grow(2'000, 4'000,
                       [&](std::int64_t step) { return static_cast<std::int64_t>(random() % 50'000) + step * 64; }) == 2'001);
}

TEST_CASE("who grows: the greatest values do not overflow") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(runs_that_grow(8, 400, [](std::int64_t step) { return step % 2 == 0 ? most : 1; }) == 0);
  CHECK(runs_that_grow(8, 100, [](std::int64_t step) { return most - 1'000 + step; }) == 93);
}

}  // namespace memprof_tests::profile_build_growing
