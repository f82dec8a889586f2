#include <unit/ledger/told_ledger.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
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
  told.begin("b", 2);
  told.begin("c", 3);
  told.end("a", 1);  // the ends of b and c were lost
  CHECK(told.events.unbalanced_scopes() == 2);
  told.end("a", 1);  // nothing is open
  CHECK(told.events.unbalanced_scopes() == 3);
  told.begin("a", 1);
  told.end("x", 1);  // another name
  CHECK(told.events.unbalanced_scopes() == 4);
  told.begin("d", 1);  // the end of a was lost
  CHECK(told.events.unbalanced_scopes() == 5);
  told.allocate(0x100, 8);
  told.end("d", 1);
  told.end("deep", 0xFFFFFFFF);
  CHECK(told.events.unbalanced_scopes() == 6);
  CHECK(usage_in_cpu(told.open_profile(), "d").allocated == 8);
}

TEST_CASE("operations: the end of the deepest possible depth closes nothing else") {
  told_ledger told;
  told.begin("a", 1);
  told.end("deep", 0xFFFFFFFF);
  CHECK(told.events.unbalanced_scopes() == 1);
  told.end("a", 1);
  CHECK(told.events.unbalanced_scopes() == 1);
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
  CHECK(made.space("cpu").live_at_peak.by_operation.at(0).owner == "(no operation)");
}
