#include <unit/ledger/told_ledger.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

using memprof::operation_profile;
using memprof::operation_usage;
using memprof::profile;
using memprof::test::told_ledger;

namespace {

const operation_usage& usage_in_cpu(const profile& made, const char* path) {
  const operation_profile* const operation = made.find_operation(path);
  REQUIRE(operation != nullptr);
  REQUIRE(operation->usage.size() == 1);
  return operation->usage[0];
}

}  // namespace

TEST_CASE("operations: inclusive values contain the operations within, self values do not") {
  told_ledger told;
  told.begin("forward", 1);
  told.allocate(0x100, 100);
  told.begin("attention", 2);
  told.allocate(0x200, 50);
  told.free(0x200);
  told.allocate(0x300, 30);
  told.end("attention", 2);
  told.allocate(0x400, 7);
  told.free(0x100);
  told.end("forward", 1);
  told.snapshot("ALL");

  const profile made = told.finished_profile();
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
  told_ledger told;
  for (const std::uint64_t bytes : {10U, 40U, 20U}) {
    told.begin("step");
    told.allocate(bytes * 1000, bytes);
    told.end("step");
  }
  told.snapshot("ALL");
  const profile made = told.finished_profile();
  const operation_usage& usage = usage_in_cpu(made, "step");
  CHECK(made.operations[0].invocations == 3);
  CHECK(usage.total_delta == 70);
  CHECK(usage.max_delta == 40);
  CHECK(usage.peak == 40);
  CHECK(usage.self_peak == 40);
}

TEST_CASE("operations: an invocation before its thread first used a space changed nothing in it") {
  told_ledger told;
  told.begin("step");
  told.end("step");
  told.begin("step");
  told.allocate(0x100, 10);
  told.end("step");
  told.allocate(0x200, 50);
  told.begin("step");
  told.free(0x200);
  told.end("step");
  told.snapshot("ALL");
  CHECK(usage_in_cpu(told.finished_profile(), "step").max_delta == 10);

  told_ledger only_frees;
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
  told_ledger told;
  told.begin("outer", 1);
  told.allocate(0x100, 100);
  told.begin("inner", 2);
  told.allocate(0x200, 11);
  told.free(0x200);
  CHECK(usage_in_cpu(told.open_profile(), "outer").peak == 111);
  const profile made = told.open_profile();
  CHECK(usage_in_cpu(made, "outer").peak == 111);
  CHECK(usage_in_cpu(made, "outer").self_peak == 100);
  CHECK(usage_in_cpu(made, "outer").max_delta == 0);  // none has finished
  CHECK(usage_in_cpu(made, "outer/inner").peak == 11);
  CHECK(made.anomalies.unbalanced_scopes == 0);
}

TEST_CASE("operations: a name is one operation under each parent, also across threads") {
  told_ledger told;
  for (const std::uint32_t thread : {1U, 2U}) {
    told.begin("a", 1, {.thread = thread});
    told.begin("b", 2, {.thread = thread});
  }
  told.begin("b", 1, {.thread = 3});
  const profile made = told.open_profile();
  std::vector<std::string> paths;
  for (const operation_profile& operation : made.operations) paths.push_back(operation.path);
  CHECK(paths == std::vector<std::string>{"a", "a/b", "b"});
  CHECK(made.operations[1].invocations == 2);
}

TEST_CASE("operations: ends that are missing or belong to nobody are counted, and what follows is right again") {
  told_ledger told;
  told.begin("a", 1);
  told.begin("b", 2, {}, 1);
  told.begin("c", 3, {}, 2);
  told.end("a", 1);  // b and c are still open
  CHECK(told.events.unbalanced_scopes() == 0);
  told.end("a", 1);  // it has ended
  CHECK(told.events.unbalanced_scopes() == 1);
  told.end("x", 3);  // another name
  CHECK(told.events.unbalanced_scopes() == 2);
  told.begin("d", 4, {}, 2);  // the end of c was lost
  CHECK(told.events.unbalanced_scopes() == 3);
  told.begin("e", 5, {}, 0);  // and those of d and b
  CHECK(told.events.unbalanced_scopes() == 5);
  told.allocate(0x100, 8);
  told.end("e", 5);
  told.end("never begun", 0xFFFFFFFF);
  CHECK(told.events.unbalanced_scopes() == 6);
  CHECK(usage_in_cpu(told.open_profile(), "e").allocated == 8);
}

TEST_CASE("operations: one that ends before those within hands them to the one around it") {
  told_ledger told;
  told.begin("outer", 1);
  told.allocate(0x100, 1);
  told.begin("early", 2, {}, 1);
  told.allocate(0x200, 10);
  told.begin("late", 3, {}, 2);
  told.allocate(0x300, 100);
  told.free(0x300);
  told.allocate(0x400, 50);
  told.end("early", 2);
  told.allocate(0x500, 1000);  // still in "late"
  told.end("late", 3);
  told.allocate(0x600, 10'000);  // in "outer"
  told.end("outer", 1);
  told.snapshot("ALL");
  const profile made = told.finished_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(usage_in_cpu(made, "outer/early").max_delta == 60);  // 10 + 100 - 100 + 50
  CHECK(usage_in_cpu(made, "outer/early").peak == 110);      // 10 + 100
  CHECK(usage_in_cpu(made, "outer/early/late").max_delta == 1050);
  CHECK(usage_in_cpu(made, "outer/early/late").peak == 1050);
  CHECK(usage_in_cpu(made, "outer").max_delta == 11'061);
  CHECK(usage_in_cpu(made, "outer").self_allocated == 10'001);
}

TEST_CASE("operations: one that ends on another thread than it began on is closed there") {
  told_ledger told;
  told.tell({0, 7, 0, 0, memprof::event_kind::thread_begin, 0, 0}, 1);
  told.tell({0, 8, 0, 0, memprof::event_kind::thread_begin, 0, 0}, 2);
  told.begin("coroutine", 1, {.thread = 1});
  told.allocate(0x100, 10, {.thread = 1});
  told.allocate(0x200, 100, {.thread = 2});
  told.end("coroutine", 1, {.thread = 2}, 7);
  told.allocate(0x300, 1000, {.thread = 1});
  told.begin("next", 2, {.thread = 1}, 1);
  told.allocate(0x400, 5, {.thread = 1});
  told.end("next", 2, {.thread = 1});
  told.end("gone", 1, {.thread = 2}, 99);  // its thread has ended, and the operation with it
  told.snapshot("ALL");
  const profile made = told.finished_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(usage_in_cpu(made, "coroutine").allocated == 10);
  CHECK(usage_in_cpu(made, "next").allocated == 5);
  CHECK(made.operations.size() == 2);
}

TEST_CASE("operations: those that nest too deeply count as part of the deepest that is followed, and the profile says so") {
  told_ledger told;
  for (std::uint32_t depth = 1; depth <= 1000; ++depth) told.begin("recursion", depth, {}, depth - 1);
  told.allocate(0x100, 8);
  for (std::uint32_t depth = 1000; depth > 0; --depth) told.end("recursion", depth);
  told.begin("after", 1001, {}, 0);
  told.allocate(0x200, 3);
  told.end("after", 1001);
  told.snapshot("ALL");
  const profile made = told.finished_profile();
  CHECK(made.anomalies.too_deep_scopes == 1000 - 256);
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(made.operations.size() == 257);
  CHECK(made.operations[255].usage.at(0).self_allocated == 8);
  CHECK(usage_in_cpu(made, "after").allocated == 3);
}

TEST_CASE("operations: a new thread in an old thread's place has no operation open") {
  told_ledger told;
  told.begin("a", 1);
  told.tell({0, 0, 0, 0, memprof::event_kind::thread_begin, 0, 0});
  told.allocate(0x100, 8);
  const profile made = told.open_profile();
  CHECK(made.anomalies.unbalanced_scopes == 0);
  CHECK(made.operations.at(0).usage.empty());
  CHECK(made.space("cpu").peak_operation.empty());
  CHECK(made.space("cpu").live_at_peak.by_operation.at(0).owner == "");
}

TEST_CASE("operations: a path names one operation, whatever their names are") {
  told_ledger told;
  for (const std::string_view name : {"a", "a/b", "", "\\", "a\\", "(no operation)", "\\-"}) {
    told.begin(name, 1);
    told.begin("b", 2);
    told.end("b", 2);
    told.end(name, 1);
  }
  const profile made = told.open_profile();
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
