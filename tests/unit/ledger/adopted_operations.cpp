#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/saved_state.hpp>
#include <unit/ledger/ledger_driver.hpp>
#include <unit/ledger/usage_in_cpu.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::adopted_operations {

using memprof::category;
using memprof::operation_profile;
using memprof::operation_usage;
using memprof::profile;
using memprof::test::ledger_driver;
using memprof::test::usage_in_cpu;

namespace {

// Threads are rings here: their numbers are the same until a `thread_begin`.
constexpr memprof::test::where leader{.thread = 1};
constexpr memprof::test::where worker{.thread = 2};
constexpr memprof::test::where other{.thread = 3};

}  // namespace

TEST_CASE("adopted operations: a worker's bytes are the operation's own, in its delta and peaks too") {
  ledger_driver driver;
  driver.begin("step", 1, leader);
  driver.begin("forward", 2, leader);
  driver.allocate(0x100, 100, leader);
  driver.adopt("forward", 2, 1, worker);
  driver.allocate(0x200, 50, worker);
  driver.free(0x100, 0, leader);
  driver.allocate(0x300, 30, worker);
  driver.end("forward", 1, worker);
  driver.allocate(0x400, 1000, worker);  // no longer
  driver.end("forward", 2, leader);
  driver.end("step", 1, leader);
  driver.snapshot("ALL");

  const profile made = driver.finished_profile();
  REQUIRE(made.operations.size() == 2);
  const operation_usage& forward = usage_in_cpu(made, "step/forward");
  CHECK(forward.self_allocated == 180);
  CHECK(forward.allocation_count == 3);
  CHECK(forward.freed == 100);
  CHECK(forward.peak == 150);
  CHECK(forward.self_peak == 150);
  CHECK(forward.max_delta == 80);
  CHECK(forward.live == 80);
  CHECK(forward.inferred == 0);
  CHECK(made.find_operation("step/forward")->invocations == 1);
  CHECK(usage_in_cpu(made, "step").peak == 150);
  CHECK(usage_in_cpu(made, "step").max_delta == 80);
  CHECK(made.anomalies.unbalanced_scopes == 0);
}

TEST_CASE("adopted operations: the peak is that of one moment, whichever thread reached it") {
  // Both workers rise to 100, one after the other, while the leader holds 10: 110 at each moment, never 210.
  ledger_driver driver;
  driver.begin("step", 1, leader);
  driver.allocate(0x100, 10, leader);
  driver.adopt("step", 1, 1, worker);
  driver.adopt("step", 1, 1, other);
  driver.allocate(0x200, 100, worker);
  driver.free(0x200, 0, worker);
  driver.allocate(0x300, 100, other);
  driver.free(0x300, 0, other);
  SECTION("and a peak of both together counts both") {
    driver.allocate(0x400, 70, worker);
    driver.allocate(0x500, 80, other);
    driver.end("step", 1, leader);
    CHECK(usage_in_cpu(driver.finished_profile(), "step").peak == 160);
    CHECK(usage_in_cpu(driver.finished_profile(), "step").max_delta == 160);
  }
  SECTION("also while the operation is open") { CHECK(usage_in_cpu(driver.open_profile(), "step").peak == 110); }
}

TEST_CASE("adopted operations: what a worker tracks is nested in the adopted operation") {
  ledger_driver driver;
  driver.begin("forward", 1, leader);
  driver.adopt("forward", 1, 1, worker);
  driver.begin("matmul", 2, worker);
  driver.allocate(0x100, 40, worker);
  driver.begin("add", 2, leader);  // meanwhile
  driver.allocate(0x200, 5, leader);
  driver.end("add", 2, leader);
  driver.free(0x100, 0, worker);
  driver.end("matmul", 2, worker);
  driver.end("forward", 1, worker);
  driver.end("forward", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "forward/matmul").peak == 40);
  CHECK(usage_in_cpu(made, "forward/matmul").max_delta == 0);
  CHECK(usage_in_cpu(made, "forward/add").peak == 5);
  CHECK(usage_in_cpu(made, "forward").peak == 45);
  CHECK(usage_in_cpu(made, "forward").self_peak == 0);
  CHECK(usage_in_cpu(made, "forward").max_delta == 5);
  CHECK(made.find_operation("forward/matmul")->invocations == 1);
}

TEST_CASE("adopted operations: the worker's own operations do not see what it does for another") {
  ledger_driver driver;
  driver.begin("forward", 1, leader);
  driver.begin("serve", 1, worker);
  driver.allocate(0x100, 3, worker);
  driver.adopt("forward", 1, 1, worker, 2, 1);
  driver.allocate(0x200, 50, worker);
  driver.end("forward", 2, worker);
  driver.allocate(0x300, 4, worker);
  driver.end("serve", 1, worker);
  driver.end("forward", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "serve").max_delta == 7);
  CHECK(usage_in_cpu(made, "serve").peak == 7);
  CHECK(usage_in_cpu(made, "forward").max_delta == 50);
}

TEST_CASE("adopted operations: after the operation has ended its path goes on, and the invocation around it") {
  ledger_driver driver;
  driver.begin("step", 1, leader);
  driver.begin("forward", 2, leader);
  driver.adopt("forward", 2, 1, worker);
  driver.allocate(0x100, 10, worker);
  driver.end("forward", 2, leader);
  driver.allocate(0x200, 20, worker);
  driver.end("step", 1, leader);
  driver.allocate(0x300, 40, worker);
  driver.end("forward", 1, worker);
  const profile made = driver.finished_profile();
  const operation_usage& forward = usage_in_cpu(made, "step/forward");
  CHECK(forward.self_allocated == 70);
  CHECK(forward.max_delta == 10);
  CHECK(forward.peak == 10);
  CHECK(usage_in_cpu(made, "step").max_delta == 30);
  CHECK(usage_in_cpu(made, "step").self_peak == 0);
  CHECK(usage_in_cpu(made, "step").allocated == 70);
}

TEST_CASE("adopted operations: one that ended before is found by its name, if that is the only one") {
  ledger_driver driver;
  driver.begin("step", 1, leader);
  driver.begin("forward", 2, leader);
  driver.end("forward", 2, leader);
  SECTION("the only one") {
    driver.adopt("forward", 2, 1, worker);
    driver.allocate(0x100, 10, worker);
    driver.end("forward", 1, worker);
    driver.end("step", 1, leader);
    CHECK(usage_in_cpu(driver.finished_profile(), "step/forward").self_allocated == 10);
    CHECK(usage_in_cpu(driver.finished_profile(), "step/forward").max_delta == 0);
    CHECK(usage_in_cpu(driver.finished_profile(), "step/forward").peak == 0);
  }
  SECTION("one of two: an outermost one stands for it") {
    driver.begin("validation", 3, leader, 1);
    driver.begin("forward", 4, leader, 3);
    driver.end("forward", 4, leader);
    driver.end("validation", 3, leader);
    driver.adopt("forward", 2, 1, worker);
    driver.allocate(0x100, 10, worker);
    driver.end("forward", 1, worker);
    driver.end("step", 1, leader);
    const profile made = driver.finished_profile();
    CHECK(usage_in_cpu(made, "forward").self_allocated == 10);
    CHECK(made.find_operation("forward")->invocations == 0);
    CHECK(made.find_operation("step/forward")->usage.empty());
  }
  SECTION("of a ring that passed to another thread, whose numbers begin anew") {
    driver.end("step", 1, leader);
    driver.begin_thread(1, 0);
    driver.adopt("forward", 2, 7, worker);  // the thread's number was 7
    driver.allocate(0x100, 10, worker);
    CHECK(usage_in_cpu(driver.finished_profile(), "step/forward").self_allocated == 10);
  }
}

TEST_CASE("adopted operations: a ring that passes to another thread ends what others adopted from it") {
  ledger_driver driver;
  driver.begin("forward", 1, leader);
  driver.adopt("forward", 1, 1, worker);
  driver.record({driver.next_stamp(), 9, 0, 0, memprof::extend::event_kind::thread_begin, 0, 0},
                1);                     // thread 9 in the leader's ring
  driver.begin("backward", 1, leader);  // with the same number
  driver.allocate(0x100, 1, leader);
  driver.allocate(0x200, 10, worker);
  driver.end("backward", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "forward").self_allocated == 10);
  CHECK(usage_in_cpu(made, "backward").peak == 1);
  CHECK(usage_in_cpu(made, "backward").max_delta == 1);
}

TEST_CASE("adopted operations: an adoption may be adopted, and outlived") {
  ledger_driver driver;
  driver.begin("forward", 1, leader);
  driver.adopt("forward", 1, 1, worker);
  driver.adopt("forward", 1, 2, other);  // the worker's adoption
  driver.end("forward", 1, worker);
  driver.allocate(0x100, 10, other);
  driver.end("forward", 1, other);
  driver.end("forward", 1, leader);
  CHECK(usage_in_cpu(driver.finished_profile(), "forward").max_delta == 10);
  CHECK(usage_in_cpu(driver.finished_profile(), "forward").self_peak == 10);
}

TEST_CASE("adopted operations: the category of the operation is that of the worker's blocks") {
  ledger_driver driver;
  driver.begin("forward", 1, {.thread = 1, .tag = ledger_driver::tag_of(category::activation)});
  driver.adopt("forward", 1, 1, worker);
  driver.allocate(0x100, 10, worker);
  const profile made = driver.finished_profile();
  REQUIRE(made.space("cpu").current_by_category.size() == 1);
  CHECK(made.space("cpu").current_by_category[0].owner == "activation");
}

TEST_CASE("adopted operations: a thread may adopt its own outer operation") {
  ledger_driver driver;
  driver.begin("step", 1, leader);
  driver.begin("wait", 2, leader);
  driver.adopt("step", 1, 1, leader, 3, 2);
  driver.allocate(0x100, 10, leader);
  driver.end("step", 3, leader);
  driver.end("wait", 2, leader);
  driver.end("step", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "step").self_allocated == 10);
  CHECK(usage_in_cpu(made, "step").max_delta == 10);
  CHECK(made.find_operation("step/wait")->usage.empty());
}

TEST_CASE("adopted operations: without an option, threads without an operation have none") {
  ledger_driver driver;
  driver.begin_thread(1, 77);
  driver.begin("forward", 1, leader);
  driver.allocate(0x100, 10, worker);
  driver.end("forward", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(made.find_operation("forward")->usage.empty());
}

TEST_CASE("inferred operations: threads without one work for that of the leading thread") {
  ledger_driver driver{{.leading_thread = 77}};
  driver.allocate(0x50, 1, worker);  // nobody leads yet
  driver.begin_thread(1, 77);
  driver.allocate(0x60, 2, worker);  // it has no operation
  driver.begin("forward", 1, leader);
  driver.allocate(0x100, 100, worker);
  driver.begin("matmul", 2, leader);
  driver.allocate(0x200, 50, worker);
  driver.begin("own", 1, other);
  driver.allocate(0x300, 7, other);  // it has one of its own
  driver.end("own", 1, other);
  driver.free(0x200, 0, other);
  driver.end("matmul", 2, leader);
  driver.end("forward", 1, leader);
  driver.allocate(0x400, 4, worker);

  const profile made = driver.finished_profile();
  const operation_usage& forward = usage_in_cpu(made, "forward");
  CHECK(forward.self_allocated == 100);
  CHECK(forward.allocated == 150);
  CHECK(forward.inferred == 150);
  CHECK(forward.peak == 150);
  CHECK(forward.max_delta == 100);
  const operation_usage& matmul = usage_in_cpu(made, "forward/matmul");
  CHECK(matmul.allocated == 50);
  CHECK(matmul.inferred == 50);
  CHECK(matmul.peak == 50);
  CHECK(matmul.max_delta == 0);
  CHECK(usage_in_cpu(made, "own").allocated == 7);
  CHECK(usage_in_cpu(made, "own").inferred == 0);
  CHECK(usage_in_cpu(made, "own").peak == 7);
  CHECK(made.space("cpu").allocations == 164);
}

TEST_CASE("inferred operations: after the leading thread has gone, nothing is inferred") {
  ledger_driver driver{{.leading_thread = 77}};
  driver.begin_thread(1, 77);
  driver.begin("forward", 1, leader);
  driver.allocate(0x100, 100, worker);
  driver.record({driver.next_stamp(), 8, 78, 0, memprof::extend::event_kind::thread_begin, 0, 0}, 1);
  driver.begin("backward", 1, leader);
  driver.allocate(0x200, 10, worker);
  driver.record({driver.next_stamp(), 9, 77, 0, memprof::extend::event_kind::thread_begin, 0, 0}, 3);  // the system reused its id
  driver.begin("serve", 1, other);
  driver.allocate(0x300, 10, worker);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "forward").inferred == 100);
  CHECK(made.find_operation("backward")->usage.empty());
  CHECK(made.find_operation("serve")->usage.empty());
}

TEST_CASE("inferred operations: what a thread did before its own operation is not in that one's peak") {
  ledger_driver driver{{.leading_thread = 77}};
  driver.begin_thread(1, 77);
  driver.allocate(0x100, 8, worker);  // the leading thread has no operation yet
  driver.begin("own", 1, worker);
  driver.free(0x100, 0, worker);
  driver.end("own", 1, worker);
  CHECK(usage_in_cpu(driver.finished_profile(), "own").peak == 0);
  CHECK(usage_in_cpu(driver.finished_profile(), "own").max_delta == -8);
}

TEST_CASE("inferred operations: an adoption is not inferred") {
  ledger_driver driver{{.leading_thread = 77}};
  driver.begin_thread(1, 77);
  driver.begin("forward", 1, leader);
  driver.adopt("forward", 1, 1, worker);
  driver.allocate(0x100, 10, worker);
  driver.end("forward", 1, worker);
  driver.allocate(0x200, 20, worker);
  driver.end("forward", 1, leader);
  const profile made = driver.finished_profile();
  CHECK(usage_in_cpu(made, "forward").allocated == 30);
  CHECK(usage_in_cpu(made, "forward").inferred == 20);
  CHECK(usage_in_cpu(made, "forward").max_delta == 30);
}

TEST_CASE("adopted operations: a circle of adoptions in a damaged trace ends") {
  ledger_driver driver;
  driver.begin("a", 5, leader, 0);
  driver.adopt("a", 5, 1, leader, 3, 5);  // its number is less than that of the operation around it
  driver.adopt("a", 3, 1, leader, 4, 3);
  driver.allocate(0x100, 10, leader);
  driver.end("a", 5, leader);
  CHECK(driver.finished_profile().space("cpu").allocations == 10);
}

}  // namespace memprof_tests::adopted_operations
