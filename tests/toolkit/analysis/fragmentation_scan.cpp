#include <memprof/toolkit/analysis/fragmentation_scan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memprof_tests::analysis_fragmentation_scan {

using memprof::fragmentation;
using memprof::fragmentation_in;
using memprof::recorded_fragmentation;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::extend::label;

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr label main_stream = 2;
constexpr label other_stream = 3;

/// A trace of the space "cuda:0", with addresses and sizes in MiB.
class recorded {
 public:
  recorded& reserve(std::uint64_t address, std::uint64_t size, label on = main_stream) {
    return add({0, address * mib, size * mib, on, event_kind::reserve, 0, 0});
  }
  recorded& release(std::uint64_t address, std::uint64_t size) {
    return add({0, address * mib, size * mib, main_stream, event_kind::release, 0, 0});
  }
  recorded& allocate(std::uint64_t address, std::uint64_t size, label on = main_stream, std::uint64_t less = 0) {
    return add({0, address * mib, size * mib - less, on, event_kind::allocate_on_stream, 0, 0});
  }
  recorded& deallocate(std::uint64_t address, std::uint16_t tag = 0) {
    return add({0, address * mib, 0, main_stream, event_kind::deallocate_on_stream, 0, tag});
  }
  recorded& complete(std::uint64_t address) { return add({0, address * mib, 0, 0, event_kind::complete_deallocation, 0, 0}); }
  recorded& fail(std::uint64_t size) {
    return add({0, memprof::extend::unknown_device_free, size * mib, 0, event_kind::out_of_memory, 0, 0});
  }
  recorded& lose_events() { return add({0, 0, 5, 0, event_kind::gap, 0, 0}); }

  template <class Visitor>
  void visit(Visitor& visitor) const {
    visitor.name(1, "cuda:0");
    visitor.name(main_stream, "default\x1f");
    visitor.name(other_stream, "0x55\x1f");
    visitor.space({.id = 0, .name = 1});
    for (const event& each : events_) visitor.events(&each, &each + 1, 0);
  }

  [[nodiscard]] recorded_fragmentation found() const {
    const std::optional<recorded_fragmentation> result = fragmentation_in(*this, "cuda:0");
    REQUIRE(result);
    return *result;
  }

 private:
  recorded& add(const event& next) {
    events_.push_back(next);
    return *this;
  }

  std::vector<event> events_;
};

constexpr std::int64_t in_bytes(std::int64_t size) { return size * static_cast<std::int64_t>(mib); }

}  // namespace

TEST_CASE("fragmentation scan: the peak is divided by addresses, after the allocation for which more was reserved") {
  recorded trace;
  trace.reserve(0, 60).allocate(0, 20).allocate(20, 20).allocate(40, 10).deallocate(20);
  trace.reserve(100, 30).allocate(100, 30).deallocate(100).deallocate(0);
  const recorded_fragmentation found = trace.found();
  CHECK(found.at_peak.parts ==
        fragmentation{.reserved = in_bytes(90), .live = in_bytes(60), .hard = in_bytes(20), .soft = in_bytes(10)});
  CHECK(found.at_peak.event == 6);
  CHECK(found.at_peak.stream == "default\x1f");
  CHECK(found.outside == 0);
  CHECK_FALSE(found.at_failure);
}

TEST_CASE("fragmentation scan: segments that touch stay apart, unless a block lies in both") {
  recorded fixed;
  fixed.reserve(0, 20).allocate(0, 10).reserve(20, 20).allocate(30, 10);
  CHECK(fixed.found().at_peak.parts == fragmentation{.reserved = in_bytes(40), .live = in_bytes(20), .soft = in_bytes(20)});
  recorded expandable;
  expandable.reserve(0, 20).reserve(20, 20).allocate(15, 10).deallocate(15).allocate(0, 10).reserve(40, 20).allocate(30, 30);
  CHECK(expandable.found().at_peak.parts == fragmentation{.reserved = in_bytes(60), .live = in_bytes(40), .hard = in_bytes(20)});
}

TEST_CASE("fragmentation scan: a failure is divided as its stream sees it, after what was given back") {
  recorded trace;
  trace.reserve(0, 30, other_stream).allocate(0, 30, other_stream).deallocate(0);
  trace.reserve(100, 40).allocate(100, 40).reserve(200, 20).allocate(200, 20).deallocate(200).release(200, 20);
  trace.allocate(0, 5, other_stream).deallocate(0).deallocate(100).allocate(110, 30).fail(80);
  const recorded_fragmentation found = trace.found();
  CHECK(found.at_peak.parts == fragmentation{.reserved = in_bytes(90), .live = in_bytes(60), .stream = in_bytes(30)});
  REQUIRE(found.at_failure);
  CHECK(found.at_failure->requested == in_bytes(80));
  CHECK(found.at_failure->stream == "default\x1f");
  CHECK(found.at_failure->parts ==
        fragmentation{.reserved = in_bytes(70), .live = in_bytes(30), .soft = in_bytes(10), .stream = in_bytes(30)});
}

TEST_CASE("fragmentation scan: freed blocks that streams still use are pending until they are done") {
  recorded trace;
  trace.reserve(0, 60).allocate(0, 20).allocate(20, 20).deallocate(20, 1).allocate(40, 20).deallocate(0, 1).complete(0);
  trace.reserve(100, 20).allocate(100, 20);
  CHECK(trace.found().at_peak.parts ==
        fragmentation{.reserved = in_bytes(80), .live = in_bytes(40), .pending = in_bytes(20), .soft = in_bytes(20)});
}

TEST_CASE("fragmentation scan: what the allocator adds to a request is rounding") {
  recorded trace;
  // 100 bytes less than 19 MiB, with a rest of 1 MiB that is not split off; 1 MiB and 412 bytes less, with 9 MiB free behind it.
  trace.reserve(0, 20).allocate(0, 19, main_stream, 100).reserve(40, 20).allocate(40, 11, main_stream, mib + 412);
  const std::int64_t rounding = in_bytes(1) + 100 + 412;
  CHECK(trace.found().at_peak.parts ==
        fragmentation{.reserved = in_bytes(40), .live = in_bytes(29) - 512, .rounding = rounding, .soft = in_bytes(10)});
}

TEST_CASE("fragmentation scan: blocks that lie in no range are counted apart") {
  recorded trace;
  trace.reserve(0, 20).allocate(1000, 15).allocate(2000, 5);
  CHECK(trace.found().outside == in_bytes(15));  // the peak is after the first
  CHECK(trace.found().at_peak.parts == fragmentation{.reserved = in_bytes(20), .soft = in_bytes(20)});
}

TEST_CASE("fragmentation scan: there is no answer without reserved memory, or if events are missing") {
  recorded nothing;
  nothing.allocate(0, 20);
  CHECK_FALSE(fragmentation_in(nothing, "cuda:0"));
  recorded incomplete;
  incomplete.lose_events().reserve(0, 20).allocate(0, 10);
  CHECK_FALSE(fragmentation_in(incomplete, "cuda:0"));
  recorded elsewhere;
  elsewhere.reserve(0, 20).allocate(0, 10);
  CHECK_FALSE(fragmentation_in(elsewhere, "cuda:1"));
}

}  // namespace memprof_tests::analysis_fragmentation_scan
