// The n-th allocation of the upstream fails, for every n until the program runs through: the profile holds what succeeded. Then
// the same for the profiler's own pages: what it could not count makes the profile not exact.
#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <unit/ledger/ledger_driver.hpp>
#include <unit/ledger/memory_left.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

namespace {

/// Fails once, at the allocation of that number, and keeps the truth of all others.
class failing_upstream : public std::pmr::memory_resource {
 public:
  explicit failing_upstream(int failing) : failing_(failing) {}

  std::int64_t live = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t allocations = 0;
  std::int64_t deallocations = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (--failing_ == 0) throw std::bad_alloc{};
    void* const address = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    live += static_cast<std::int64_t>(bytes);
    if (live > peak) peak = live;
    allocated += static_cast<std::int64_t>(bytes);
    ++allocations;
    return address;
  }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    live -= static_cast<std::int64_t>(bytes);
    ++deallocations;
    std::pmr::new_delete_resource()->deallocate(address, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  int failing_;
};

/// Containers of several kinds, operations and segments. What is in `kept` outlives it.
void run_scenario(std::pmr::memory_resource& memory, std::pmr::vector<std::pmr::string>& kept) {
  auto outer = memprof::track_operation<"scenario">();
  std::pmr::map<int, std::pmr::vector<int>> tree{&memory};
  for (int key = 0; key < 6; ++key) {
    auto scope = memprof::track_operation("insert", memprof::category::temporary);
    tree[key].resize(static_cast<std::size_t>(10 + key));
  }
  memprof::snapshot("TREE");
  for (int count = 0; count < 5; ++count) {
    auto scope = memprof::track_operation<"keep">(memprof::category::parameter);
    kept.emplace_back("a text that is too long for the string's own buffer");
    memprof::annotate(kept.back().data(), {.name = "kept", .shape = "[51]", .dtype = "char"});
  }
  tree.clear();
  memprof::snapshot("KEPT");
  std::pmr::vector<double> last{&memory};
  last.resize(1000);
}

/// Whether the scenario ran through with the allocation of that number failing.
bool passes_with_failure_at(int failing) {
  failing_upstream upstream{failing};
  memprof::memory_resource memory{"failing", &upstream};
  std::pmr::vector<std::pmr::string> kept{&memory};
  bool has_passed = false;
  auto capture = memprof::begin_capture({.ring_capacity = 4});
  try {
    run_scenario(memory, kept);
    has_passed = true;
  } catch (const std::bad_alloc&) {
  }
  capture.end();

  const memprof::profile& profile = capture.profile();
  INFO("allocation " << failing << " fails");
  CHECK(profile.exact);
  CHECK(profile.anomalies == memprof::event_anomalies{});
  for (const memprof::operation_profile& operation : profile.operations) CHECK(operation.invocations > 0);
  const memprof::space_profile* const space = profile.find_space("failing");
  if (upstream.allocations == 0) {
    CHECK(space == nullptr);
    return has_passed;
  }
  REQUIRE(space != nullptr);
  CHECK(space->allocations == upstream.allocated);
  CHECK(space->allocation_count == upstream.allocations);
  CHECK(space->deallocation_count == upstream.deallocations);
  CHECK(space->cumulative_current == upstream.live);
  CHECK(space->cumulative_peak == upstream.peak);
  CHECK(space->live_at_peak.bytes == upstream.peak);
  CHECK(space->anomalies == memprof::space_anomalies{});
  std::int64_t change = 0;
  for (const memprof::segment_usage& segment : space->segments) change += segment.segment_change;
  CHECK(change == upstream.live);
  // Every operation was left, through the exception too, so what is still live belongs to none that is open.
  const memprof::operation_profile* const scenario = profile.find_operation("scenario");
  REQUIRE(scenario != nullptr);
  CHECK(scenario->usage.at(0).max_delta == upstream.live);
  return has_passed;
}

}  // namespace

TEST_CASE("allocation failure: whichever allocation fails, the profile equals what succeeded") {
  int failing = 1;
  while (!passes_with_failure_at(failing)) {
    ++failing;
    REQUIRE(failing < 1000);
  }
  CHECK(failing > 20);  // the scenario has that many allocations
}

TEST_CASE("allocation failure: the allocator does not record what operator new refused") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("the sanitizer's operator new ends the program instead of throwing");
#endif
  auto capture = memprof::begin_capture();
  memprof::allocator<char> heap;
  CHECK_THROWS_AS((void)heap.allocate(std::size_t{1} << 60), std::bad_alloc);
  CHECK_THROWS_AS((void)memprof::allocator<double>{}.allocate(SIZE_MAX / 4), std::bad_array_new_length);
  heap.deallocate(heap.allocate(10), 10);
  capture.end();
  CHECK(capture.profile().space("cpu").allocations == 10);
  CHECK(capture.profile().space("cpu").allocation_count == 1);
}

#if defined(__linux__)

TEST_CASE("allocation failure: whichever page the profiler does not get, operations are right or the profile is not exact") {
  using memprof::extend::event;
  using memprof::extend::event_kind;
  constexpr std::uint32_t operations = 600;         // the tree and the statistics of the space must grow several times
  constexpr memprof::extend::label first_name = 5;  // behind the driver's names of spaces
  std::vector<event> events;
  for (std::uint32_t number = 1; number <= operations; ++number) {
    const memprof::extend::label name = first_name + number - 1;
    const std::uint64_t stamp = 1'000'000 + 10 * number;
    events.push_back({stamp, memprof::detail::scope_address(number, 0), 0, name, event_kind::scope_begin, 0, 0});
    events.push_back({stamp + 1, 0x2000, 10, 0, event_kind::allocate, 0, 0});
    events.push_back({stamp + 2, 0x2000, 10, 0, event_kind::deallocate, 0, 0});
    events.push_back({stamp + 3, number, 0, name, event_kind::scope_end, 0, 0});
  }
  int failures = 0;
  bool has_run_through = false;
  for (rlim_t pages = 0; !has_run_through; ++pages) {
    REQUIRE(pages < 300);
    memprof::test::ledger_driver driver;
    driver.allocate(0x1000, 8);
    for (std::uint32_t number = 1; number <= operations; ++number)
      driver.annotate(0x1000, "operation " + std::to_string(number), memprof::category::other);
    memprof::test::with_memory_left(pages * 4096, [&] { driver.events.apply(events.data(), events.data() + events.size(), 0); });
    const memprof::profile made = driver.finished_profile();
    has_run_through = driver.events.operations().size() == operations + 1 && made.exact;
    failures += made.exact ? 0 : 1;
    if (!made.exact) continue;
    INFO(pages << " pages");
    for (std::uint32_t number = 1; number <= operations; ++number) {
      const memprof::operation_profile* const made_here = made.find_operation("operation " + std::to_string(number));
      REQUIRE(made_here != nullptr);
      REQUIRE(made_here->invocations == 1);
      REQUIRE(made_here->usage.at(0).self_allocated == 10);
      REQUIRE(made_here->usage.at(0).self_freed == 10);
      REQUIRE(made_here->usage.at(0).peak == 10);
    }
  }
  CHECK(failures > 5);
}

#endif
