// hot_path CASE COUNT: does one thing COUNT times, for callgrind to count instructions. No address is ever used as memory, so
// that neither the C library nor the kernel has a part in the counts.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using count_type = std::uint64_t;

/// Counts must not depend on the machine: on one without an invariant time stamp counter another clock would be chosen.
void choose_clock() {
#if defined(__x86_64__)
  memprof::abi_1::process_registry.stamps.chosen = memprof::detail::stamp_source::kind::time_stamp_counter;
#endif
}

const void* block_at(count_type index) { return reinterpret_cast<const void*>((count_type{1} << 40) + index * 64); }

/// Events that go up and down a stack of blocks, 64 at a time.
void allocate_and_free(count_type events) {
  constexpr count_type burst = 64;
  const memprof::memory_space space{"cpu"};
  const memprof::extend::event_sink sink;
  for (count_type done = 0; done < events; done += 2 * burst) {
    for (count_type index = 0; index < burst; ++index) sink.allocate(space, block_at(index), 16 + index);
    for (count_type index = burst; index-- > 0;) {
#ifdef MEMPROF_SWOLLEN
      for (int step = 0; step < 8; ++step) asm volatile("nop");
#endif
      sink.deallocate(space, block_at(index));
    }
  }
}

/// What the calling thread does for an event while its ring has room. The process ends without a drain.
void record(count_type events) {
  memprof::begin_capture({.ring_capacity = 1U << 20}).release();
  allocate_and_free(events);
  std::_Exit(0);
}

/// An event from its recording to the ledger.
void whole_road(count_type events) {
  const auto capture = memprof::begin_capture();
  allocate_and_free(events);
}

void no_capture(count_type events) { allocate_and_free(events); }

/// Enter and exit, to the ledger.
void operation(count_type count) {
  const auto capture = memprof::begin_capture();
  for (count_type index = 0; index < count; ++index) auto scope = memprof::track_operation<"attention">();
}

void operation_by_name(count_type count) {
  const auto capture = memprof::begin_capture();
  const std::string_view name = "attention";
  for (count_type index = 0; index < count; ++index) auto scope = memprof::track_operation(name);
}

/// The replaced operators with no capture, to be compared with `malloc_and_free`.
void new_and_delete(count_type events) {
  for (count_type done = 0; done < events; done += 2) {
    void* const block = ::operator new(48);
    asm volatile("" : : "r"(block) : "memory");
    ::operator delete(block);
  }
}

void malloc_and_free(count_type events) {
  for (count_type done = 0; done < events; done += 2) {
    void* const block = std::malloc(48);
    asm volatile("" : : "r"(block) : "memory");
    std::free(block);
  }
}

struct named_case {
  std::string_view name;
  void (*run)(count_type);
};

constexpr std::array<named_case, 7> cases{{
    {"record", record},
    {"whole_road", whole_road},
    {"no_capture", no_capture},
    {"operation", operation},
    {"operation_by_name", operation_by_name},
    {"new_and_delete", new_and_delete},
    {"malloc_and_free", malloc_and_free},
}};

}  // namespace

int main(int count, char** arguments) {
  choose_clock();
  for (const named_case& candidate : cases) {
    if (count != 3 || candidate.name != arguments[1]) continue;
    candidate.run(std::strtoull(arguments[2], nullptr, 10));
    return 0;
  }
  std::fputs("usage: hot_path CASE COUNT\n", stderr);
  return 2;
}
