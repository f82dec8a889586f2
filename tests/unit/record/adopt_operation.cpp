#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/session_options.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <type_traits>

namespace memprof_tests::record_adopt_operation {

namespace {

const memprof::operation_usage* usage_of(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? nullptr : &found->usage[0];
}

std::int64_t self_allocated(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_usage* const found = usage_of(profile, path);
  return found == nullptr ? 0 : found->self_allocated;
}

void touch(std::size_t bytes) {
  memprof::memory_resource memory;
  memory.deallocate(memory.allocate(bytes), bytes);
}

/// Allocates on a thread that adopts the operation.
void touch_for(const memprof::operation_handle& handle, std::size_t bytes) {
  std::thread{[&] {
    const auto adopted = memprof::adopt_operation(handle);
    touch(bytes);
  }}.join();
}

/// Counts the begins of operations in a trace, adopted or not.
struct scope_counter {
  int begun = 0;

  void info(const memprof::extend::capture_info&) {}
  void name(memprof::extend::label, std::string_view) {}
  void space(const memprof::extend::space_definition&) {}
  void facts(memprof::extend::fact_part&&) {}
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t) {
    for (; first != last; ++first) begun += first->kind == memprof::extend::event_kind::scope_begin ? 1 : 0;
  }
};

int begun_in(const memprof::trace& recorded) {
  scope_counter counter;
  recorded.visit(counter);
  return counter.begun;
}

static_assert(noexcept(memprof::current_operation()) && noexcept(memprof::adopt_operation({})));
static_assert(std::is_trivially_copyable_v<memprof::operation_handle>);
static_assert(!std::is_copy_constructible_v<memprof::adopted_operation> &&
              !std::is_move_assignable_v<memprof::adopted_operation>);

}  // namespace

TEST_CASE("adopt_operation: what another thread does counts for the operation, live and in the trace") {
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.trace = &recorded});
  {
    const auto step = memprof::track_operation<"step">();
    const auto forward = memprof::track_operation<"forward">();
    const memprof::operation_handle handle = memprof::current_operation();
    CHECK(handle);
    std::thread{[&] {
      const auto adopted = memprof::adopt_operation(handle);
      touch(100);
      const auto matmul = memprof::track_operation<"matmul">();
      touch(10);
    }}.join();
    std::thread{[] { touch(1000); }}.join();  // for nobody
  }
  capture.end();
  const memprof::profile& live = capture.profile();
  CHECK(self_allocated(live, "step/forward") == 100);
  CHECK(self_allocated(live, "step/forward/matmul") == 10);
  REQUIRE(usage_of(live, "step/forward") != nullptr);
  CHECK(usage_of(live, "step/forward")->peak == 100);
  CHECK(usage_of(live, "step")->peak == 100);
  CHECK(live.find_operation("step/forward")->invocations == 1);
  CHECK(live.anomalies.unbalanced_scopes == 0);
  CHECK(memprof::profile_of(recorded).operations == live.operations);
}

TEST_CASE("adopt_operation: a handle without an operation does nothing") {
  const memprof::operation_handle none;
  CHECK_FALSE(none);
  CHECK_FALSE(memprof::current_operation());
  { const auto adopted = memprof::adopt_operation(none); }  // no capture is active
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.trace = &recorded});
  CHECK_FALSE(memprof::current_operation());
  {
    const auto adopted = memprof::adopt_operation(none);
    touch(10);
  }
  std::thread{[] { CHECK_FALSE(memprof::current_operation()); }}.join();
  capture.end();
  CHECK(capture.profile().operations.empty());
  CHECK(begun_in(recorded) == 0);
}

TEST_CASE("adopt_operation: the handle of another capture does nothing, in whatever order they end") {
  memprof::operation_handle of_first;
  auto first = memprof::begin_capture();
  const auto outlives = memprof::track_operation<"of the first">();
  of_first = memprof::current_operation();
  CHECK(of_first);
  first.end();
  CHECK_FALSE(memprof::current_operation());
  touch_for(of_first, 10);  // no capture is active
  auto second = memprof::begin_capture();
  touch_for(of_first, 10);
  second.end();
  CHECK(second.profile().operations.empty());
  CHECK(second.profile().anomalies.unbalanced_scopes == 0);
}

TEST_CASE("adopt_operation: a guard that outlives its capture ends nothing in the next") {
  auto first = memprof::begin_capture();
  const auto forward = memprof::track_operation<"forward">();
  const memprof::operation_handle handle = memprof::current_operation();
  std::thread{[&] {
    auto second = [&] {
      const auto adopted = memprof::adopt_operation(handle);
      first.end();
      auto begun = memprof::begin_capture();
      touch(10);
      return begun;
    }();
    const auto other = memprof::track_operation<"of the second">();
    touch(100);
    second.end();
    CHECK(second.profile().operations.size() == 1);
    CHECK(self_allocated(second.profile(), "of the second") == 100);
    CHECK(second.profile().anomalies.unbalanced_scopes == 0);
  }}.join();
}

TEST_CASE("adopt_operation: after its operation has ended it is the path that counts") {
  auto capture = memprof::begin_capture();
  memprof::operation_handle handle;
  {
    const auto step = memprof::track_operation<"step">();
    const auto forward = memprof::track_operation<"forward">();
    handle = memprof::current_operation();
  }
  touch_for(handle, 30);
  capture.end();
  REQUIRE(usage_of(capture.profile(), "step/forward") != nullptr);
  CHECK(self_allocated(capture.profile(), "step/forward") == 30);
  CHECK(usage_of(capture.profile(), "step/forward")->peak == 0);
}

TEST_CASE("adopt_operation: the thread's own innermost operation needs no event") {
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.trace = &recorded});
  {
    const auto forward = memprof::track_operation<"forward">();
    const auto adopted = memprof::adopt_operation(memprof::current_operation());
    touch(10);
  }
  capture.end();
  CHECK(self_allocated(capture.profile(), "forward") == 10);
  CHECK(begun_in(recorded) == 1);
}

TEST_CASE("adopt_operation: nests, and hides the thread's own operations until it ends") {
  auto capture = memprof::begin_capture();
  const auto first = memprof::track_operation<"first">();
  const memprof::operation_handle of_first = memprof::current_operation();
  std::thread{[&] {
    const auto own = memprof::track_operation<"own">();
    touch(1);
    const memprof::operation_handle of_own = memprof::current_operation();
    {
      const auto adopted = memprof::adopt_operation(of_first);
      touch(10);
      {
        const auto again = memprof::adopt_operation(of_own);
        touch(100);
      }
      const memprof::operation_handle adopted_further = memprof::current_operation();
      touch_for(adopted_further, 1000);
    }
    touch(10'000);
  }}.join();
  capture.end();
  CHECK(self_allocated(capture.profile(), "own") == 10'101);
  CHECK(self_allocated(capture.profile(), "first") == 1'010);
}

TEST_CASE("adopt_operation: a guard may end on another thread, and before what is nested in it") {
  auto capture = memprof::begin_capture();
  {
    const auto forward = memprof::track_operation<"forward">();
    const memprof::operation_handle handle = memprof::current_operation();
    std::thread{[&] {
      auto* const adopted = new memprof::adopted_operation{handle};
      touch(10);
      const auto nested = memprof::track_operation<"nested">();
      std::thread{[&] { delete adopted; }}.join();
      touch(100);
    }}.join();
  }
  capture.end();
  CHECK(self_allocated(capture.profile(), "forward") == 10);
  CHECK(self_allocated(capture.profile(), "forward/nested") == 100);
  REQUIRE(usage_of(capture.profile(), "forward") != nullptr);
  CHECK(usage_of(capture.profile(), "forward")->peak == 10);  // the nested one goes on without it
  CHECK(capture.profile().anomalies.unbalanced_scopes == 0);
}

TEST_CASE("adopt_operation: a signal handler that interrupts the profiler does not wait, and is counted") {
  auto capture = memprof::begin_capture();
  const auto forward = memprof::track_operation<"forward">();
  const memprof::operation_handle handle = memprof::current_operation();
  std::thread{[&] {
    touch(1);  // a thread's first event is not for a handler
    const memprof::detail::control_guard draining;
    CHECK_FALSE(memprof::current_operation());
    const auto adopted = memprof::adopt_operation(handle);
  }}.join();
  capture.end();
  CHECK(capture.profile().anomalies.reentrant_events == 1);
  CHECK(capture.profile().anomalies.unbalanced_scopes == 0);
}

namespace {

memprof::operation_handle seen_in_handler;
memprof::operation_handle adopted_in_handler;

void adopt_in_handler(int) {
  seen_in_handler = memprof::current_operation();
  const auto adopted = memprof::adopt_operation(adopted_in_handler);
  touch(100);
}

}  // namespace

TEST_CASE("adopt_operation: a signal handler may adopt where it interrupts the program") {
  auto capture = memprof::begin_capture();
  const auto forward = memprof::track_operation<"forward">();
  adopted_in_handler = memprof::current_operation();
  std::thread{[&] {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = adopt_in_handler;
    ::sigaction(SIGUSR1, &action, &before);
    const auto own = memprof::track_operation<"own">();
    touch(1);
    const memprof::operation_handle of_own = memprof::current_operation();
    ::raise(SIGUSR1);
    CHECK(seen_in_handler == of_own);
    touch(2);
    ::sigaction(SIGUSR1, &before, nullptr);
  }}.join();
  capture.end();
  CHECK(self_allocated(capture.profile(), "forward") == 100);
  CHECK(self_allocated(capture.profile(), "own") == 3);
}

TEST_CASE("infer_operations: threads without an operation work for the thread that began the capture") {
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.infer_operations = true, .trace = &recorded});
  std::thread{[] { touch(1); }}.join();
  {
    const auto forward = memprof::track_operation<"forward">();
    std::thread{[] {
      touch(10);
      const auto own = memprof::track_operation<"own">();
      touch(100);
    }}.join();
    touch(1000);
  }
  capture.end();
  const memprof::profile& live = capture.profile();
  REQUIRE(usage_of(live, "forward") != nullptr);
  CHECK(usage_of(live, "forward")->self_allocated == 1010);
  CHECK(usage_of(live, "forward")->inferred == 10);
  CHECK(usage_of(live, "forward")->peak == 1000);
  REQUIRE(usage_of(live, "own") != nullptr);
  CHECK(usage_of(live, "own")->self_allocated == 100);
  CHECK(usage_of(live, "own")->inferred == 0);
  CHECK(memprof::profile_of(recorded).operations == live.operations);
}

TEST_CASE("infer_operations: the leading thread may have recorded before, and need not record first") {
  touch(1);
  for (int count = 0; count < 2; ++count) {
    auto capture = memprof::begin_capture({.infer_operations = true});
    std::thread{[] { touch(1); }}.join();
    const auto forward = memprof::track_operation<"forward">();
    std::thread{[] { touch(10); }}.join();
    capture.end();
    REQUIRE(usage_of(capture.profile(), "forward") != nullptr);
    CHECK(usage_of(capture.profile(), "forward")->inferred == 10);
  }
}

TEST_CASE("infer_operations: a session takes it from the environment and from a file") {
  memprof::session_options options;
  const char* const environment[] = {"MEMPROF_INFER_OPERATIONS=1", nullptr};
  memprof::detail::set_from_environment(options, environment);
  CHECK(options.capture.infer_operations);
  memprof::detail::set_from_file(options, "infer_operations", "false", "train.toml");
  CHECK_FALSE(options.capture.infer_operations);
}

}  // namespace memprof_tests::record_adopt_operation
