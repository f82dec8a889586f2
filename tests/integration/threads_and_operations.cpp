// What belongs to which thread, where threads come and go and operations move between them.
#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::integration_threads_and_operations {

namespace {

const void* pointer(std::size_t number) { return reinterpret_cast<const void*>(number); }

/// A coroutine that suspends where it says so and is resumed by whoever holds it.
class task {
 public:
  struct promise_type {
    task get_return_object() { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (handle_) handle_.destroy();
  }
  void resume() { handle_.resume(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

task work_in_two_parts(memprof::memory_space space, std::size_t address) {
  const auto scope = memprof::track_operation<"coroutine">();
  memprof::extend::event_sink{}.allocate(space, pointer(address), 10);
  co_await std::suspend_always{};
  memprof::extend::event_sink{}.deallocate(space, pointer(address), 10);
}

std::int64_t allocated_in(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? 0 : found->usage[0].self_allocated;
}

}  // namespace

TEST_CASE("threads: frees by a thread that took over the ring of the one that allocated are frees by another thread") {
  const memprof::memory_space space{"handed over"};
  auto capture = memprof::begin_capture();
  for (std::size_t round = 1; round <= 100; ++round) {
    std::thread{[&] { memprof::extend::event_sink{}.allocate(space, pointer(16 * round), 8); }}.join();
    std::thread{[&] { memprof::extend::event_sink{}.deallocate(space, pointer(16 * round), 8); }}.join();
  }
  std::thread{[&] {
    memprof::extend::event_sink{}.allocate(space, pointer(16), 8);
    memprof::extend::event_sink{}.deallocate(space, pointer(16), 8);
  }}.join();
  capture.end();
  CHECK(capture.profile().space("handed over").anomalies.cross_thread_frees == memprof::event_tally{100, 800});
}

TEST_CASE("threads: operations of coroutines that end on another thread are closed, and nothing nests in them for ever") {
  const memprof::memory_space space{"coroutines"};
  auto capture = memprof::begin_capture();
  std::vector<task> begun;
  for (std::size_t index = 1; index <= 200; ++index) {
    begun.push_back(work_in_two_parts(space, 16 * index));
    begun.back().resume();
    std::thread{[&] { begun.back().resume(); }}.join();
  }
  memprof::extend::event_sink{}.allocate(space, pointer(1 << 20), 1);
  {
    const auto scope = memprof::track_operation<"after">();
    memprof::extend::event_sink{}.allocate(space, pointer(1 << 21), 2);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  REQUIRE(profile.operations.size() == 2);
  CHECK(allocated_in(profile, "coroutine") == 2000);
  CHECK(allocated_in(profile, "after") == 2);
  CHECK(profile.find_operation("coroutine")->invocations == 200);
  CHECK(profile.anomalies == memprof::event_anomalies{});
}

TEST_CASE("threads: coroutines that interleave on one thread leave no operation open") {
  const memprof::memory_space space{"interleaved"};
  auto capture = memprof::begin_capture();
  {
    task first = work_in_two_parts(space, 16);
    task second = work_in_two_parts(space, 32);
    first.resume();
    second.resume();
    first.resume();  // ends before the one that began within it
    second.resume();
  }
  memprof::extend::event_sink{}.allocate(space, pointer(64), 1);
  const auto scope = memprof::track_operation<"after">();
  memprof::extend::event_sink{}.allocate(space, pointer(128), 2);
  capture.end();
  CHECK(allocated_in(capture.profile(), "after") == 2);
  CHECK(capture.profile().space("interleaved").deallocation_count == 2);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("threads: one that takes over a ring says when it began, though its predecessor needed no stamps") {
  const memprof::memory_space space{"late"};
  constexpr auto pause = std::chrono::milliseconds{20};
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  std::thread{[&] {
    for (int count = 0; count < 200; ++count) {  // with every drain that finds only this thread, it needs fewer stamps
      memprof::extend::event_sink{}.allocate(space, pointer(16), 1);
      memprof::extend::event_sink{}.deallocate(space, pointer(16), 1);
    }
  }}.join();
  std::this_thread::sleep_for(pause);
  std::thread{[&] { memprof::extend::event_sink{}.allocate(space, pointer(32), 2); }}.join();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("late").cumulative_peak == 2);
  CHECK(profile.space("late").segments.at(0).peak_time_ns >= std::chrono::nanoseconds{pause}.count());
}

TEST_CASE("threads: points of a timeline and peaks are in the order of time, and peaks within their segments") {
  const memprof::memory_space space{"in order"};
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  {
    std::vector<std::jthread> threads;
    for (std::size_t index = 1; index <= 4; ++index) {
      threads.emplace_back([&, index] {
        for (std::size_t count = 0; count < 20'000; ++count) {
          memprof::extend::event_sink{}.allocate(space, pointer((index << 32) + 16 * (count % 100)), 1 + count % 7);
          if (count % 100 == 99) {
            for (std::size_t freed = 0; freed < 100; ++freed) {
              memprof::extend::event_sink{}.deallocate(space, pointer((index << 32) + 16 * freed));
            }
          }
        }
      });
    }
    for (int count = 0; count < 100; ++count) {
      memprof::snapshot("SEGMENT");
      std::this_thread::yield();
    }
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& seen = profile.space("in order");
  for (std::size_t index = 1; index < seen.timeline.points.size(); ++index) {
    REQUIRE(seen.timeline.points[index - 1].time_ns <= seen.timeline.points[index].time_ns);
  }
  for (std::size_t index = 0; index < profile.segments.size(); ++index) {
    INFO("segment " << index);
    if (seen.segments[index].allocation_count == 0) continue;
    REQUIRE(profile.segments[index].begin_ns <= seen.segments[index].peak_time_ns);
    REQUIRE(seen.segments[index].peak_time_ns <= profile.segments[index].end_ns);
  }
}

}  // namespace memprof_tests::integration_threads_and_operations
