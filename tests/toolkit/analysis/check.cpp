#include <memprof/toolkit/analysis/check.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/baseline_json.hpp>
#include <memprof/toolkit/analysis/check_forge.hpp>
#include <memprof/toolkit/analysis/check_json.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/trace/trace.hpp>

#include <buffer.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_check {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using memprof::baseline_of;
using memprof::check_condition;
using memprof::check_reason;
using memprof::check_report;
using memprof::check_request;
using memprof::check_run;
using memprof::check_subject;
using memprof::run_baseline;

namespace {

/// 1000 bytes of a model and, in FORWARD, `activations` of forward/attention.
memprof::profile training(std::size_t activations) {
  auto capture = memprof::begin_capture();
  const buffer weights = allocated_in("model", 1000);
  memprof::snapshot("MODEL");
  {
    const auto scope = memprof::track_operation<"forward">();
    const buffer kept = allocated_in("attention", activations);
  }
  memprof::snapshot("FORWARD");
  capture.end();
  memprof::profile made = capture.profile();
  made.provenance.file = "run.json";
  return made;
}

check_report limited(const memprof::profile& of, check_subject subject, const std::string& name, std::int64_t at_most) {
  check_request request;
  request.limits.push_back({subject, name, at_most});
  return check_run(of, request);
}

check_report compared(const memprof::profile& of, const run_baseline& baseline, const std::string& tolerance,
                      std::vector<check_subject> each = {check_subject::space}) {
  check_request request;
  request.baseline = &baseline;
  request.tolerance = memprof::parse_tolerance(tolerance);
  request.each = std::move(each);
  return check_run(of, request);
}

/// A condition that is not in any profile, for what is written about it.
check_report written(const std::string& name) {
  check_report made;
  made.exact = true;
  check_condition& failed = made.conditions.emplace_back();
  failed.subject = check_subject::operation;
  failed.space = "cpu";
  failed.name = name;
  failed.bytes = 11;
  failed.at_most = 10;
  return made;
}

}  // namespace

TEST_CASE("check: the owners of a segment that grew are those that changed most, and a baseline keeps them") {
  const auto program = [](std::size_t of_log) {
    auto capture = memprof::begin_capture();
    const buffer weights = allocated_in("model", 1000);
    const buffer kept = allocated_in("attention", 300);
    const buffer lines = allocated_in("log", of_log);
    memprof::snapshot("FORWARD");
    capture.end();
    return capture.profile();
  };
  const memprof::profile grown = program(150);
  const run_baseline before = baseline_of(program(10));
  const run_baseline committed = memprof::parse_baseline(memprof::detail::dump(to_json(reduced(before))), "baseline.json");
  for (const run_baseline* const baseline : {&before, &committed}) {
    const check_report failed = compared(grown, *baseline, "0", {check_subject::segment});
    const auto condition = std::find_if(failed.conditions.begin(), failed.conditions.end(),
                                        [](const check_condition& each) { return each.name == "FORWARD"; });
    REQUIRE(condition != failed.conditions.end());
    CHECK(condition->owners_are_changes);
    REQUIRE(condition->owners.size() == 1);
    CHECK(condition->owners[0].operation == "log");
    CHECK(condition->owners[0].change == 140);
  }
  // A baseline from before they were kept, or a limit alone: those that hold most.
  run_baseline without = before;
  for (memprof::baseline_segment& segment : without.spaces[0].segments) segment.owners.clear();
  const check_report old = compared(grown, without, "0", {check_subject::segment});
  CHECK(old.failures() == 2);
  CHECK(old.conditions[0].owners[0].operation == "model");
  CHECK_FALSE(old.conditions[0].owners_are_changes);
}

TEST_CASE("check: a peak at its limit passes, and a byte over it fails and names who holds most") {
  const memprof::profile of = training(500);
  const check_report passed = limited(of, check_subject::space, {}, 1500);
  CHECK(passed.has_passed());
  CHECK(verdict_of(passed) == "check: passed: peak of cpu 1.46 KiB is exactly 1.46 KiB");
  const check_report failed = limited(of, check_subject::space, {}, 1499);
  REQUIRE(failed.conditions.size() == 1);
  CHECK(failed.failures() == 1);
  CHECK(failed.conditions[0].over() == 1);
  REQUIRE(failed.conditions[0].owners.size() == 2);
  CHECK(failed.conditions[0].owners[0].operation == "model");
  CHECK(failed.conditions[0].owners[0].bytes == 1000);
  CHECK(verdict_of(failed) == "check: failed: peak of cpu 1,500 B is 1 B over 1,499 B: model holds 1000 B");
  CHECK_THAT(to_text(failed), StartsWith(verdict_of(failed) + "\n"));
}

TEST_CASE("check: limits hold for a space, for the segments of a name and for an operation, by name or pattern") {
  const memprof::profile of = training(500);
  CHECK(limited(of, check_subject::space, "cpu", 1500).has_passed());
  CHECK(limited(of, check_subject::segment, "MODEL", 1000).has_passed());
  CHECK_FALSE(limited(of, check_subject::segment, "MODEL", 999).has_passed());
  CHECK_FALSE(limited(of, check_subject::segment, "FORWARD", 1499).has_passed());
  CHECK(limited(of, check_subject::operation, "forward/attention", 500).has_passed());
  const check_report inclusive = limited(of, check_subject::operation, "forward", 499);
  CHECK(verdict_of(inclusive) == "check: failed: peak of operation forward in cpu 500 B is 1 B over 499 B");
  const check_report several = limited(of, check_subject::operation, "**/att*", 499);
  REQUIRE(several.conditions.size() == 1);
  CHECK(several.conditions[0].name == "forward/attention");
  CHECK(limited(of, check_subject::segment, "*", 1500).conditions.size() == 3);
}

TEST_CASE("check: what a limit names and the run lacks is an error with the nearest name") {
  const memprof::profile of = training(500);
  const auto message_of = [&](check_subject subject, const std::string& name) {
    try {
      (void)limited(of, subject, name, 1);
    } catch (const memprof::error& fault) {
      return std::string{fault.what()};
    }
    return std::string{};
  };
  CHECK(message_of(check_subject::operation, "forward/attentoin") ==
        "no operation 'forward/attentoin' in 'run.json'; the nearest is 'forward/attention'");
  CHECK(message_of(check_subject::segment, "FORWRD") == "no segment 'FORWRD' in 'run.json'; the nearest is 'FORWARD'");
  CHECK(message_of(check_subject::space, "cup") == "no memory space 'cup' in 'run.json'; the nearest is 'cpu'");
  check_request nothing;
  CHECK_THROWS_MATCHES(check_run(of, nothing), memprof::error, MessageMatches(ContainsSubstring("nothing to check")));
  check_request elsewhere;
  elsewhere.space = "cuda:0";
  elsewhere.limits.push_back({check_subject::space, {}, 1});
  CHECK_THROWS_MATCHES(check_run(of, elsewhere), memprof::error, MessageMatches(ContainsSubstring("no memory space 'cuda:0'")));
}

TEST_CASE("check: against a baseline, the tolerance decides, and the owner that grew is named") {
  const run_baseline before = reduced(baseline_of(training(500)));
  CHECK(compared(training(500), before, "0").has_passed());
  CHECK(verdict_of(compared(training(500), before, "0")) == "check: passed: peak of cpu 1.46 KiB is that of the baseline");
  CHECK_FALSE(compared(training(501), before, "0").has_passed());
  CHECK(compared(training(515), before, "1%").has_passed());  // 15 of 1500 bytes
  const check_report failed = compared(training(516), before, "1%");
  REQUIRE(failed.conditions.size() == 1);
  CHECK(failed.conditions[0].before == 1500);
  CHECK(failed.conditions[0].at_most == 1515);
  CHECK(failed.conditions[0].reason == check_reason::baseline);
  CHECK(verdict_of(failed) ==
        "check: failed: peak of cpu 1,516 B is 16 B over the baseline's 1.46 KiB (at most 1,515 B): forward/attention +16 B "
        "since the baseline");
  CHECK(compared(training(531), before, "31").has_passed());
  CHECK_FALSE(compared(training(532), before, "31").has_passed());
  CHECK(compared(training(100), before, "0").has_passed());
}

TEST_CASE("check: a limit that a change broke names the change, if there is a baseline") {
  const run_baseline before = baseline_of(training(500));
  check_request request;
  request.limits.push_back({check_subject::space, {}, 1600});
  request.baseline = &before;
  request.tolerance = memprof::parse_tolerance("100%");
  CHECK(verdict_of(check_run(training(700), request)) ==
        "check: failed: peak of cpu 1.66 KiB is 100 B over 1.56 KiB: forward/attention +200 B since the baseline (1 of 2 "
        "conditions "
        "failed)");
}

TEST_CASE("check: segments and operations are compared with the baseline, too, if asked for") {
  // The forward pass grows under the peak, which is in BACKWARD.
  const auto program = [](std::size_t forward) {
    auto capture = memprof::begin_capture();
    { const buffer kept = allocated_in("forward", forward); }
    memprof::snapshot("FORWARD");
    { const buffer kept = allocated_in("backward", 1000); }
    memprof::snapshot("BACKWARD");
    capture.end();
    return capture.profile();
  };
  const run_baseline before = reduced(baseline_of(program(500)));
  const memprof::profile after = program(600);
  CHECK(compared(after, before, "0").has_passed());
  const check_report segments = compared(after, before, "0", {check_subject::segment});
  CHECK(segments.conditions.size() == 3);
  CHECK(segments.failures() == 1);
  CHECK_THAT(verdict_of(segments), ContainsSubstring("peak of cpu in FORWARD 600 B is 100 B over the baseline's 500 B"));
  const check_report operations = compared(after, before, "0", {check_subject::operation});
  CHECK(operations.conditions.size() == 2);
  CHECK_THAT(verdict_of(operations), ContainsSubstring("peak of operation forward in cpu 600 B is 100 B over"));
}

TEST_CASE("check: of layers that are one row of the baseline, the greatest is compared") {
  const auto program = [](std::size_t last) {
    auto capture = memprof::begin_capture();
    std::deque<buffer> kept;
    for (int layer = 0; layer < 12; ++layer) kept.push_back(allocated_in("h." + std::to_string(layer), layer == 7 ? last : 100));
    capture.end();
    return capture.profile();
  };
  const run_baseline before = reduced(baseline_of(program(100)));
  const check_report of = compared(program(130), before, "0", {check_subject::operation});
  REQUIRE(of.conditions.size() == 1);
  CHECK(of.conditions[0].name == "h.7");
  CHECK(of.conditions[0].bytes == 130);
  CHECK(of.conditions[0].before == 100);
}

TEST_CASE("check: a small layer that grows is found beside larger ones of its family") {
  const auto program = [](std::size_t first, std::size_t layers = 4) {
    auto capture = memprof::begin_capture();
    std::deque<buffer> kept;
    for (std::size_t layer = 0; layer < layers; ++layer)
      kept.push_back(allocated_in("h." + std::to_string(layer), layer == 0 ? first : layer == 1 ? 100 : 200));
    capture.end();
    return capture.profile();
  };
  const run_baseline before = reduced(baseline_of(program(100)));
  REQUIRE(before.spaces[0].operations.size() == 2);  // two layers of 100 bytes, two of 200
  const check_report of = compared(program(150), before, "0", {check_subject::operation});
  REQUIRE(of.conditions.size() == 1);
  CHECK(of.conditions[0].name == "h.0");
  CHECK(of.conditions[0].bytes == 150);
  CHECK(of.conditions[0].before == 100);
  CHECK_FALSE(of.has_passed());
  CHECK(compared(program(100), before, "0", {check_subject::operation}).has_passed());
  CHECK(compared(program(90), before, "0", {check_subject::operation}).has_passed());
  // A layer more is one with the bytes of the smallest, or has too many.
  CHECK_FALSE(compared(program(100, 5), before, "0", {check_subject::operation}).has_passed());
}

TEST_CASE("check: runs without a common memory space cannot be compared") {
  run_baseline other;
  other.spaces.emplace_back().space = "cuda:0";
  CHECK_THROWS_MATCHES(compared(training(1), other, "0"), memprof::error,
                       MessageMatches(ContainsSubstring("'run.json' has cpu, and the baseline has cuda:0")));
}

TEST_CASE("check: runs of different programs cannot be compared") {
  auto capture = memprof::begin_capture();
  const buffer kept = allocated_in("decoder", 1000);
  memprof::snapshot("INFERENCE");
  capture.end();
  const run_baseline other = reduced(baseline_of(capture.profile()));
  CHECK_THROWS_MATCHES(
      compared(training(500), other, "0"), memprof::error,
      MessageMatches(ContainsSubstring("'run.json' and the baseline have no segment and hardly an operation in common")));
}

TEST_CASE("check: one common operation does not make two programs one, unless one of them has no other") {
  const auto program = [](std::initializer_list<const char*> operations) {
    auto capture = memprof::begin_capture();
    for (const char* const operation : operations) (void)allocated_in(operation, 1000);
    capture.end();
    return baseline_of(capture.profile());
  };
  const auto seem_different = [&](std::initializer_list<const char*> left, std::initializer_list<const char*> right) {
    return seem_different_programs(program(left), program(right));
  };
  CHECK(seem_different({"forward", "decoder"}, {"forward", "encoder"}));
  CHECK_FALSE(seem_different({"forward", "loss", "decoder"}, {"forward", "loss", "encoder"}));
  CHECK_FALSE(seem_different({"forward"}, {"forward", "encoder"}));
  CHECK(seem_different({"forward"}, {"encoder"}));
  CHECK(seem_different({"h.0", "a"}, {"h.7", "b"}));
  CHECK_FALSE(seem_different({"h.0", "h.1"}, {"h.0", "h.7"}));
  CHECK_FALSE(seem_different({}, {"encoder"}));
}

TEST_CASE("check: without names, programs are told apart by their files, or by Python's scripts") {
  const auto program = [](const char* command_line) {
    memprof::profile of;
    of.process.command_line = command_line;
    of.spaces.emplace_back().name = "cpu";
    return baseline_of(of);
  };
  const auto seem_different = [&](const char* left, const char* right) {
    return seem_different_programs(program(left), program(right));
  };
  CHECK(seem_different("/usr/bin/xz -9 file", "sqlite3 file"));
  CHECK_FALSE(seem_different("/usr/bin/xz -9 file", "/opt/xz"));
  CHECK_FALSE(seem_different("", "/opt/xz"));
  CHECK(seem_different("python3.11 -u train.py", "python3.11 evaluate.py"));
  CHECK_FALSE(seem_different("python3.11 -u old/train.py --layers 3", "python3.13 train.py"));
  CHECK_FALSE(seem_different("python3 -c train.py", "python3 -c evaluate.py"));  // text, not names
  CHECK(seem_different("python3 -m train", "python3 -m evaluate"));
}

TEST_CASE("check: of which programs runs without names are is said, and can be overridden") {
  memprof::profile of = training(500);
  of.process.command_line = "./train";
  run_baseline other;
  other.spaces.emplace_back().space = "cpu";
  other.program = "eval\nuate";
  CHECK_THROWS_MATCHES(compared(of, other, "0"), memprof::error,
                       MessageMatches(ContainsSubstring("are of 'train' and 'eval\\nuate'") &&
                                      ContainsSubstring("--any-program compares them all the same")));
  check_request request;
  request.baseline = &other;
  request.any_program = true;
  CHECK_FALSE(check_run(of, request).has_passed());
}

TEST_CASE("check: growth of 3 % a change passes against the last run, and fails against the baseline that was committed") {
  const run_baseline committed = reduced(baseline_of(training(100'000)));
  run_baseline last = committed;
  std::size_t activations = 100'000;
  int failures = 0;
  for (int change = 0; change < 10; ++change) {
    activations += activations * 3 / 100;
    const memprof::profile of = training(activations);
    CHECK(compared(of, last, "5%").has_passed());
    failures += compared(of, committed, "5%").has_passed() ? 0 : 1;
    last = reduced(baseline_of(of));
  }
  CHECK(failures == 9);  // 1.03 squared is more than 1.05
}

TEST_CASE("check: a run that is not exact, in another mode or on another device says so") {
  memprof::profile of = training(500);
  run_baseline before = baseline_of(of);
  before.exact = false;
  before.mode = memprof::run_mode::no_dispatch;
  before.device = "one";
  of.device = "two";
  of.exact = false;
  CHECK_THROWS_MATCHES(compared(of, before, "0"), memprof::error,
                       MessageMatches(ContainsSubstring("the run's device is 'two', that of the baseline 'one'; --space NAME")));
  check_request request;
  request.space = "cpu";
  request.baseline = &before;
  const check_report report = check_run(of, request);
  CHECK(report.has_passed());
  CHECK_THAT(verdict_of(report), ContainsSubstring("(the run is not exact)"));
  const std::string text = to_text(report);
  CHECK_THAT(text, ContainsSubstring("the profile is not exact") && ContainsSubstring("the baseline is not exact") &&
                       ContainsSubstring("the run's mode is normal, that of the baseline no_dispatch") &&
                       ContainsSubstring("the run's device is 'two', that of the baseline 'one'"));
  CHECK(to_json(report).at("caveats").size() == report.caveats.size());
}

namespace {

struct grown {
  memprof::profile profile;
  memprof::leak_report leaks;
};

/// `steps` steps, of which each that `keeps` says leaves 256 bytes of log_metrics behind.
template <class Keeps>
grown steps_that_keep(int steps, Keeps&& keeps) {
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events});
  std::deque<buffer> kept;
  for (int step = 0; step < steps; ++step) {
    (void)allocated_in("forward", 5000);
    if (keeps(step)) kept.push_back(allocated_in("log_metrics", 256));
    memprof::snapshot("STEP");
  }
  capture.end();
  grown made{capture.profile(), {}};
  made.leaks = find_leaks(events, made.profile);
  return made;
}

check_report growth_checked(const grown& of, std::int64_t at_most, bool has_trace) {
  check_request request;
  request.growth = memprof::check_limit{};
  request.growth->at_most = at_most;
  return check_run(of.profile, request, has_trace ? &of.leaks : nullptr);
}

}  // namespace

TEST_CASE("check: growth per step is limited, and has an owner, from a trace as from a profile") {
  for (const int steps : {40, 1000}) {  // of 1000, the profile does not have all in full
    INFO(steps);
    const grown leaking = steps_that_keep(steps, [](int) { return true; });
    for (const bool has_trace : {true, false}) {
      CHECK(growth_checked(leaking, 256, has_trace).has_passed());
      const check_report failed = growth_checked(leaking, 0, has_trace);
      REQUIRE(failed.conditions.size() == 1);
      CHECK(failed.conditions[0].bytes == 256);
      CHECK(verdict_of(failed) ==
            "check: failed: cpu grows by 256 B per step, at most 0 B are allowed: log_metrics +256 B per step, since step 1");
    }
    const grown warming_up = steps_that_keep(steps, [](int step) { return step < 3; });
    const grown level = steps_that_keep(steps, [](int) { return false; });
    for (const bool has_trace : {true, false}) {
      CHECK(verdict_of(growth_checked(warming_up, 0, has_trace)) == "check: passed: cpu does not grow");
      CHECK(growth_checked(level, 0, has_trace).has_passed());
    }
  }
  const grown short_run = steps_that_keep(7, [](int) { return true; });
  for (const bool has_trace : {true, false}) {
    CHECK_THROWS_MATCHES(growth_checked(short_run, 0, has_trace), memprof::error,
                         MessageMatches(ContainsSubstring("cannot be judged: at least 8 steps are needed, and there are 7")));
  }
}

TEST_CASE("check: a run without steps is told how to have some, however much it allocates") {
  const grown nothing = steps_that_keep(1'000, [](int) { return true; });
  memprof::leak_report leaks = nothing.leaks;
  leaks.is_by_count = true;
  check_request request;
  request.growth = memprof::check_limit{};
  CHECK_THROWS_MATCHES(check_run(nothing.profile, request, &leaks), memprof::error,
                       MessageMatches(ContainsSubstring("no segment's name repeats; end each step with a segment")));
}

TEST_CASE("check: at the limit, all digits are shown") {
  memprof::check_report of;
  of.exact = true;
  memprof::check_condition& condition = of.conditions.emplace_back();
  condition.space = "cpu";
  condition.bytes = 562'976;
  condition.at_most = 562'975;
  CHECK(verdict_of(of) == "check: failed: peak of cpu 562,976 B is 1 B over 562,975 B");
  condition.reason = memprof::check_reason::baseline;
  condition.before = 500'000;
  CHECK(verdict_of(of) == "check: failed: peak of cpu 562,976 B is 61.5 KiB over the baseline's 488 KiB (at most 562,975 B)");
}

TEST_CASE("check: the verdict is short, whatever the names, and rows of a limit and a baseline can be told apart") {
  memprof::check_report of;
  of.exact = true;
  memprof::check_condition condition;
  condition.space = "cpu";
  condition.bytes = 5'000;
  condition.at_most = 10;
  condition.owners.push_back({std::string(500, 'x') + "/last", 1, 5'000, 0});
  of.conditions.push_back(condition);
  CHECK(verdict_of(of).size() < 200);
  CHECK_THAT(verdict_of(of), ContainsSubstring("/last holds 4.88 KiB"));
  condition.reason = memprof::check_reason::baseline;
  condition.before = 10;
  of.conditions.push_back(condition);
  CHECK_THAT(to_text(of), ContainsSubstring("peak of cpu  ") && ContainsSubstring("peak of cpu (baseline)  "));
  CHECK_THAT(to_text(of), ContainsSubstring("Largest, in peak of cpu"));
}

TEST_CASE("check: less than a byte per step is not nothing") {
  const grown rare = steps_that_keep(1000, [](int step) { return step % 300 == 0; });  // 0.85 bytes a step
  const check_report of = growth_checked(rare, 0, true);
  // Four blocks are too few for a verdict; that is said.
  CHECK(of.has_passed());
  CHECK_THAT(to_text(of), ContainsSubstring("log_metrics grew until the end"));
  memprof::leak_report leaks = rare.leaks;
  leaks.spaces[0].per_step = 0.25;
  check_request request;
  request.growth = memprof::check_limit{};
  CHECK(check_run(rare.profile, request, &leaks).conditions[0].bytes == 1);
}

TEST_CASE("check: what grows less than a byte per step is shown as it is") {
  check_report of;
  of.exact = true;
  memprof::check_condition& condition = of.conditions.emplace_back();
  condition.reason = memprof::check_reason::growth;
  condition.space = "cpu";
  condition.bytes = 1;
  condition.per_step = 0.01;
  condition.owners.push_back({"fwd", 1, 1, 1, 0.01});
  CHECK(verdict_of(of) ==
        "check: failed: cpu grows by 0.010 B per step, at most 0 B are allowed: fwd +0.010 B per step, since step 1");
  CHECK_THAT(to_text(of), ContainsSubstring("failed, 0.010 B over"));
  CHECK(to_json(of)["conditions"][0]["bytes_per_step"] == 0.01);
}

TEST_CASE("check: a queue that is full passes, from a trace as from a profile") {
  for (const int steps : {40, 100, 2'000}) {
    INFO(steps);
    memprof::trace events;
    std::deque<buffer> queue;
    auto capture = memprof::begin_capture({.trace = &events});
    for (int step = 0; step < steps; ++step) {
      queue.push_back(allocated_in("enqueue", 100));
      if (step >= steps * 3 / 4) queue.pop_front();
      memprof::snapshot("STEP");
    }
    capture.end();
    grown full{capture.profile(), {}};
    full.leaks = find_leaks(events, full.profile);
    for (const bool has_trace : {true, false}) CHECK(growth_checked(full, 0, has_trace).has_passed());
  }
}

TEST_CASE("check: what grows while as much of other memory is freed passes, and is named") {
  for (const std::size_t added : {300U, 400U}) {
    memprof::trace events;
    std::deque<buffer> work;
    std::deque<buffer> results;
    auto capture = memprof::begin_capture({.trace = &events});
    for (int item = 0; item < 1'000; ++item) work.push_back(allocated_in("init", 300));
    for (int step = 0; step < 100; ++step) {
      work.pop_back();
      results.push_back(allocated_in("consume", added));
      memprof::snapshot("STEP");
    }
    capture.end();
    grown of{capture.profile(), {}};
    of.leaks = find_leaks(events, of.profile);
    for (const bool has_trace : {true, false}) {
      const check_report found = growth_checked(of, 0, has_trace);
      CHECK(found.has_passed() == (added == 300));
      if (added != 300) continue;
      CHECK(verdict_of(found) == "check: passed: cpu does not grow");
      REQUIRE(found.caveats.size() == 1);
      CHECK(found.caveats[0] == "consume grows by 300 B per step in cpu, and as much or more of other memory is freed");
    }
  }
}

TEST_CASE("check: names are found as reports show them") {
  auto capture = memprof::begin_capture();
  (void)allocated_in("line\nbreak", 100);
  (void)allocated_in("<b>a</b>", 100);
  capture.end();
  const memprof::profile of = capture.profile();
  for (const char* const name : {"line\nbreak", "line\\nbreak", "<b>a</b>", "<b>a<\\/b>"})
    CHECK(limited(of, check_subject::operation, name, 100).conditions.size() == 1);
}

TEST_CASE("check: a limit for a space that is not to be checked is told why") {
  auto capture = memprof::begin_capture();
  memprof::memory_resource device{"gpu"};
  device.deallocate(device.allocate(10), 10);
  (void)allocated_in("work", 100);
  capture.end();
  check_request request;
  request.space = "cpu";
  request.limits.push_back({check_subject::space, "gpu", 5});
  CHECK_THROWS_MATCHES(check_run(capture.profile(), request), memprof::error,
                       MessageMatches(ContainsSubstring("a limit for memory space 'gpu', and only 'cpu' is to be checked")));
}

TEST_CASE("check: a tolerance is a share or bytes") {
  CHECK(memprof::parse_tolerance("1%").greatest(1000) == 1010);
  CHECK(memprof::parse_tolerance("0.5 %").greatest(1000) == 1005);
  CHECK(memprof::parse_tolerance("0.3%").greatest(1000) == 1003);
  CHECK(memprof::parse_tolerance("1%").greatest(99) == 99);
  CHECK(memprof::parse_tolerance("16KiB").greatest(0) == 16384);
  CHECK(memprof::parse_tolerance("0").greatest(7) == 7);
  CHECK(memprof::parse_tolerance("1000000%").greatest(INT64_MAX) == INT64_MAX);
  for (const char* const text : {"", "%", "-1%", "x%", "1 percent", "nan%", "12G"}) {
    INFO(text);
    CHECK_THROWS_MATCHES(memprof::parse_tolerance(text), memprof::error, MessageMatches(ContainsSubstring("is no tolerance")));
  }
}

TEST_CASE("check: the JSON has the keys of its schema, and little of many conditions") {
  check_report report = written("forward");
  report.conditions[0].owners.push_back({"forward", 1, 11, 0});
  const nlohmann::json schema = read_schema("check.schema.json");
  const nlohmann::ordered_json document = to_json(report);
  check_keys(document, schema);
  check_keys(document.at("conditions").at(0), schema.at("definitions").at("condition"));
  check_keys(document.at("conditions").at(0).at("owners").at(0), schema.at("definitions").at("owner"));
  CHECK(document.at("passed") == false);
  CHECK(document.at("verdict") == verdict_of(report));

  check_condition passed = report.conditions[0];
  passed.bytes = 0;
  passed.owners.clear();
  report.conditions.insert(report.conditions.begin(), 5000, passed);
  const nlohmann::ordered_json many = to_json(report);
  CHECK(many.at("condition_count") == 5001);
  CHECK(many.at("conditions").size() == 100);
  CHECK(many.at("conditions").at(0).at("passed") == false);
}

TEST_CASE("check: annotations of GitHub escape as its toolkit does, and name the place of the limit") {
  check_report report = written("a:b,c%d");
  report.conditions[0].file = "ci/memprof,1.toml";
  report.conditions[0].line = 7;
  // core/src/command.ts: escapeData replaces %, CR and LF; escapeProperty also : and ,
  CHECK(to_github_annotations(report) ==
        "::error file=ci/memprof%2C1.toml,line=7,title=memprof%3A peak of operation a%3Ab%2Cc%25d in cpu::"
        "peak of operation a:b,c%25d in cpu 11 B is 1 B over 10 B\n");
  report.conditions[0].file = "a\nb\rc";
  CHECK_THAT(to_github_annotations(report), StartsWith("::error file=a%0Ab%0Dc,line=7,"));
  report.conditions.push_back(report.conditions[0]);
  report.conditions.back().bytes = 1;
  const std::string text = to_github_annotations(report);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("check: GitLab gets an issue for each condition that failed, with a place and a fingerprint of its own") {
  check_report report = written("a\n\"b");
  report.baseline_file = "./ci/baseline.json";
  const auto issues = nlohmann::ordered_json::parse(to_gitlab_code_quality(report));
  REQUIRE(issues.size() == 1);
  CHECK(issues[0]["description"] == "memprof: " + condition_text(report.conditions[0]));
  CHECK(issues[0]["check_name"] == "memprof-limit");
  CHECK(issues[0]["severity"] == "major");
  CHECK(issues[0]["location"] == nlohmann::ordered_json{{"path", "ci/baseline.json"}, {"lines", {{"begin", 1}}}});
  CHECK(issues[0]["fingerprint"].get<std::string>().size() == 16);

  report.conditions.push_back(report.conditions[0]);
  report.conditions.back().file = "ci/memprof.toml";
  report.conditions.back().line = 7;
  report.conditions.push_back(report.conditions[0]);
  report.conditions.back().bytes = 1;
  const auto two = nlohmann::ordered_json::parse(to_gitlab_code_quality(report));
  REQUIRE(two.size() == 2);
  CHECK(two[0]["fingerprint"] == issues[0]["fingerprint"]);
  CHECK(two[1]["fingerprint"] != issues[0]["fingerprint"]);
  CHECK(two[1]["location"] == nlohmann::ordered_json{{"path", "ci/memprof.toml"}, {"lines", {{"begin", 7}}}});
  report.conditions.erase(report.conditions.begin(), report.conditions.begin() + 2);
  CHECK(to_gitlab_code_quality(report) == "[]\n");
}

TEST_CASE("check: JUnit XML stays well-formed whatever names there are") {
  const std::string hostile = std::string{"a<b>&\"'\x01"} + "\xFF" + "\xEF\xBF\xBF" + "]]>";
  const std::string text = to_junit(written(hostile));
  CHECK_THAT(text, ContainsSubstring("tests=\"1\" failures=\"1\"") &&
                       ContainsSubstring("a&lt;b&gt;&amp;&quot;'\\x01\\xff\xEF\xBF\xBD]]&gt;"));
  for (const char letter : text) CHECK((static_cast<unsigned char>(letter) >= 0x20 || letter == '\n'));
  // The declaration; testsuites, testsuite, testcase and failure begin and end.
  CHECK(std::count(text.begin(), text.end(), '<') == 1 + 2 * 4);
}

TEST_CASE("check: a Markdown summary is cut after a row, and says so") {
  check_report report = written("x|y`z");
  CHECK_THAT(to_markdown(report), ContainsSubstring("x\\|y\\`z") && ContainsSubstring("**1 B over**"));
  for (int more = 0; more < 20'000; ++more) report.conditions.push_back(report.conditions[0]);
  const std::string text = to_markdown(report);
  CHECK(text.size() <= std::size_t{1} << 20);
  CHECK(text.size() > (std::size_t{1} << 20) - 1000);
  CHECK(text.ends_with(" |\n\n(cut: the rest does not fit)\n"));
}

}  // namespace memprof_tests::analysis_check
