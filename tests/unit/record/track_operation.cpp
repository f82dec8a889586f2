#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace memprof_tests::record_track_operation {

namespace {

std::int64_t invocations(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr ? 0 : found->invocations;
}

std::int64_t self_allocated(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? 0 : found->usage[0].self_allocated;
}

void touch(std::size_t bytes) {
  memprof::memory_resource memory;
  memory.deallocate(memory.allocate(bytes), bytes);
}

}  // namespace

TEST_CASE("track_operation: names nest, and one made at run time is the same as one known at compile time") {
  auto capture = memprof::begin_capture();
  {
    auto outer = memprof::track_operation<"outer">();
    touch(1);
    for (int count = 0; count < 3; ++count) {
      auto inner = memprof::track_operation(count == 0 ? std::string{"in"} + "ner" : std::string{"inner"});
      touch(10);
    }
    auto again = memprof::track_operation<"inner">();
    touch(100);
  }
  capture.end();
  CHECK(invocations(capture.profile(), "outer") == 1);
  CHECK(invocations(capture.profile(), "outer/inner") == 4);
  CHECK(self_allocated(capture.profile(), "outer") == 1);
  CHECK(self_allocated(capture.profile(), "outer/inner") == 130);
}

TEST_CASE("track_operation: a scope from before the capture is not part of it, and its end harms nothing") {
  auto before = std::make_optional<memprof::operation_scope>([] { return memprof::extend::label{0}; }, std::uint16_t{0});
  auto capture = memprof::begin_capture();
  {
    auto inside = memprof::track_operation<"inside">();
    touch(5);
    before.reset();
    touch(6);
  }
  capture.end();
  CHECK(capture.profile().operations.size() == 1);
  CHECK(self_allocated(capture.profile(), "inside") == 11);
  CHECK(capture.profile().anomalies.unbalanced_scopes == 0);
}

TEST_CASE("track_operation: a scope that outlives its capture closes nothing of the next") {
  struct kept_scope {
    memprof::operation_scope scope = memprof::track_operation<"outliving">();
  };
  std::unique_ptr<kept_scope> kept;
  {
    auto first = memprof::begin_capture();
    kept = std::make_unique<kept_scope>();
    first.end();
    CHECK(invocations(first.profile(), "outliving") == 1);
    CHECK(first.profile().anomalies.unbalanced_scopes == 0);
  }
  auto second = memprof::begin_capture();
  {
    auto inside = memprof::track_operation<"inside">();
    kept.reset();
    touch(7);
  }
  touch(8);
  {
    auto inside = memprof::track_operation<"inside">();
    touch(9);
  }
  second.end();
  CHECK(second.profile().operations.size() == 1);
  CHECK(invocations(second.profile(), "inside") == 2);
  CHECK(self_allocated(second.profile(), "inside") == 16);
  CHECK(second.profile().anomalies.unbalanced_scopes == 0);
}

TEST_CASE("track_operation: the innermost category holds for what is allocated within") {
  memprof::memory_resource memory;
  auto capture = memprof::begin_capture();
  void* blocks[3] = {};
  {
    auto outer = memprof::track_operation<"outer">(memprof::category::activation);
    blocks[0] = memory.allocate(1);
    auto middle = memprof::track_operation<"middle">();
    blocks[1] = memory.allocate(10);
    auto inner = memprof::track_operation("inner", memprof::category::gradient);
    blocks[2] = memory.allocate(100);
  }
  capture.end();
  for (const memprof::owned_bytes& row : capture.profile().space("cpu").live_at_peak.by_category) {
    if (row.owner == "activation") CHECK(row.bytes == 11);
    if (row.owner == "gradient") CHECK(row.bytes == 100);
    CHECK((row.owner == "activation" || row.owner == "gradient"));
  }
  for (int index = 0, bytes = 1; index < 3; ++index, bytes *= 10)
    memory.deallocate(blocks[index], static_cast<std::size_t>(bytes));
}

TEST_CASE("track_operation: each thread has operations of its own, and one that exits with some open leaves none to the next") {
  auto capture = memprof::begin_capture();
  auto outer = memprof::track_operation<"outer">();
  std::thread first{[] {
    alignas(memprof::operation_scope) static std::byte storage[sizeof(memprof::operation_scope)];
    new (storage) memprof::operation_scope([] { return memprof::detail::static_label<"left open">(); }, 0);
    touch(3);
  }};
  first.join();
  std::thread second{[] {
    auto scope = memprof::track_operation<"of the second">();
    touch(4);
  }};
  second.join();
  capture.end();
  CHECK(self_allocated(capture.profile(), "left open") == 3);
  CHECK(self_allocated(capture.profile(), "of the second") == 4);
  CHECK(invocations(capture.profile(), "left open/of the second") == 0);
  CHECK(invocations(capture.profile(), "outer/of the second") == 0);
}

TEST_CASE("track_operation: a signal handler that interrupts the profiler does not wait for the lock that its thread holds") {
  auto capture = memprof::begin_capture();
  {
    const memprof::detail::control_guard draining;
    auto by_literal = memprof::track_operation<"never named before">();
    auto by_name = memprof::track_operation(std::string{"nor this"});
    memprof::annotate(&capture, {.name = "nor that"});
  }
  capture.end();
  CHECK(capture.profile().operations.empty());
  CHECK(capture.profile().anomalies.reentrant_events == 3);
  CHECK_FALSE(capture.profile().exact);
}

TEST_CASE("track_operation: backends can ask for the innermost name that the program gave on this thread") {
  const auto innermost = [] {
    const memprof::extend::label name = memprof::extend::event_sink{}.innermost_name();
    return name == 0 ? std::string{} : std::string{memprof::abi_1::process_registry.labels->text(name)};
  };
  auto capture = memprof::begin_capture();
  CHECK(innermost().empty());
  {
    const auto outer = memprof::track_operation<"outer">();
    {
      const auto inner = memprof::track_operation("inner");
      CHECK(innermost() == "inner");
      std::string on_another = "not asked";
      std::thread{[&] { on_another = innermost(); }}.join();
      CHECK(on_another.empty());
    }
    CHECK(innermost() == "outer");
    capture.end();
  }
  CHECK(innermost().empty());
}

}  // namespace memprof_tests::record_track_operation
