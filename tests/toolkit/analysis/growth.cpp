#include <memprof/toolkit/analysis/growth.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace memprof_tests::analysis_growth {

using memprof::growth;
using memprof::growth_kind;
using memprof::growth_series;

namespace {

growth judged(std::int64_t steps, const std::function<std::int64_t(std::int64_t)>& bytes_at) {
  growth_series series{steps};
  for (std::int64_t step = 0; step < steps; ++step) series.add(bytes_at(step), step + 1);
  return series.judge();
}

growth_kind kind_of(std::int64_t steps, const std::function<std::int64_t(std::int64_t)>& bytes_at) {
  return judged(steps, bytes_at).kind;
}

}  // namespace

TEST_CASE("growth: what is added in every step is a slope, to the byte, for any number of steps") {
  for (const std::int64_t steps : {8, 9, 15, 16, 63, 64, 65, 100, 511, 512, 513, 1'000, 12'345}) {
    INFO(steps);
    const growth found = judged(steps, [](std::int64_t step) { return 1'000 + 256 * step; });
    CHECK(found.kind == growth_kind::grows);
    CHECK(found.per_step == 256);
    CHECK(found.since_step == 0);
    CHECK(found.first == 1'000);
    CHECK(found.last == 1'000 + 256 * (steps - 1));
  }
}

TEST_CASE("growth: with too few steps there is no verdict") {
  for (std::int64_t steps = 0; steps < growth_series::least_steps; ++steps)
    CHECK(kind_of(steps, [](std::int64_t step) { return 100 * step; }) == growth_kind::level);
}

TEST_CASE("growth: what began later, is rare or small grows too") {
  for (const std::int64_t steps : {100, 1'000, 10'000}) {
    INFO(steps);
    const growth late = judged(steps, [&](std::int64_t step) { return step < steps / 2 ? 50 : 50 + (step - steps / 2) * 8; });
    CHECK(late.kind == growth_kind::grows);
    CHECK(late.since_step >= steps / 2 - steps / 8);
    CHECK(late.since_step <= steps / 2);
    CHECK(kind_of(steps, [&](std::int64_t step) { return 1'000'000'000 + step; }) == growth_kind::grows);
  }
  CHECK(kind_of(1'000, [](std::int64_t step) { return step / 100 * 64; }) == growth_kind::grows);
}

TEST_CASE("growth: state made lazily before it begins does not count as its begin") {
  const growth found =
      judged(1'000, [](std::int64_t step) { return (step < 10 ? 0 : 5'000) + (step < 600 ? 0 : (step - 600) * 16); });
  CHECK(found.kind == growth_kind::grows);
  CHECK(found.since_step >= 600 - 16);
  CHECK(found.since_step <= 600);
}

TEST_CASE("growth: what is set up at the start of the run, however large, does not hide what grows later") {
  for (const std::int64_t steps : {64, 200, 1'000, 10'000}) {
    for (const std::int64_t percent : {1, 5, 10}) {
      for (const std::int64_t setup : {100, 1'000, 1'000'000}) {  // times what the run grows by in a step
        INFO(steps << " steps, " << percent << " % of them set up " << setup);
        const growth found = judged(steps, [&](std::int64_t step) {
          return 10 * step + std::min(step * 100, steps * percent) * setup * 10 / (steps * percent);
        });
        CHECK(found.kind == growth_kind::grows);
        CHECK(found.per_step >= 10);
        CHECK(found.per_step < 10 * 7 / 6.0 + 0.1);  // of a setup that counts, the first half has at most 4/3 of the second
        CHECK(found.since_step <= steps / 8);
      }
    }
  }
  // with memory that comes and goes in every 7 steps
  for (const std::int64_t steps : {200, 210, 253}) {
    INFO(steps);
    CHECK(kind_of(steps, [](std::int64_t step) {
            return (step < 3 ? step : 3) * 1'000'000 + step / 7 * 5'000 + step % 7 * 600'000;
          }) == growth_kind::grows);
  }
  // 7 steps from one growth to the next, as where the steps are parts of a run's allocations
  CHECK(kind_of(210, [](std::int64_t step) { return (step < 3 ? step : 3) * 1'000'000 + step / 7 * 5'000; }) ==
        growth_kind::grows);
}

TEST_CASE("growth: what grows ever more slowly is not set up at the begin") {
  for (const std::int64_t steps : {64, 200, 1'000, 10'000}) {
    INFO(steps);
    const auto length = static_cast<double>(steps);
    CHECK(kind_of(steps, [](std::int64_t step) {
            return static_cast<std::int64_t>(1e6 * std::log1p(static_cast<double>(step)));
          }) != growth_kind::grows);
    CHECK(kind_of(steps, [](std::int64_t step) {
            return static_cast<std::int64_t>(1e6 * std::sqrt(static_cast<double>(step)));
          }) != growth_kind::grows);
    for (const double part : {0.1, 0.3, 0.5, 1.0}) {
      CHECK(kind_of(steps, [&](std::int64_t step) {
              return static_cast<std::int64_t>(1e6 * (1 - std::exp(-static_cast<double>(step) / (part * length))));
            }) != growth_kind::grows);
    }
    for (unsigned seed = 0; seed < 100; ++seed) {  // a cache of random keys, for a fourth as many as there are steps
      std::mt19937 random{seed};
      std::vector<bool> cached(static_cast<std::size_t>(steps / 4));
      std::int64_t bytes = 0;
      CHECK(kind_of(steps, [&](std::int64_t) {
              const auto key = random() % cached.size();
              if (!cached[key]) bytes += 100;
              cached[key] = true;
              return bytes;
            }) != growth_kind::grows);
    }
  }
}

TEST_CASE("growth: a table that doubles when it is full grows, wherever the run ends") {
  for (std::int64_t steps = 300; steps < 1'300; steps += 37) {
    INFO(steps);
    CHECK(kind_of(steps, [](std::int64_t step) {
            std::int64_t capacity = 1;
            while (capacity < step + 1) capacity *= 2;
            return capacity * 4;
          }) == growth_kind::grows);
  }
}

TEST_CASE("growth: what fills up and stops, levels off") {
  for (const std::int64_t steps : {64, 100, 1'000}) {
    INFO(steps);
    CHECK(kind_of(steps, [&](std::int64_t step) { return std::min(step, steps / 3) * 1'000; }) == growth_kind::levels_off);
    CHECK(kind_of(steps, [&](std::int64_t step) { return std::min(step, steps / 2) * 1'000; }) == growth_kind::levels_off);
    CHECK(kind_of(steps, [](std::int64_t step) { return step == 0 ? 0 : 777; }) == growth_kind::levels_off);
    CHECK(kind_of(steps, [&](std::int64_t step) {  // random keys of a cache
            return static_cast<std::int64_t>(1e6 * (1 - std::exp(-8.0 * static_cast<double>(step) / static_cast<double>(steps))));
          }) == growth_kind::levels_off);
  }
}

TEST_CASE("growth: what grew in every step and has stopped for a twentieth of the run does not grow") {
  for (const std::int64_t steps : {200, 500, 1'000, 10'000}) {
    for (const int percent : {50, 70, 80, 85, 90, 95}) {
      INFO(steps << " steps, full at " << percent << " %");
      CHECK(kind_of(steps, [&](std::int64_t step) { return std::min(step, steps * percent / 100) * 1'000; }) ==
            growth_kind::levels_off);
    }
  }
}

TEST_CASE("growth: what grew until the end, but not for long or often enough, has not stopped") {
  for (const std::int64_t steps : {200, 1'000}) {
    INFO(steps);
    CHECK(kind_of(steps, [&](std::int64_t step) { return std::max<std::int64_t>(0, step - steps * 92 / 100) * 500; }) ==
          growth_kind::unclear);
    CHECK(kind_of(steps, [&](std::int64_t step) { return step / (steps / 3) * 500; }) == growth_kind::unclear);
  }
}

TEST_CASE("growth: numbers that come back to where they were are level, however few the steps") {
  std::mt19937 random{3};
  for (const std::int64_t steps : {10, 12, 16, 30, 100, 1'000}) {
    int listed = 0;
    for (int round = 0; round < 100; ++round)
      listed += kind_of(steps, [&](std::int64_t) { return static_cast<std::int64_t>(random() % 100'000); }) == growth_kind::level
                    ? 0
                    : 1;
    INFO(steps);
    CHECK(listed <= (steps < 100 ? 3 : 0));  // a few numbers may rise by chance
  }
}

TEST_CASE("growth: what is emptied from time to time is level, wherever the run ends") {
  for (std::int64_t steps = 100; steps < 1'000; steps += 23) {
    for (const std::int64_t period : {2, 10, 45, 90}) {
      INFO(steps << " of " << period);
      CHECK(kind_of(steps, [&](std::int64_t step) { return step % period * 1'000; }) != growth_kind::grows);
    }
  }
}

TEST_CASE("growth: what was emptied once and grows again is unclear") {
  for (const std::int64_t at : {700, 900, 1'000, 1'200})
    CHECK(kind_of(2'000, [&](std::int64_t step) { return (step < at ? step : step - at) * 100; }) != growth_kind::levels_off);
  CHECK(kind_of(2'000, [&](std::int64_t step) { return step % 1'000 * 100; }) == growth_kind::unclear);
}

TEST_CASE("growth: a queue of blocks of random sizes that is full for a quarter of the run does not grow") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random{seed};
    std::deque<std::int64_t> queue;
    std::int64_t bytes = 0;
    INFO(seed);
    CHECK(kind_of(2'000, [&](std::int64_t step) {
            queue.push_back(static_cast<std::int64_t>(random() % 1'000));
            bytes += queue.back();
            if (step >= 1'500) {
              bytes -= queue.front();
              queue.pop_front();
            }
            return bytes;
          }) != growth_kind::grows);
  }
}

TEST_CASE("growth: a queue that filled up at the begin levelled off there, whatever it holds later") {
  std::mt19937 random{1};
  std::deque<std::int64_t> queue;
  std::int64_t bytes = 0;
  growth_series series{2'000};
  for (std::int64_t step = 0; step < 2'000; ++step) {
    queue.push_back(static_cast<std::int64_t>(random() % 1'000));
    bytes += queue.back();
    if (step >= 150) {
      bytes -= queue.front();
      queue.pop_front();
    }
    series.add(bytes, step + 1);
  }
  const memprof::growth found = series.judge();
  CHECK(found.kind == growth_kind::levels_off);
  CHECK(found.since_step == 0);
  CHECK(found.until_step < 200);
}

TEST_CASE("growth: a leak below what comes and goes is found") {
  CHECK(kind_of(1'000, [](std::int64_t step) { return step % 10 * 1'000 + step * 64; }) == growth_kind::grows);
  std::mt19937 random{20261125};
  CHECK(kind_of(1'000, [&](std::int64_t step) { return static_cast<std::int64_t>(random() % 50'000) + step * 64; }) ==
        growth_kind::grows);
}

TEST_CASE("growth: noise, and queues that fill and empty at random, are no trend") {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    INFO(round);
    CHECK(kind_of(500, [&](std::int64_t) { return static_cast<std::int64_t>(random() % 100'000); }) != growth_kind::grows);
    std::int64_t queued = 10'000;
    CHECK(kind_of(2'000, [&](std::int64_t) {
            queued = std::clamp<std::int64_t>(queued + static_cast<std::int64_t>(random() % 2'001) - 1'000, 0, 20'000);
            return queued;
          }) != growth_kind::grows);
  }
}

TEST_CASE("growth: constant bytes in one call are the same as in many, and the greatest values do not overflow") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  growth_series at_once{1'000'000};
  at_once.add(5, 400'000);
  at_once.add(most, 1'000'000);
  const growth found = at_once.judge();
  CHECK(found.kind == growth_kind::levels_off);
  CHECK(found.last == most);
  CHECK(found.first == 5);
  growth_series beyond{10};
  beyond.add(1, 1'000);  // more steps than there are
  CHECK(beyond.judge().kind == growth_kind::level);
}

}  // namespace memprof_tests::analysis_growth
