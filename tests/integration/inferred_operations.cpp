// How many bytes go to a wrong operation where operations are inferred although two threads lead, each with a pool of its own, or
// the leading thread does not wait; and that none do where the pools get handles.
#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

namespace memprof_tests::integration_inferred_operations {

namespace {

constexpr int steps = 20;
constexpr int blocks_a_step = 10;
constexpr std::int64_t bytes_of_first = 100;   // of each block of the first pool
constexpr std::int64_t bytes_of_second = 100;  // and of the second one's: both have the same load
constexpr std::int64_t all_of_first = steps * blocks_a_step * bytes_of_first;
constexpr std::int64_t all_of_second = steps * blocks_a_step * bytes_of_second;

void work(std::int64_t bytes) {
  memprof::memory_resource memory;
  for (int block = 0; block < blocks_a_step; ++block) {
    memory.deallocate(memory.allocate(static_cast<std::size_t>(bytes)), static_cast<std::size_t>(bytes));
  }
}

memprof::operation_usage usage_of(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? memprof::operation_usage{} : found->usage[0];
}

/// Two leaders run the steps side by side, each in an operation of its own; within each step the worker of each pool works while
/// both operations are open.
memprof::profile with_two_leaders(const memprof::capture_options& options, bool with_handles) {
  std::barrier<> phase{4};
  memprof::operation_handle first;
  memprof::operation_handle second;
  const auto lead = [&](memprof::operation_handle& handle, std::string_view name) {
    for (int step = 0; step < steps; ++step) {
      const auto scope = memprof::track_operation(name);
      handle = memprof::current_operation();
      phase.arrive_and_wait();  // both are open, and the handles are there
      phase.arrive_and_wait();  // the workers are done
    }
  };
  const auto work_for = [&](const memprof::operation_handle& handle, std::int64_t bytes) {
    for (int step = 0; step < steps; ++step) {
      phase.arrive_and_wait();
      {
        const auto adopted = memprof::adopt_operation(with_handles ? handle : memprof::operation_handle{});
        work(bytes);
      }
      phase.arrive_and_wait();
    }
  };
  auto capture = memprof::begin_capture(options);
  std::thread second_leader{[&] { lead(second, "second"); }};
  std::thread first_worker{[&] { work_for(first, bytes_of_first); }};
  std::thread second_worker{[&] { work_for(second, bytes_of_second); }};
  lead(first, "first");
  second_leader.join();
  first_worker.join();
  second_worker.join();
  capture.end();
  return capture.profile();
}

}  // namespace

TEST_CASE("inferred operations: with two leaders and two pools, the second pool's bytes are in the first one's operation") {
  const memprof::profile made = with_two_leaders({.infer_operations = true}, false);
  const memprof::operation_usage first = usage_of(made, "first");
  const memprof::operation_usage second = usage_of(made, "second");
  const std::int64_t wrong = all_of_second - second.allocated;
  CHECK(wrong == all_of_second);  // all that the second leader asked for, half of what was inferred
  CHECK(first.inferred == all_of_first + all_of_second);
  CHECK(first.allocated == all_of_first + all_of_second);
  CHECK(second.inferred == 0);
}

TEST_CASE("inferred operations: with handles, no byte of two pools is in a wrong operation, inferred or not") {
  for (const bool infers : {false, true}) {
    const memprof::profile made = with_two_leaders({.infer_operations = infers}, true);
    CHECK(usage_of(made, "first").allocated == all_of_first);
    CHECK(usage_of(made, "second").allocated == all_of_second);
    CHECK(usage_of(made, "first").inferred == 0);
    CHECK(usage_of(made, "second").inferred == 0);
    CHECK(usage_of(made, "first").max_delta == 0);
    CHECK(usage_of(made, "first").peak == bytes_of_first);
  }
}

TEST_CASE("inferred operations: a worker that loads ahead works for whatever the leader does meanwhile") {
  std::barrier<> phase{2};
  auto capture = memprof::begin_capture({.infer_operations = true});
  std::thread loader{[&] {
    phase.arrive_and_wait();
    work(bytes_of_first);  // for the next step, of which "load" is to be
    phase.arrive_and_wait();
  }};
  { const auto scope = memprof::track_operation<"load">(); }
  {
    const auto scope = memprof::track_operation<"train">();
    phase.arrive_and_wait();
    phase.arrive_and_wait();
  }
  loader.join();
  capture.end();
  CHECK(usage_of(capture.profile(), "load").allocated == 0);
  CHECK(usage_of(capture.profile(), "train").inferred == blocks_a_step * bytes_of_first);
}

}  // namespace memprof_tests::integration_inferred_operations
