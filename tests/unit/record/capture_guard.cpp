#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <memprof/memprof.hpp>

#include <stderr_of.hpp>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace memprof_tests::record_capture_guard {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Allocates and frees, so that a capture has a peak of that many bytes.
void peak_at(std::size_t bytes) {
  memprof::memory_resource memory;
  memory.deallocate(memory.allocate(bytes), bytes);
}

}  // namespace

TEST_CASE("capture: beginning one while another is active throws, and the active one is unharmed") {
  auto capture = memprof::begin_capture();
  peak_at(100);
  CHECK_THROWS_MATCHES((void)memprof::begin_capture(), memprof::error, MessageMatches(ContainsSubstring("already active")));
  capture.end();
  CHECK(capture.profile().space("cpu").cumulative_peak == 100);
}

TEST_CASE("capture: a snapshot after the capture ends nothing, and says so once") {
  memprof::begin_capture().end();
  const std::string said = stderr_of([] { memprof::snapshot("LATE"); });
  CHECK((said.empty() || said.find("LATE") != std::string::npos));  // another test may have been the first
  CHECK(stderr_of([] { memprof::snapshot("LATER"); }).empty());
  CHECK(memprof::current_profile().segments.size() == 1);
}

TEST_CASE("capture: ending with none active warns on stderr and ends nothing") {
  memprof::discard_capture();
  CHECK_THAT(stderr_of([] { memprof::end_capture(); }), ContainsSubstring("no capture is active"));
  auto capture = memprof::begin_capture();
  CHECK(stderr_of([] { memprof::end_capture(); }).empty());
}

TEST_CASE("capture: a guard ends its capture at the end of its scope, and the profile stays readable") {
  {
    auto capture = memprof::begin_capture();
    peak_at(70);
  }
  const memprof::profile profile = memprof::current_profile();
  CHECK(profile.complete);
  CHECK(profile.space("cpu").cumulative_peak == 70);
  REQUIRE(profile.segments.size() == 1);
  CHECK(profile.segments[0].name == "END_TRACE");
  memprof::discard_capture();
  CHECK(memprof::current_profile().spaces.empty());
}

TEST_CASE("capture: an exception ends it as the end of the scope does") {
  try {
    auto capture = memprof::begin_capture();
    auto scope = memprof::track_operation<"throwing">();
    peak_at(30);
    throw std::runtime_error{"out of here"};
  } catch (const std::runtime_error&) {
  }
  const memprof::profile profile = memprof::current_profile();
  CHECK(profile.complete);
  CHECK(profile.anomalies.unbalanced_scopes == 0);
  REQUIRE(profile.find_operation("throwing") != nullptr);
  CHECK(profile.find_operation("throwing")->usage.at(0).peak == 30);
  CHECK_NOTHROW(memprof::begin_capture().end());
}

TEST_CASE("capture: ending twice, or after end_capture, changes nothing") {
  auto capture = memprof::begin_capture();
  peak_at(10);
  capture.end("LAST");
  peak_at(1000);
  capture.end("NEVER");
  CHECK(capture.profile().segments.size() == 1);
  CHECK(capture.profile().segments[0].name == "LAST");
  CHECK(capture.profile().space("cpu").cumulative_peak == 10);

  auto second = memprof::begin_capture();
  memprof::end_capture("BY_FUNCTION");
  second.end("NEVER");
  CHECK(second.profile().segments.at(0).name == "BY_FUNCTION");
}

TEST_CASE("capture: a guard that was ended does not end the next capture") {
  std::optional<memprof::capture_guard> first{memprof::begin_capture()};
  first->end();
  auto second = memprof::begin_capture();
  first->end();
  first.reset();
  peak_at(5);
  CHECK_FALSE(second.profile().complete);
  CHECK(second.profile().space("cpu").cumulative_peak == 5);
}

TEST_CASE("capture: a released guard lets the capture go on") {
  {
    auto capture = memprof::begin_capture();
    capture.release();
    CHECK_THROWS_AS((void)capture.profile(), memprof::error);
    capture.snapshot("NONE");
  }
  memprof::snapshot("STILL_ACTIVE");
  memprof::end_capture();
  CHECK(memprof::current_profile().segments.size() == 2);
}

TEST_CASE("capture: a guard that was moved from owns nothing") {
  auto capture = memprof::begin_capture();
  {
    memprof::capture_guard other{std::move(capture)};
    other.snapshot("BY_OTHER");
  }
  memprof::snapshot("ENDED");
  CHECK(memprof::current_profile().segments.size() == 2);
}

TEST_CASE("capture: a guard's profile is gone after another begin, and after clear") {
  auto first = memprof::begin_capture();
  first.end();
  CHECK_NOTHROW((void)first.profile());
  {
    auto second = memprof::begin_capture();
    CHECK_THROWS_MATCHES((void)first.profile(), memprof::error, MessageMatches(ContainsSubstring("followed by another")));
    first.snapshot("OF_FIRST");
    CHECK(second.profile().segments.size() == 1);  // the open one
  }
  auto third = memprof::begin_capture();
  memprof::discard_capture();
  CHECK_THROWS_AS((void)third.profile(), memprof::error);
  third.snapshot("CLEARED");
  CHECK(memprof::current_profile().segments.empty());
}

TEST_CASE("capture: an option out of range is refused by name, with what is allowed, and no capture begins") {
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.ring_capacity = 1}), memprof::error,
                       MessageMatches(ContainsSubstring("ring_capacity is 1") && ContainsSubstring("2 to")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.ring_capacity = (1U << 24) + 1}), memprof::error,
                       MessageMatches(ContainsSubstring("ring_capacity")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.timeline_points = 1}), memprof::error,
                       MessageMatches(ContainsSubstring("timeline_points is 1")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.largest_blocks = 5000}), memprof::error,
                       MessageMatches(ContainsSubstring("largest_blocks is 5000")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.full_segments = 3}), memprof::error,
                       MessageMatches(ContainsSubstring("full_segments is 3") && ContainsSubstring("4 to 65536")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.segment_names = 0}), memprof::error,
                       MessageMatches(ContainsSubstring("segment_names is 0")));
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.operations = 0}), memprof::error,
                       MessageMatches(ContainsSubstring("operations is 0")));
  CHECK_FALSE(memprof::abi_1::process_registry.active_capture.load() != 0);
}

TEST_CASE("capture: a profile read while it is active has the open segment, and later ones go on from it") {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory;
  void* const kept = memory.allocate(100);
  CHECK_FALSE(capture.profile().complete);
  CHECK(capture.profile().space("cpu").cumulative_current == 100);
  CHECK(capture.profile().segments.back().name == "OPEN_SEGMENT");
  capture.snapshot("FIRST");
  memory.deallocate(kept, 100);
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  CHECK(cpu.segments.at(0).segment_change == 100);
  CHECK(cpu.segments.at(1).segment_change == -100);
  CHECK(cpu.segments.at(1).segment_peak == 0);
}

TEST_CASE("capture: a free of a block from before it is an unmatched free, not a deallocation") {
  memprof::memory_resource memory;
  void* const older = memory.allocate(64);
  auto capture = memprof::begin_capture();
  memory.deallocate(older, 64);
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  CHECK(cpu.deallocations == 0);
  CHECK(cpu.anomalies.unmatched_frees == memprof::event_tally{1, 64});
  CHECK(cpu.cumulative_current == 0);
}

}  // namespace memprof_tests::record_capture_guard
