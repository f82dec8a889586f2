#include <unit/ledger/ledger_driver.hpp>
#include <unit/ledger/usage_in_cpu.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace memprof_tests::ledger_operations {

using memprof::operation_profile;
using memprof::operation_usage;
using memprof::profile;
using memprof::test::ledger_driver;
using memprof::test::usage_in_cpu;

TEST_CASE("operations: inclusive values contain the operations within, self values do not") {
  ledger_driver driver;
  driver.begin("forward", 1);
  driver.allocate(0x100, 100);
  driver.begin("attention", 2);
  driver.allocate(0x200, 50);
  driver.free(0x200);
  driver.allocate(0x300, 30);
  driver.end("attention", 2);
  driver.allocate(0x400, 7);
  driver.free(0x100);
  driver.end("forward", 1);
  driver.snapshot("ALL");

  const profile made = driver.finished_profile();
  const operation_usage& outer = usage_in_cpu(made, "forward");
  CHECK(outer.allocated == 187);
  CHECK(outer.freed == 150);
  CHECK(outer.total_delta == 37);
  CHECK(outer.max_delta == 37);
  CHECK(outer.self_allocated == 107);
  CHECK(outer.self_freed == 100);
  CHECK(outer.self_delta == 7);
  CHECK(outer.peak == 150);       // 100 + 50
  CHECK(outer.self_peak == 107);  // 100 + 7, without what attention did
  CHECK(outer.live == 7);
  CHECK(outer.allocation_count == 2);
  CHECK(outer.deallocation_count == 1);
  const operation_usage& inner = usage_in_cpu(made, "forward/attention");
  CHECK(inner.allocated == 80);
  CHECK(inner.total_delta == 30);
  CHECK(inner.peak == 50);
  CHECK(inner.self_peak == 50);
  CHECK(inner.live == 30);
  CHECK(made.find_operation("forward/attention")->parent == 0);
}

TEST_CASE("operations: the greatest delta and peaks are those of one invocation, not of their sum") {
  ledger_driver driver;
  for (const std::uint64_t bytes : {10U, 40U, 20U}) {
    driver.begin("step");
    driver.allocate(bytes * 1000, bytes);
    driver.end("step");
  }
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const operation_usage& usage = usage_in_cpu(made, "step");
  CHECK(made.operations[0].invocations == 3);
  CHECK(usage.total_delta == 70);
  CHECK(usage.max_delta == 40);
  CHECK(usage.peak == 40);
  CHECK(usage.self_peak == 40);
}

TEST_CASE("operations: of the invocations the first, the last and the largest are kept, and how many there were") {
  ledger_driver driver;
  std::uint32_t thread = 0;
  for (const std::uint64_t bytes : {10U, 40U, 40U, 0U, 20U}) {
    const memprof::test::where at{0, thread};
    driver.begin("step", 1, at);
    if (bytes != 0) driver.allocate(bytes * 1000 + thread, bytes, at);
    driver.end("step", 1, at);
    ++thread;
  }
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.find_operation("step")->invocations == 5);
  const operation_usage& usage = usage_in_cpu(made, "step");
  // Three events each, 100 ns apart, but two in the one that changes nothing.
  CHECK(usage.first_invocation == memprof::operation_invocation{0, 100, 300, 10, 10});
  CHECK(usage.largest_invocation == memprof::operation_invocation{1, 400, 600, 40, 40});
  CHECK(usage.last_invocation == memprof::operation_invocation{4, 1200, 1400, 20, 20});
}

TEST_CASE("operations: an invocation before its thread first used a space changed nothing in it") {
  ledger_driver driver;
  driver.begin("step");
  driver.end("step");
  driver.begin("step");
  driver.allocate(0x100, 10);
  driver.end("step");
  driver.allocate(0x200, 50);
  driver.begin("step");
  driver.free(0x200);
  driver.end("step");
  driver.snapshot("ALL");
  CHECK(usage_in_cpu(driver.finished_profile(), "step").max_delta == 10);

  ledger_driver only_frees;
  only_frees.allocate(0x100, 10, {.thread = 1});
  only_frees.begin("step");
  only_frees.end("step");  // this thread has not used the space yet: a delta of 0, which is greater than -10
  only_frees.begin("step");
  only_frees.free(0x100);
  only_frees.end("step");
  only_frees.snapshot("ALL");
  CHECK(usage_in_cpu(only_frees.finished_profile(), "step").max_delta == 0);
}

TEST_CASE("operations: the peaks of operations that are still open count, however often somebody looks") {
  ledger_driver driver;
  driver.begin("outer", 1);
  driver.allocate(0x100, 100);
  driver.begin("inner", 2);
  driver.allocate(0x200, 11);
  driver.free(0x200);
  CHECK(usage_in_cpu(driver.open_profile(), "outer").peak == 111);
  const profile made = driver.open_profile();
  CHECK(usage_in_cpu(made, "outer").peak == 111);
  CHECK(usage_in_cpu(made, "outer").self_peak == 100);
  CHECK(usage_in_cpu(made, "outer").max_delta == 0);  // none has finished
  CHECK(usage_in_cpu(made, "outer/inner").peak == 11);
  CHECK(made.anomalies.unbalanced_scopes == 0);
}

TEST_CASE("operations: a name is one operation under each parent, also across threads") {
  ledger_driver driver;
  for (const std::uint32_t thread : {1U, 2U}) {
    driver.begin("a", 1, {.thread = thread});
    driver.begin("b", 2, {.thread = thread});
  }
  driver.begin("b", 1, {.thread = 3});
  const profile made = driver.open_profile();
  std::vector<std::string> paths;
  for (const operation_profile& operation : made.operations) paths.push_back(operation.path);
  CHECK(paths == std::vector<std::string>{"a", "a/b", "b"});
  CHECK(made.operations[1].invocations == 2);
}

TEST_CASE("operations: ends that are missing or belong to nobody are counted, and what follows is right again") {
  ledger_driver driver;
  driver.begin("a", 1);
  driver.begin("b", 2, {}, 1);
  driver.begin("c", 3, {}, 2);
  driver.end("a", 1);  // b and c are still open
  CHECK(driver.events.unbalanced_scopes() == 0);
  driver.end("a", 1);  // it has ended
  CHECK(driver.events.unbalanced_scopes() == 1);
  driver.end("x", 3);  // another name
  CHECK(driver.events.unbalanced_scopes() == 2);
  driver.begin("d", 4, {}, 2);  // the end of c was lost
  CHECK(driver.events.unbalanced_scopes() == 3);
  driver.begin("e", 5, {}, 0);  // and those of d and b
  CHECK(driver.events.unbalanced_scopes() == 5);
  driver.allocate(0x100, 8);
  driver.end("e", 5);
  driver.end("never begun", 0xFFFFFFFF);
  CHECK(driver.events.unbalanced_scopes() == 6);
  CHECK(usage_in_cpu(driver.open_profile(), "e").allocated == 8);
}

TEST_CASE("operations: one that ends before those within hands them to the one around it") {
  ledger_driver driver;
  driver.begin("outer", 1);
  driver.allocate(0x100, 1);
  driver.begin("early", 2, {}, 1);
  driver.allocate(0x200, 10);
  driver.begin("late", 3, {}, 2);
  driver.allocate(0x300, 100);
  driver.free(0x300);
  driver.allocate(0x400, 50);
  driver.end("early", 2);
  driver.allocate(0x500, 1000);  // still in "late"
  driver.end("late", 3);
  driver.allocate(0x600, 10'000);  // in "outer"
  driver.end("outer", 1);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(usage_in_cpu(made, "outer/early").max_delta == 60);  // 10 + 100 - 100 + 50
  CHECK(usage_in_cpu(made, "outer/early").peak == 110);      // 10 + 100
  CHECK(usage_in_cpu(made, "outer/early/late").max_delta == 1050);
  CHECK(usage_in_cpu(made, "outer/early/late").peak == 1050);
  CHECK(usage_in_cpu(made, "outer").max_delta == 11'061);
  CHECK(usage_in_cpu(made, "outer").self_allocated == 10'001);
}

TEST_CASE("operations: one that ends on another thread than it began on is closed there") {
  ledger_driver driver;
  driver.record({0, 7, 0, 0, memprof::extend::event_kind::thread_begin, 0, 0}, 1);
  driver.record({0, 8, 0, 0, memprof::extend::event_kind::thread_begin, 0, 0}, 2);
  driver.begin("coroutine", 1, {.thread = 1});
  driver.allocate(0x100, 10, {.thread = 1});
  driver.allocate(0x200, 100, {.thread = 2});
  driver.end("coroutine", 1, {.thread = 2}, 7);
  driver.allocate(0x300, 1000, {.thread = 1});
  driver.begin("next", 2, {.thread = 1}, 1);
  driver.allocate(0x400, 5, {.thread = 1});
  driver.end("next", 2, {.thread = 1});
  driver.end("gone", 1, {.thread = 2}, 99);  // its thread has ended, and the operation with it
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(usage_in_cpu(made, "coroutine").allocated == 10);
  CHECK(usage_in_cpu(made, "next").allocated == 5);
  CHECK(made.operations.size() == 2);
}

TEST_CASE("operations: threads that are inside operations one after another share the memory for them") {
  const auto bytes_after = [](std::uint32_t threads) {
    ledger_driver driver;
    for (std::uint32_t thread = 1; thread <= threads; ++thread) {
      const auto address = std::uint64_t{0x100} * thread;
      driver.begin("step", 1, {.thread = thread});
      driver.allocate(address, 10, {.thread = thread});
      driver.free(address, 0, {.thread = thread});
      driver.end("step", 1, {.thread = thread});
    }
    CHECK(usage_in_cpu(driver.finished_profile(), "step").allocated == 10 * threads);
    return driver.events.bytes();
  };
  const std::size_t of_one = bytes_after(1);
  CHECK(bytes_after(1000) < of_one + 1000 * std::size_t{1024});  // one stack takes 8 KB
}

TEST_CASE("operations: those that nest too deeply count as part of the deepest that is followed, and the profile says so") {
  ledger_driver driver;
  for (std::uint32_t depth = 1; depth <= 1000; ++depth) driver.begin("recursion", depth, {}, depth - 1);
  driver.allocate(0x100, 8);
  for (std::uint32_t depth = 1000; depth > 0; --depth) driver.end("recursion", depth);
  driver.begin("after", 1001, {}, 0);
  driver.allocate(0x200, 3);
  driver.end("after", 1001);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.anomalies.too_deep_scopes == 1000 - 256);
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(made.operations.size() == 257);
  CHECK(made.operations[255].usage.at(0).self_allocated == 8);
  CHECK(usage_in_cpu(made, "after").allocated == 3);
}

TEST_CASE("operations: a new thread in an old thread's place has no operation open") {
  ledger_driver driver;
  driver.begin("a", 1);
  driver.record({0, 0, 0, 0, memprof::extend::event_kind::thread_begin, 0, 0});
  driver.allocate(0x100, 8);
  const profile made = driver.open_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(made.operations.at(0).usage.empty());
  CHECK(made.space("cpu").peak_operation.empty());
  CHECK(made.space("cpu").live_at_peak.by_operation.at(0).owner == "");
}

TEST_CASE("operations: a path names one operation, whatever their names are") {
  ledger_driver driver;
  for (const std::string_view name : {"a", "a/b", "", "\\", "a\\", "(no operation)", "\\-"}) {
    driver.begin(name, 1);
    driver.begin("b", 2);
    driver.end("b", 2);
    driver.end(name, 1);
  }
  const profile made = driver.open_profile();
  std::vector<std::string> paths;
  for (const operation_profile& operation : made.operations) {
    if (operation.parent < 0) paths.push_back(operation.path);
  }
  CHECK(paths == std::vector<std::string>{"a", R"(a\/b)", R"(\-)", R"(\\)", R"(a\\)", "(no operation)", R"(\\-)"});
  CHECK(std::set<std::string>(paths.begin(), paths.end()).size() == 7);
  CHECK(made.find_operation(R"(a\/b/b)")->name == "b");
  CHECK(made.find_operation("a/b")->parent == 0);
  CHECK(made.find_operation("") == nullptr);
}

}  // namespace memprof_tests::ledger_operations
