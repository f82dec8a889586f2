#include <memprof/check.hpp>

#include <memprof/check_catch2.hpp>
#include <memprof/memprof.hpp>

#include <buffer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

namespace memprof_tests::report_check {

using namespace memprof::catch2;
using namespace memprof::literals;
using Catch::Matchers::ContainsSubstring;
using memprof::check_allocations;
using memprof::check_growth;
using memprof::check_leftover;
using memprof::check_peak;
using memprof::check_result;

namespace {

/// 1000 bytes of a model; in FORWARD, 500 of forward/attention; and 24 that are live at the end.
memprof::profile training() {
  auto capture = memprof::begin_capture();
  static_cast<void>(allocated_in("model", 1000));
  const buffer weights = allocated_in("model", 1000);
  memprof::snapshot("MODEL");
  buffer kept;
  {
    const auto scope = memprof::track_operation<"forward">();
    const buffer activations = allocated_in("attention", 500);
    kept = buffer(24);
  }
  memprof::snapshot("FORWARD");
  { const auto scope = memprof::track_operation<"idle">(); }
  capture.end();
  return capture.profile();
}

template <class Program>
memprof::profile steps(int count, Program&& step) {
  auto capture = memprof::begin_capture();
  for (int number = 0; number < count; ++number) {
    step(number);
    memprof::snapshot("STEP");
  }
  capture.end();
  return capture.profile();
}

}  // namespace

TEST_CASE("check: sizes have literals") {
  CHECK(1_KiB == 1024);
  CHECK(64_MiB == 67'108'864);
  CHECK(24_GiB == 25'769'803'776);
}

TEST_CASE("check: a peak passes at its limit, and fails with a byte less and the largest owners") {
  const memprof::profile of = training();
  CHECK(check_peak(of, {.space = "cpu", .at_most = 1524}));
  const check_result failed = check_peak(of, {.space = "cpu", .at_most = 1523});
  CHECK_FALSE(failed);
  CHECK(failed.message ==
        "peak of cpu 1.49 KiB (1,524 B) is 1 B over 1.49 KiB: model holds 1000 B, forward/attention holds 500 B, forward holds "
        "24 B");
  CHECK(check_peak(of, {.at_most = 2_KiB}));
  CHECK(check_peak(of, {.segment = "MODEL", .at_most = 1000}));
  CHECK_FALSE(check_peak(of, {.segment = "MODEL", .at_most = 999}));
  CHECK(check_peak(of, {.segment = "FORWARD", .at_most = 1524}));
  CHECK(check_peak(of, {.operation = "forward", .at_most = 524}));
  const check_result scope = check_peak(of, {.operation = "forward", .at_most = 523});
  CHECK(scope.message == "peak of operation forward in cpu 524 B is 1 B over 523 B");
}

TEST_CASE("check: a name that the profile lacks fails, and the nearest is said") {
  const memprof::profile of = training();
  CHECK(check_peak(of, {.space = "cup", .at_most = 1_GiB}).message == "there is no memory space 'cup'; the nearest is 'cpu'");
  CHECK_FALSE(check_peak(of, {.space = "cup", .at_most = 1_GiB}));
  CHECK(check_peak(of, {.segment = "FORWRD", .at_most = 1_GiB}).message ==
        "there is no segment 'FORWRD'; the nearest is 'FORWARD'");
  CHECK(check_peak(of, {.segment = "FO", .at_most = 1_GiB}).message == "there is no segment 'FO'; the nearest is 'FORWARD'");
  for (const check_result& result :
       {check_peak(of, {.operation = "forwrd", .at_most = 1_GiB}), check_allocations(of, {.operation = "forwrd", .at_most = 99}),
        check_leftover(of, {.operation = "forwrd", .at_most = 1_GiB})}) {
    CHECK_FALSE(result);
    CHECK(result.message == "there is no operation 'forwrd'; the nearest is 'forward'");
  }
}

TEST_CASE("check: allocations are counted in the capture, or in a scope with those in it") {
  const memprof::profile of = training();
  CHECK(check_allocations(of, {.at_most = 4}));
  CHECK_FALSE(check_allocations(of, {.at_most = 3}));
  CHECK(check_allocations(of, {.operation = "forward", .at_most = 2}));
  CHECK(check_allocations(of, {.operation = "forward", .at_most = 1}).message ==
        "2 allocations in operation forward, at most 1 allowed: forward 1 (24 B), forward/attention 1 (500 B)");
  CHECK(check_allocations(of, {.operation = "idle"}));
  CHECK_FALSE(check_allocations(of, {.operation = "model"}));
  const memprof::profile empty = steps(1, [](int) {});
  CHECK(check_allocations(empty));
  CHECK(check_leftover(empty));
}

TEST_CASE("check: what a capture or a scope leaves behind is found") {
  const memprof::profile of = training();
  CHECK(check_leftover(of, {.at_most = 1024}));
  CHECK_FALSE(check_leftover(of, {.at_most = 1023}));
  CHECK(check_leftover(of, {.operation = "forward/attention"}).passed == false);  // freed, but after its scope
  CHECK(check_leftover(of, {.operation = "forward", .at_most = 24}));
  CHECK(check_leftover(of, {.operation = "forward"}).message == "what operation forward left in cpu 24 B is 24 B over 0 B");
  CHECK(check_leftover(of, {.operation = "idle"}));
  const memprof::profile clean = steps(3, [](int) { (void)allocated_in("work", 100); });
  CHECK(check_leftover(clean));
}

TEST_CASE("check: growth per step is a clear trend, over eight steps or more") {
  std::list<buffer> kept;
  const auto leaking = steps(20, [&](int) { kept.push_back(allocated_in("log_metrics", 256)); });
  CHECK(check_growth(leaking, {.at_most = 256}));
  const check_result failed = check_growth(leaking);
  CHECK(
      failed.message ==
      "cpu grows by 256 B per step, most of it by log_metrics, over 0 B; live after STEP: first 256 B, last 5.00 KiB (5,120 B)");
  kept.clear();
  const auto level = steps(20, [&](int) { (void)allocated_in("work", 256); });
  CHECK(check_growth(level));
  const auto warming_up = steps(20, [&](int step) {
    if (step < 2) kept.push_back(allocated_in("state", 256));
    (void)allocated_in("work", 256);
  });
  CHECK(check_growth(warming_up));
  kept.clear();
  const check_result short_run = check_growth(steps(7, [&](int) { (void)allocated_in("work", 1); }));
  CHECK_FALSE(short_run);
  CHECK_THAT(short_run.message, ContainsSubstring("cannot be judged: at least eight steps are needed"));
}

TEST_CASE("check: the names beyond the limit, which share a row, end no steps") {
  std::list<buffer> kept;
  auto capture = memprof::begin_capture({.segment_names = 4});
  for (int step = 0; step < 20; ++step) {
    kept.push_back(allocated_in("log_metrics", 256));
    memprof::snapshot("step " + std::to_string(step));
  }
  capture.end();
  const memprof::profile leaking = capture.profile();
  REQUIRE(leaking.anomalies.other_segments == 17);  // with END_TRACE
  CHECK_FALSE(check_growth(leaking));
  CHECK_THAT(check_growth(leaking).message, ContainsSubstring("cannot be judged: at least eight steps are needed"));
  CHECK_THAT(memprof::to_text(leaking), !ContainsSubstring("Growth"));
}

TEST_CASE("check: what grows while as much of other memory is freed is no growth of the space, and is named") {
  for (const std::size_t added : {100U, 300U, 500U}) {
    std::vector<buffer> work;
    std::vector<buffer> results;
    const memprof::profile of = steps(100, [&](int step) {
      while (step == 0 && work.size() < 1000) work.push_back(allocated_in("init", 300));
      work.pop_back();
      results.push_back(allocated_in("consume", added));
    });
    const check_result found = check_growth(of);
    CHECK(static_cast<bool>(found) == (added <= 300));
    CHECK_THAT(found.message, ContainsSubstring(added <= 300 ? "cpu does not grow: consume does, by " : "most of it by consume"));
  }
}

TEST_CASE("check: a queue that is full does not grow, nor does a slope without an owner in a long run") {
  for (const int count : {60, 100, 2000}) {
    std::list<buffer> queue;
    const memprof::profile of = steps(count, [&](int step) {
      queue.push_back(allocated_in("enqueue", 100));
      if (step >= count * 3 / 4) queue.pop_front();
    });
    INFO(count << " steps");
    CHECK(check_growth(of).passed);
  }
}

TEST_CASE("check: where each step has an operation of its own, the space grows") {
  std::list<buffer> kept;
  const memprof::profile of = steps(50, [&](int step) { kept.push_back(allocated_in("step " + std::to_string(step), 100)); });
  CHECK(of.space("cpu").growing.empty());
  CHECK_THAT(check_growth(of).message, ContainsSubstring("cpu grows by 100 B per step, over 0 B"));
  CHECK_FALSE(check_growth(of));
}

TEST_CASE("check: a segment and an operation in one limit fail, whatever they are") {
  const check_result found = check_peak(training(), {.segment = "FORWRAD", .operation = "model", .at_most = 1_GiB});
  CHECK_FALSE(found);
  CHECK(found.message == "a limit for both segment 'FORWRAD' and operation 'model': name one of them");
}

TEST_CASE("check: where nothing was recorded, names are still required, and growth cannot be judged") {
  const memprof::profile nothing = steps(10, [](int) {});
  REQUIRE(nothing.spaces.empty());
  CHECK(check_peak(nothing, {.at_most = 0}).passed);
  CHECK(check_peak(nothing, {.at_most = 0}).message == "no allocation was recorded");
  CHECK(check_peak(nothing, {.segment = "STEP"}).passed);
  CHECK_FALSE(check_peak(nothing, {.segment = "STPE"}));
  CHECK(check_peak(nothing, {.segment = "STPE"}).message == "there is no segment 'STPE'; the nearest is 'STEP'");
  CHECK_FALSE(check_growth(nothing));
  CHECK(check_growth(nothing).message == "growth cannot be judged: no allocation was recorded");
}

TEST_CASE("check: a profile that is not exact says so") {
  memprof::profile of = training();
  of.exact = false;
  CHECK_THAT(check_peak(of, {.at_most = 1_GiB}).message, ContainsSubstring("\nthe profile is not exact"));
}

TEST_CASE("check: Catch2 has matchers, whose description is the message") {
  const memprof::profile of = training();
  REQUIRE_THAT(of, peak_at_most(2_KiB));
  REQUIRE_THAT(of, peak_at_most({.space = "cpu", .segment = "MODEL", .at_most = 1000}));
  REQUIRE_THAT(of, !peak_at_most(1523));
  REQUIRE_THAT(of, allocates_at_most(4) && allocates_nothing("idle") && frees_all_it_allocates("idle"));
  REQUIRE_THAT(of, !allocates_nothing("forward") && !frees_all_it_allocates() && leaves_at_most({.at_most = 1024}));
  REQUIRE_THAT(steps(8, [](int) { (void)allocated_in("work", 1); }), grows_at_most(0) && frees_all_it_allocates());
  const auto matcher = peak_at_most({.space = std::string{"cp"} + "u", .at_most = 1523});
  CHECK_FALSE(matcher.match(of));
  CHECK_THAT(matcher.describe(), ContainsSubstring("peak of cpu 1.49 KiB (1,524 B) is 1 B over 1.49 KiB"));
}

}  // namespace memprof_tests::report_check
