#include <memprof/toolkit/analysis/allocation_sequence.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <tuple>
#include <vector>

namespace memprof_tests::analysis_allocation_sequence {

using memprof::allocation_sequence;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::extend::label;

namespace {

constexpr std::uint8_t space = 1;

event allocation(std::uint64_t address, std::uint64_t bytes, std::uint8_t in = space) {
  return {0, address, bytes, 0, event_kind::allocate, in, 0};
}
event deallocation(std::uint64_t address, std::uint8_t in = space) { return {0, address, 0, 0, event_kind::deallocate, in, 0}; }
/// Within the operation whose number is one less.
event scope_begin(label name, std::uint32_t number) {
  return {0, memprof::detail::scope_address(number, number - 1), 0, name, event_kind::scope_begin, 0, 0};
}
event scope_end(label name, std::uint32_t number) { return {0, number, 0, name, event_kind::scope_end, 0, 0}; }

void apply(allocation_sequence& sequence, const std::vector<event>& events, std::uint32_t thread = 0) {
  sequence.events(events.data(), events.data() + events.size(), thread);
}

using bytes_and_block = std::vector<std::tuple<std::uint64_t, std::uint32_t>>;

bytes_and_block steps_of(const allocation_sequence& sequence) {
  bytes_and_block steps;
  for (const auto& step : sequence.steps()) steps.emplace_back(step.bytes, step.block);
  return steps;
}

/// The names of the path to the operation of a step, outermost first.
std::vector<label> path_of(const allocation_sequence& sequence, std::size_t step) {
  std::vector<label> path;
  for (std::uint32_t node = sequence.steps()[step].operation; node != 0; node = sequence.operations()[node].parent) {
    path.insert(path.begin(), sequence.operations()[node].name);
  }
  return path;
}

}  // namespace

TEST_CASE("allocation sequence: blocks have numbers, and that of a freed block is given again") {
  allocation_sequence sequence{space};
  apply(sequence,
        {allocation(0x100, 10), allocation(0x200, 20), deallocation(0x100), allocation(0x300, 30), deallocation(0x200)});
  CHECK(steps_of(sequence) == bytes_and_block{{10, 0}, {20, 1}, {0, 0}, {30, 0}, {0, 1}});
  CHECK(sequence.block_count() == 2);
  CHECK(sequence.events() == 5);
}

TEST_CASE("allocation sequence: blocks that were recorded with a stream are blocks") {
  allocation_sequence sequence{space};
  apply(sequence, {{0, 0x100, 10, 7, event_kind::allocate_on_stream, space, 0},
                   {0, 0x200, 20, 8, event_kind::allocate_on_stream, space, 0},
                   {0, 0x100, 0, 7, event_kind::deallocate_on_stream, space, 0},
                   {0, 5, 30, 0, event_kind::out_of_memory, space, 0}});
  CHECK(steps_of(sequence) == bytes_and_block{{10, 0}, {20, 1}, {0, 0}});
}

TEST_CASE("allocation sequence: other memory spaces and blocks without bytes have no steps, but events are counted on") {
  allocation_sequence sequence{space};
  apply(sequence, {allocation(0x100, 10, 0), allocation(0x200, 0), deallocation(0x100, 0), allocation(0x100, 5)});
  CHECK(steps_of(sequence) == bytes_and_block{{5, 0}});
  CHECK(sequence.steps()[0].event == 3);
  CHECK(sequence.unmatched_frees() == 0);
}

TEST_CASE("allocation sequence: a block without bytes is live, and is freed or replaced without a step") {
  allocation_sequence sequence{space};
  apply(sequence, {allocation(0x100, 0), deallocation(0x100), allocation(0x200, 0), allocation(0x200, 8), allocation(0x200, 0),
                   deallocation(0x200), deallocation(0x200), allocation(0x300, 4)});
  CHECK(steps_of(sequence) == bytes_and_block{{8, 0}, {0, 0}, {4, 0}});
  CHECK(sequence.replaced_allocations() == 2);
  CHECK(sequence.unmatched_frees() == 1);
  CHECK(sequence.block_count() == 1);
}

TEST_CASE("allocation sequence: a free of an unknown address is counted, and an allocation at a live one frees the older block") {
  allocation_sequence sequence{space};
  apply(sequence, {deallocation(0x500), allocation(0x100, 10), allocation(0x100, 30), deallocation(0x100), deallocation(0x100)});
  CHECK(steps_of(sequence) == bytes_and_block{{10, 0}, {0, 0}, {30, 0}, {0, 0}});
  CHECK(sequence.unmatched_frees() == 2);
  CHECK(sequence.replaced_allocations() == 1);
}

TEST_CASE("allocation sequence: a step knows the operation that was open on its thread") {
  constexpr label forward = 1, attention = 2, backward = 3;
  allocation_sequence sequence{space};
  apply(sequence, {allocation(0x100, 1), scope_begin(forward, 1), scope_begin(attention, 2), allocation(0x200, 1)}, 7);
  apply(sequence, {scope_begin(backward, 1), allocation(0x300, 1)}, 8);
  apply(sequence, {scope_end(attention, 2), allocation(0x400, 1), scope_end(forward, 1), deallocation(0x300)}, 7);
  CHECK(path_of(sequence, 0).empty());
  CHECK(path_of(sequence, 1) == std::vector<label>{forward, attention});
  CHECK(path_of(sequence, 2) == std::vector<label>{backward});
  CHECK(path_of(sequence, 3) == std::vector<label>{forward});
  CHECK(path_of(sequence, 4).empty());
}

TEST_CASE("allocation sequence: operations end as in the ledger, out of order and with their thread") {
  constexpr label outer = 1, inner = 2;
  allocation_sequence sequence{space};
  apply(sequence, {scope_begin(outer, 1), scope_begin(inner, 2), scope_end(outer, 1), allocation(0x100, 1), scope_end(inner, 2),
                   allocation(0x200, 1), scope_begin(outer, 1), allocation(0x300, 1)});
  CHECK(path_of(sequence, 0) == std::vector<label>{outer, inner});
  CHECK(path_of(sequence, 1).empty());
  CHECK(path_of(sequence, 2) == std::vector<label>{outer});
  apply(sequence, {{0, 0, 0, 0, event_kind::thread_begin, 0, 0}, allocation(0x400, 1)});
  CHECK(path_of(sequence, 3).empty());
}

TEST_CASE("allocation sequence: a range that is given back frees its blocks in the order of their addresses") {
  allocation_sequence sequence{space};
  apply(sequence, {allocation(0x300, 3),
                   allocation(0x100, 1),
                   allocation(0x200, 2),
                   allocation(0x400, 4),
                   {0, 0x100, 0x201, 0, event_kind::deallocate_range, space, 0}});
  CHECK(steps_of(sequence) == bytes_and_block{{3, 0}, {1, 1}, {2, 2}, {4, 3}, {0, 1}, {0, 2}, {0, 0}});
  apply(sequence, {{0, 0, 0, 0, event_kind::deallocate_range, space, 1}});
  CHECK(sequence.steps().size() == 8);
  CHECK(sequence.unmatched_frees() == 0);
}

namespace {

event on_stream(event_kind kind, std::uint64_t address, std::uint64_t bytes, label stream, std::uint16_t tag = 0) {
  return {0, address, bytes, stream, kind, space, tag};
}

}  // namespace

TEST_CASE("allocation sequence: allocations have the stream that the trace names") {
  allocation_sequence sequence{space};
  apply(sequence,
        {allocation(0x100, 1), on_stream(event_kind::allocate_on_stream, 0x200, 2, 7),
         on_stream(event_kind::allocate_on_stream, 0x300, 3, 9), on_stream(event_kind::allocate_on_stream, 0x400, 4, 7)});
  CHECK(sequence.streams() == std::vector<label>{0, 7, 9});
  std::vector<std::uint64_t> found;
  for (const memprof::allocation_step& step : sequence.steps()) found.push_back(step.stream);
  CHECK(found == std::vector<std::uint64_t>{0, 1, 2, 1});
}

TEST_CASE("allocation sequence: a block that streams may still use is free once they are done, or its address is given again") {
  using memprof::step_kind;
  constexpr event_kind allocates = event_kind::allocate_on_stream;
  constexpr event_kind frees = event_kind::deallocate_on_stream;
  allocation_sequence sequence{space};
  apply(sequence,
        {on_stream(allocates, 0x100, 1, 7), on_stream(allocates, 0x200, 2, 7), on_stream(allocates, 0x300, 3, 7),
         on_stream(frees, 0x100, 0, 7, 1), on_stream(event_kind::complete_deallocation, 0x100, 0, 0),
         on_stream(frees, 0x200, 0, 7, 1), on_stream(frees, 0x300, 0, 7, 1), on_stream(allocates, 0x200, 5, 7),
         on_stream(event_kind::complete_deallocation, 0x300, 0, 0), on_stream(event_kind::complete_deallocation, 0x300, 0, 0)});
  std::vector<std::tuple<step_kind, std::uint32_t>> found;
  for (const memprof::allocation_step& step : sequence.steps()) found.emplace_back(step.kind, step.block);
  CHECK(found == std::vector<std::tuple<step_kind, std::uint32_t>>{{step_kind::allocate, 0},
                                                                   {step_kind::allocate, 1},
                                                                   {step_kind::allocate, 2},
                                                                   {step_kind::deallocate, 0},
                                                                   {step_kind::request_deallocation, 1},
                                                                   {step_kind::request_deallocation, 2},
                                                                   {step_kind::complete_deallocation, 1},
                                                                   {step_kind::allocate, 1},
                                                                   {step_kind::complete_deallocation, 2}});
  CHECK(sequence.unmatched_frees() == 0);
}

}  // namespace memprof_tests::analysis_allocation_sequence
