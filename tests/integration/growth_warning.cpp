// The warning that somebody grows, while the program runs.
#include <memprof/memprof.hpp>
#include <memprof/record/growth_watch.hpp>
#include <memprof/record/session_settings.hpp>

#include <buffer.hpp>
#include <stderr_of.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace memprof_tests::growth_warning {

using Catch::Matchers::ContainsSubstring;

namespace {

struct told {
  std::string space;
  std::string owner;
  double per_step;
  std::int64_t since_step;
  std::int64_t steps;

  bool operator==(const told&) const = default;
};

std::mutex lock;
std::vector<told> all_told;

void tell(const memprof::growth_warning& found) noexcept {
  const std::lock_guard held{lock};
  all_told.push_back({std::string{found.space}, std::string{found.owner}, found.per_step, found.since_step, found.steps});
}

/// Forgets what other tests of the process were told.
struct nothing_told {
  nothing_told() { all_told.clear(); }
};

}  // namespace

TEST_CASE_METHOD(nothing_told, "growth warning: who has grown for long enough is told once, with a line on stderr") {
  const std::string said = stderr_of([] {
    auto capture = memprof::begin_capture({.warn_growth_after = 50, .on_growth = tell});
    std::list<buffer> kept;
    for (int step = 0; step < 2'000; ++step) {
      const buffer work = allocated_in("forward", 10'000);
      kept.push_back(allocated_in("log_metrics", 256));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(all_told.size() == 1);
  CHECK(all_told[0] == told{"cpu", "log_metrics", 256, 0, 50});
  CHECK(said ==
        "memprof: cpu grows by 256 bytes a step by log_metrics, since step 1, after 50 steps; each owner is "
        "reported once\n");
}

TEST_CASE_METHOD(nothing_told, "growth warning: nothing is said where nobody grows, nor unless it is asked for") {
  const std::string said = stderr_of([] {
    auto capture = memprof::begin_capture({.warn_growth_after = 150, .on_growth = tell});
    std::list<buffer> cache;
    for (int step = 0; step < 1'000; ++step) {
      if (step % 100 == 0) cache.clear();
      cache.push_back(allocated_in("cache", 100));
      memprof::snapshot("STEP");
    }
    capture.end();
    auto without = memprof::begin_capture({.on_growth = tell});
    std::list<buffer> kept;
    for (int step = 0; step < 200; ++step) {
      kept.push_back(allocated_in("leak", 100));
      memprof::snapshot("STEP");
    }
  });
  CHECK(said.empty());
  CHECK(all_told.empty());
}

TEST_CASE_METHOD(nothing_told, "growth warning: who begins to grow later is told at the latest an eighth after it has lasted") {
  (void)stderr_of([] {
    auto capture = memprof::begin_capture({.warn_growth_after = 200, .on_growth = tell});
    std::list<buffer> kept;
    for (int step = 0; step < 1'000; ++step) {
      if (step >= 300) kept.push_back(allocated_in("late", 64));
      memprof::snapshot("FORWARD");
      memprof::snapshot("BACKWARD");
    }
  });
  REQUIRE(all_told.size() == 1);
  CHECK(all_told[0].owner == "late");
  CHECK(all_told[0].since_step >= 300 - 16);
  CHECK(all_told[0].since_step < 300);
  CHECK(all_told[0].steps >= 484);
  CHECK(all_told[0].steps <= 500 + 500 / 8 + 1);
}

TEST_CASE_METHOD(nothing_told, "growth warning: the program's function may call memprof, and sees a capture that records") {
  static int calls = 0;
  static std::int64_t live = 0;
  (void)stderr_of([] {
    auto capture = memprof::begin_capture({.warn_growth_after = 10, .on_growth = [](const memprof::growth_warning&) noexcept {
                                             ++calls;
                                             const buffer own = allocated_in("in the function", 1'000);
                                             memprof::snapshot("STEP");
                                             live = memprof::current_profile().space("cpu").cumulative_current;
                                           }});
    std::list<buffer> kept;
    for (int step = 0; step < 100; ++step) {
      kept.push_back(allocated_in("leak", 10));
      memprof::snapshot("STEP");
    }
  });
  CHECK(calls == 1);
  CHECK(live == 10 * 10 + 1'000);
}

TEST_CASE_METHOD(nothing_told, "growth warning: with many threads, each owner is told once") {
  constexpr int threads = 3;
  (void)stderr_of([] {
    auto capture = memprof::begin_capture({.warn_growth_after = 100, .on_growth = tell});
    std::list<std::list<buffer>> kept(threads + 1);
    std::barrier round{threads + 1};  // else one may have grown and stopped before another begins
    const auto train = [&round](std::list<buffer>& own, int number) {
      const std::string name = "leak " + std::to_string(number);
      for (int step = 0; step < 500; ++step) {
        own.push_back(allocated_in(name, 32));
        memprof::snapshot("STEP");
        round.arrive_and_wait();
      }
    };
    std::vector<std::thread> running;
    auto own = kept.begin();
    for (int thread = 0; thread < threads; ++thread, ++own) {
      running.emplace_back([&train, &mine = *own, thread] { train(mine, thread); });
    }
    // Under ThreadSanitizer, only the first thread is known to be in no signal handler.
    train(*own, threads);
    for (std::thread& each : running) each.join();
  });
  std::list<std::string> owners;
  for (const told& each : all_told) owners.push_back(each.owner);
  owners.sort();
  const std::size_t count = owners.size();
  owners.unique();
  CHECK(owners.size() == count);
  CHECK(count <= threads + 1);
  CHECK(count > 0);
}

TEST_CASE_METHOD(nothing_told, "growth warning: paths are those of the profile; of a long one, the end is told") {
  std::string long_name(300, 'a');
  long_name += "/end";
  memprof::profile profile;
  (void)stderr_of([&] {
    auto capture = memprof::begin_capture({.warn_growth_after = 10, .on_growth = tell});
    std::list<buffer> kept;
    for (int step = 0; step < 20; ++step) {
      {
        const auto outer = memprof::track_operation("a/b");
        kept.push_back(allocated_in("", 10));
      }
      kept.push_back(allocated_in(long_name, 30));
      kept.emplace_back(20);
      memprof::snapshot("STEP");
    }
    profile = memprof::current_profile();
  });
  REQUIRE(all_told.size() == 3);
  REQUIRE(profile.space("cpu").growing.size() == 3);
  std::list<std::string> owners;
  for (const memprof::owner_growth& each : profile.space("cpu").growing)
    owners.push_back(each.owner.substr(each.owner.size() - std::min<std::size_t>(each.owner.size(), 255)));
  for (const told& each : all_told) owners.remove(each.owner);
  CHECK(owners.empty());
}

TEST_CASE_METHOD(nothing_told, "growth warning: a session takes it from the environment and from a file") {
  const auto asked_by = [](const char* line) {
    const char* const environment[] = {line, nullptr};
    memprof::session_options options;
    memprof::detail::set_from_environment(options, environment);
    return options.capture.warn_growth_after;
  };
  CHECK(asked_by("MEMPROF_WARN_GROWTH_AFTER=100") == 100);
  CHECK(asked_by("MEMPROF_WARN_GROWTH_AFTER=0") == 0);
  for (const char* const wrong : {"MEMPROF_WARN_GROWTH_AFTER=", "MEMPROF_WARN_GROWTH_AFTER=ten", "MEMPROF_WARN_GROWTH_AFTER=-1",
                                  "MEMPROF_WARN_GROWTH_AFTER=99999999999"}) {
    std::uint32_t asked = 1;
    CHECK_THAT(stderr_of([&] { asked = asked_by(wrong); }), ContainsSubstring("is ignored; use a number of steps, or 0"));
    CHECK(asked == 0);
  }
  memprof::session_options options;
  memprof::detail::set_from_file(options, "warn_growth_after", "250", "train.toml");
  CHECK(options.capture.warn_growth_after == 250);
}

}  // namespace memprof_tests::growth_warning
