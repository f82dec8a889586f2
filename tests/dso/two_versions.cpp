// An executable and a library that were compiled with different versions of memprof: each works or refuses, and none harms the
// other. DSO_TEST_ONE_LAYOUT says whether both lay out the registry in the same way, and so share it.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

std::int64_t self_allocated(const memprof::profile& profile, const char* path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? 0 : found->usage[0].self_allocated;
}

void without_a_capture() {
  other_version_allocate(1);
  other_version_snapshot("nobody asks");
  other_version_end_capture();
}

void with_a_capture_of_this_version() {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto capture = memprof::begin_capture({.ring_capacity = 8});
  {
    auto outer = memprof::track_operation<"outer">();
    (void)memory->allocate(1);
    for (int round = 0; round < 100; ++round) other_version_allocate(100);
    std::thread{[] { other_version_allocate(50); }}.join();
  }
  if (DSO_TEST_ONE_LAYOUT) {
    other_version_snapshot("of the other");
    expect(other_version_peak() == -1, "the other version does not ask this one's capture for a profile");
    other_version_end_capture();
  }
  (void)memory->allocate(2);
  capture.end();
  const memprof::profile& profile = capture.profile();
  expect(profile.exact && profile.anomalies == memprof::event_anomalies{}, "nothing is lost");
  expect(profile.segments.size() == (DSO_TEST_ONE_LAYOUT ? 2U : 1U), "the other version's snapshot ends a segment");
  expect(profile.space("dso").allocations == 3 + (DSO_TEST_ONE_LAYOUT ? 10'050 : 0), "what both versions allocated");
  expect(self_allocated(profile, "outer/in other version") == (DSO_TEST_ONE_LAYOUT ? 10'000 : 0), "operations of both nest");
}

void with_a_capture_of_the_other_version() {
  static auto* const memory = new memprof::memory_resource{"dso"};
  other_version_begin_capture();
  other_version_allocate(1'000);
  (void)memory->allocate(24);
  if (DSO_TEST_ONE_LAYOUT) {
    bool is_refused = false;
    try {
      (void)memprof::begin_capture();
    } catch (const memprof::error&) {
      is_refused = true;
    }
    expect(is_refused, "two captures at once are refused");
    expect(memprof::current_profile().spaces.empty(), "the other version's profile is refused");
    memprof::end_capture();
  }
  expect(other_version_peak() == (DSO_TEST_ONE_LAYOUT ? 1'024 : 1'000), "the other version goes on, and counts both");
  other_version_end_capture();
  expect(other_version_peak() == (DSO_TEST_ONE_LAYOUT ? 1'024 : 1'000), "and its profile stays");
}

}  // namespace

int main() {
  expect(std::strcmp(other_version_of_memprof(), "9.8.7") == 0, "the library was compiled with 9.8.7");
  expect(std::string{memprof::version_string} != "9.8.7", "and this with another");
  without_a_capture();
  expect(other_version_peak() == -1, "without a capture there is no profile");
  for (int round = 0; round < 3; ++round) {
    with_a_capture_of_this_version();
    with_a_capture_of_the_other_version();
  }
  without_a_capture();
  if (failures == 0) std::puts("two versions: all is as it should be");
  return failures == 0 ? 0 : 1;
}
