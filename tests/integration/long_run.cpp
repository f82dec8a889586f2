#include <memprof/memprof.hpp>
#include <memprof/profile/contradictions.hpp>
#include <memprof/profile/json.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace memprof_tests::integration_long_run {

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

const void* block_at(std::uint64_t index) { return reinterpret_cast<const void*>((std::uint64_t{1} << 40) + index * 64); }

/// A training without memory: three phases of ten operations each, and perhaps a leak of 16 bytes a step.
class training {
 public:
  explicit training(bool leaks) : leaks_(leaks) {}

  void run(std::uint64_t steps, memprof::capture_guard& capture) {
    constexpr const char* phases[] = {"FORWARD_PASS", "BACKWARD_PASS", "OPTIMIZER_STEP"};
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (leaks_) sink_.allocate(space_, block_at(1000 + step_++), 16);
      for (std::uint64_t phase = 0; phase < 3; ++phase) {
        for (std::uint64_t index = 10 * phase; index < 10 * phase + 10; ++index) {
          auto scope = memprof::track_operation(names_[index]);
          sink_.allocate(space_, block_at(index), 1000 + index);
        }
        if (phase == 2) {
          for (std::uint64_t index = 0; index < 30; ++index) sink_.deallocate(space_, block_at(index));
        }
        capture.snapshot(phases[phase]);
      }
    }
  }

 private:
  memprof::extend::event_sink sink_;
  memprof::memory_space space_{"cpu"};
  bool leaks_;
  std::uint64_t step_ = 0;
  std::string names_[30] = {"embed",  "norm_1", "query",  "key",    "value",  "scores", "mix",    "out",    "mlp_up", "mlp_dn",
                            "b_out",  "b_mix",  "b_sco",  "b_val",  "b_key",  "b_que",  "b_nor",  "b_emb",  "b_up",   "b_dn",
                            "adam_0", "adam_1", "adam_2", "adam_3", "adam_4", "adam_5", "adam_6", "adam_7", "adam_8", "adam_9"};
};

/// Bytes of the profiler for what is not live blocks.
std::int64_t own_bytes(const memprof::capture_guard& capture) { return capture.profile().cost.memory_bytes; }

}  // namespace

TEST_CASE("long run: neither memory nor the profile grows with the number of steps, and sums stay exact") {
  auto capture = memprof::begin_capture();
  training trained{true};
  trained.run(1000, capture);
  const std::int64_t bytes_at_1000 = own_bytes(capture);
  const std::size_t size_at_1000 = memprof::detail::dump(memprof::to_json(capture.profile())).size();
  constexpr std::int64_t steps = 6000;
  trained.run(steps - 1000, capture);
  capture.end();

  const memprof::profile profile = capture.profile();
  // The leak's blocks are live, so their table grows, by 171 bytes a block at most; nothing else does.
  CHECK(profile.cost.memory_bytes <= bytes_at_1000 + 171 * steps);
  CHECK(profile.cost.memory_bytes < 4 * mib);
  const std::size_t size = memprof::detail::dump(memprof::to_json(profile)).size();
  CHECK(size < 2U * mib);
  CHECK(size < size_at_1000 + size_at_1000 / 5);  // longer numbers, and a timeline with more points

  CHECK(profile.segment_count == 3 * steps + 1);
  CHECK(profile.step_count == steps);
  CHECK(profile.segments.size() == 64);
  CHECK(profile.segments.front().number == 0);
  CHECK(profile.segments.back().number == 3 * steps);
  const memprof::space_profile& space = profile.space("cpu");
  CHECK(memprof::contradictions(profile, space).empty());
  REQUIRE(profile.segments_by_name.size() == 4);
  CHECK(profile.segments_by_name[1].count == steps);
  const memprof::segment_summary& forward = space.segments_by_name[0];
  CHECK(forward.segment == "FORWARD_PASS");
  CHECK(forward.allocations.sum == steps * (16 + 10 * 1000 + 45));
  CHECK(forward.segment_peak.least == 16 + 10 * 1000 + 45);
  CHECK(forward.cumulative_current.greatest_segment == 3 * (steps - 1));
  const memprof::segment_summary& last = space.segments_by_name[2];
  CHECK(last.segment == "OPTIMIZER_STEP");
  CHECK(last.cumulative_current.first == 16);
  CHECK(last.cumulative_current.last == 16 * steps);
  CHECK(last.growth.per_step == 16.0);
  CHECK(last.growth.r_squared == 1.0);
  CHECK(space.peak_segment >= 0);
}

TEST_CASE("long run: where nothing leaks, the profiler's own memory stays what it was after the first thousand steps") {
  auto capture = memprof::begin_capture();
  training trained{false};
  trained.run(1000, capture);
  const std::int64_t bytes = own_bytes(capture);
  CHECK(bytes < 4 * mib);
  for (int round = 0; round < 5; ++round) {
    trained.run(1000, capture);
    CHECK(own_bytes(capture) == bytes);
  }
}

TEST_CASE("long run: threads and memory spaces that are made without end cost no more than a few") {
  auto capture = memprof::begin_capture();
  const memprof::extend::event_sink sink;
  const auto run = [&](int count) {
    for (int index = 0; index < count; ++index) {
      std::thread{[&] {
        auto scope = memprof::track_operation("work");
        const memprof::memory_space space{"cpu"};
        sink.allocate(space, block_at(static_cast<std::uint64_t>(index)), 10);
        sink.deallocate(space, block_at(static_cast<std::uint64_t>(index)));
      }}.join();
    }
  };
  run(100);
  const std::int64_t bytes = own_bytes(capture);
  run(2000);
  // The system may tell later that a thread has ended than the next one begins, so a few rings more are no growth.
  CHECK(own_bytes(capture) < bytes + mib);

  for (int index = 0; index < 400; ++index) {
    const memprof::memory_space space{"space " + std::to_string(index)};
    sink.allocate(space, block_at(10'000 + static_cast<std::uint64_t>(index)), 10);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK_FALSE(profile.exact);  // blocks at equal addresses in spaces that share one would count as one
  REQUIRE(profile.spaces.size() == 255);
  CHECK(profile.spaces.back().stands_for_others);
  CHECK(profile.spaces.back().name == "other spaces");
  CHECK(std::count_if(profile.spaces.begin(), profile.spaces.end(),
                      [](const memprof::space_profile& space) { return space.stands_for_others; }) == 1);
  std::int64_t current = 0;
  for (const memprof::space_profile& space : profile.spaces) current += space.cumulative_current;
  CHECK(current == 400 * 10);
}

// The last test: it leaves the process no room for names.
TEST_CASE("long run: names with a number in them end in one row, and memory stays where it is") {
  auto capture = memprof::begin_capture({.segment_names = 8, .operations = 100});
  const memprof::memory_space space{"cpu"};
  const memprof::extend::event_sink sink;
  const auto run = [&](int first, int last) {
    for (int step = first; step < last; ++step) {
      const std::string name = "a name of step " + std::to_string(step);
      {
        auto scope = memprof::track_operation(name);
        auto inner = memprof::track_operation(name);
        sink.allocate(space, block_at(1), 100);
        memprof::annotate(block_at(1), {.name = name});
        sink.deallocate(space, block_at(1));
      }
      capture.snapshot(name);
    }
  };
  run(0, 70'000);  // more than the process keeps names
  const std::int64_t bytes = own_bytes(capture);
  CHECK(bytes < 16 * mib);
  run(70'000, 100'000);
  CHECK(own_bytes(capture) == bytes);
  capture.end();

  const memprof::profile profile = capture.profile();
  CHECK(profile.exact);
  CHECK(profile.segments_by_name.size() == 9);
  CHECK(profile.segments_by_name.back().stands_for_others);
  CHECK(profile.segments_by_name.back().name == "other segments");
  CHECK(profile.segments_by_name.back().count == 100'001 - 8);
  CHECK(profile.anomalies.other_segments == 100'001 - 8);
  // 100 have a row of their own, in pairs; of the others the inner is part of the outer.
  CHECK(profile.operations.size() == 101);
  const memprof::operation_profile* const others = profile.find_operation("\\other");
  REQUIRE(others != nullptr);
  CHECK(others->stands_for_others);
  CHECK(others->invocations == 2 * (100'000 - 50));
  CHECK(profile.anomalies.other_operations == 2 * (100'000 - 50));
  // A step has two new names, its own and that of the annotation, and uses them four times. The process has room for 65,536, of
  // which the tests above may have taken some.
  CHECK(profile.anomalies.other_names >= 4 * (100'000 - 65'536 / 2));
  CHECK(profile.anomalies.other_names <= 4 * (100'000 - 64'000 / 2));
  std::int64_t allocated = 0;
  for (const memprof::operation_profile& operation : profile.operations) {
    for (const memprof::operation_usage& usage : operation.usage) allocated += usage.self_allocated;
  }
  CHECK(allocated == 100 * 100'000);
  CHECK(memprof::contradictions(profile, profile.space("cpu")).empty());
}

}  // namespace memprof_tests::integration_long_run
