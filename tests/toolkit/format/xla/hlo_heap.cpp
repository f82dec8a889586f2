#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof_tests::format_hlo_heap {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using kind = memprof::hlo_heap_event_kind;

namespace {

/// A program with one allocation in which buffers of these sizes lie, and a trace over them.
memprof::hlo_program program_with(const std::vector<std::int64_t>& sizes) {
  memprof::hlo_program made;
  made.instructions.emplace_back();
  memprof::hlo_allocation& allocation = made.allocations.emplace_back();
  for (const std::int64_t bytes : sizes) {
    allocation.buffers.push_back(static_cast<std::uint32_t>(made.buffers.size()));
    allocation.bytes += bytes;
    memprof::hlo_buffer buffer;
    buffer.id = 100 + static_cast<std::int64_t>(made.buffers.size());
    buffer.bytes = bytes;
    buffer.instruction = 0;
    buffer.allocation = 0;
    made.buffers.push_back(std::move(buffer));
  }
  made.traces.emplace_back();
  return made;
}

void allocate(memprof::hlo_program& in, std::uint32_t buffer) {
  in.traces.back().push_back({kind::allocate, buffer, memprof::hlo_none, {}});
}
void free(memprof::hlo_program& in, std::uint32_t buffer) {
  in.traces.back().push_back({kind::free, buffer, memprof::hlo_none, {}});
}
void share(memprof::hlo_program& in, std::uint32_t buffer, std::uint32_t with) {
  in.traces.back().push_back({kind::share, buffer, with, {}});
}

memprof::heap_simulation simulate(const memprof::hlo_program& program, std::int64_t space = 0) {
  std::vector<std::int64_t> unpadded;
  for (const memprof::hlo_buffer& buffer : program.buffers) unpadded.push_back(buffer.bytes - 1);
  return memprof::simulate_heap(program, space, unpadded);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> live(const memprof::heap_simulation& simulated) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const memprof::hlo_live_buffer& each : simulated.live_at_peak) found.emplace_back(each.owner, each.shown);
  return found;
}

memprof::hlo_allocation indefinite(std::int64_t bytes, std::vector<std::uint32_t> buffers, bool memprof::hlo_allocation::*flag,
                                   std::int64_t space = 0) {
  memprof::hlo_allocation made;
  made.bytes = bytes;
  made.space = space;
  made.buffers = std::move(buffers);
  made.*flag = true;
  return made;
}

TEST_CASE("hlo heap: the first of equal peaks counts, with what is live then") {
  memprof::hlo_program program = program_with({100, 50, 70, 80});
  allocate(program, 0);
  allocate(program, 1);  // 150, the peak
  free(program, 0);
  allocate(program, 2);
  free(program, 1);
  allocate(program, 3);  // 150 again
  const memprof::heap_simulation found = simulate(program);
  CHECK(found.peak == 150);
  CHECK(found.unpadded_peak == 148);
  CHECK(found.peak_event == 1);
  CHECK(live(found) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {1, 1}});
  CHECK(found.all_allocations == 300);
}

TEST_CASE("hlo heap: memory that is shared while it lives counts once, until its last user frees it") {
  memprof::hlo_program program = program_with({100, 100, 100, 30});
  allocate(program, 0);
  share(program, 1, 0);
  share(program, 2, 1);
  free(program, 0);
  free(program, 1);
  allocate(program, 3);  // 130: the third still uses it
  free(program, 2);
  const memprof::heap_simulation found = simulate(program);
  CHECK(found.peak == 130);
  CHECK(live(found) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {3, 3}});
  free(program, 1);
  CHECK_THROWS_MATCHES(simulate(program), memprof::error,
                       MessageMatches(ContainsSubstring("buffer 101 is freed more than once")));
}

TEST_CASE("hlo heap: memory that is shared after it was freed is live again under the name of the new user") {
  memprof::hlo_program program = program_with({100, 100, 50});
  allocate(program, 0);
  free(program, 0);
  allocate(program, 2);
  share(program, 1, 0);  // 150
  const memprof::heap_simulation found = simulate(program);
  CHECK(found.peak == 150);
  CHECK(found.peak_event == 3);
  CHECK(live(found) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 2}, {0, 1}});
}

TEST_CASE("hlo heap: what lives as long as the program counts with its allocation, shown by its largest value") {
  memprof::hlo_program program = program_with({100});
  allocate(program, 0);
  for (const std::int64_t bytes : {10, 40, 40, 0}) {
    memprof::hlo_buffer buffer;
    buffer.bytes = bytes;
    buffer.instruction = 0;
    buffer.allocation = static_cast<std::uint32_t>(program.allocations.size());
    program.buffers.push_back(buffer);
  }
  program.allocations.push_back(indefinite(64, {1, 2, 3}, &memprof::hlo_allocation::is_parameter));
  program.allocations.back().may_be_output = true;                                           // donated
  program.allocations.push_back(indefinite(8, {4}, &memprof::hlo_allocation::is_constant));  // holds nothing
  program.allocations.push_back(indefinite(1000, {1}, &memprof::hlo_allocation::is_parameter, 1));
  const memprof::heap_simulation found = simulate(program);
  CHECK(found.peak == 164);
  CHECK(found.unpadded_peak == 99 + 64);  // what is indefinite is padded all the same
  CHECK(found.indefinite == 64);
  CHECK(found.parameters == 64);
  CHECK(found.outputs == 64);
  CHECK(found.constants == 8);
  CHECK(found.indefinite_allocations == 72);
  CHECK(found.all_allocations == 172);
  CHECK(live(found) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 2}, {0, 0}});
  CHECK(program.allocations[1].group() == memprof::hlo_group::parameter);
  CHECK(simulate(program, 1).peak == 1000);
  CHECK(memprof::memory_spaces(program) == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("hlo heap: memory of threads is a sum of its own, outside the peak and the other sums") {
  memprof::hlo_program program = program_with({100});
  allocate(program, 0);
  const auto add = [&](std::int64_t bytes, bool memprof::hlo_allocation::*also = nullptr) {
    memprof::hlo_buffer buffer;
    buffer.bytes = bytes;
    buffer.instruction = 0;
    buffer.allocation = static_cast<std::uint32_t>(program.allocations.size());
    program.allocations.push_back(indefinite(bytes, {static_cast<std::uint32_t>(program.buffers.size())},
                                             also == nullptr ? &memprof::hlo_allocation::is_thread_local : also));
    program.buffers.push_back(buffer);
  };
  add(64);
  add(8);
  add(16, &memprof::hlo_allocation::is_parameter);
  memprof::heap_simulation found = simulate(program);
  CHECK(found.peak == 116);
  CHECK(found.unpadded_peak == 99 + 16);
  CHECK(found.indefinite == 16);
  CHECK(found.thread_local_bytes == 72);
  CHECK(found.all_allocations == 116);
  CHECK(found.indefinite_allocations == 16);
  CHECK(found.non_reusable == 72);
  CHECK(live(found) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{3, 3}, {0, 0}});
  // XLA makes no allocation of two kinds. In xprof, such a one is live at the peak, but in no sum of allocations.
  add(32, &memprof::hlo_allocation::is_constant);
  program.allocations.back().is_thread_local = true;
  found = simulate(program);
  CHECK(found.peak == 148);
  CHECK(found.indefinite == 48);
  CHECK(found.thread_local_bytes == 104);
  CHECK(found.all_allocations == 116);
  CHECK(found.indefinite_allocations == 16);
}

TEST_CASE("hlo heap: each space has its own trace") {
  memprof::hlo_program program = program_with({100, 7});
  program.buffers[1].space = 1;
  program.buffers[1].allocation = 1;
  program.allocations[0].buffers.pop_back();
  program.allocations.emplace_back().space = 1;
  program.allocations[1].index = 1;
  program.allocations[1].buffers.push_back(1);
  allocate(program, 0);
  program.traces.emplace_back();
  allocate(program, 1);
  CHECK(simulate(program, 0).peak == 100);
  CHECK(simulate(program, 1).peak == 7);
  CHECK(simulate(program, 2).trace == memprof::hlo_none);
  // An allocation that is there from begin to end has no trace; then the events decide.
  program.allocations[1].may_be_output = true;
  CHECK(simulate(program, 1).trace == 1);
}

TEST_CASE("hlo heap: programs that contradict themselves are errors") {
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  memprof::hlo_program ring = program_with({1, 1, 1});
  share(ring, 0, 1);
  share(ring, 1, 2);
  share(ring, 2, 0);
  CHECK_THROWS_MATCHES(simulate(ring), memprof::error, says("buffer 102 shares its own memory"));
  memprof::hlo_program mixed = program_with({1, 1});
  mixed.buffers[1].allocation = 1;
  mixed.allocations.emplace_back().buffers.push_back(1);
  allocate(mixed, 0);
  allocate(mixed, 1);
  CHECK_THROWS_MATCHES(simulate(mixed), memprof::error, says("to several allocations"));
  memprof::hlo_program huge = program_with({0, 0, 0});
  huge.buffers[1].bytes = huge.buffers[2].bytes = std::int64_t{1} << 62;
  allocate(huge, 1);
  allocate(huge, 2);
  CHECK_THROWS_MATCHES(simulate(huge), memprof::error, says("exceeds 64 bits"));
}

}  // namespace

}  // namespace memprof_tests::format_hlo_heap
