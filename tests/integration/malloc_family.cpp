// Every block of this program is recorded, whichever function of the C library or of C++ made it. What a test needs beside the
// blocks that it counts is made before the capture or hidden: Catch2 allocates as well.
#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/report/text.hpp>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

extern "C" {
void free_sized(void*, std::size_t) noexcept;
void free_aligned_sized(void*, std::size_t, std::size_t) noexcept;
}

namespace {

/// An optimiser may leave out a block that nobody uses, but not this one.
template <class T>
T* keep(T* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

/// What a capture around `work` says.
template <class Work>
memprof::profile recorded_by(Work work) {
  memprof::profile profile;
  {
    auto capture = memprof::begin_capture({.ring_capacity = 8});
    work();
    capture.end();
    profile = capture.profile();
  }
  return profile;
}

template <class Work>
memprof::space_profile cpu_of(Work work) {
  const memprof::profile profile = recorded_by(work);
  CHECK(profile.anomalies.reentrant_events == 0);
  const memprof::space_profile* const space = profile.find_space("cpu");
  return space == nullptr ? memprof::space_profile{} : *space;
}

/// Live bytes now.
std::int64_t live() {
  const memprof::profile profile = memprof::current_profile();
  const memprof::space_profile* const space = profile.find_space("cpu");
  return space == nullptr ? 0 : space->cumulative_current;
}

/// More than any machine has. Volatile, as the compiler warns of such calls.
const volatile std::size_t too_much = std::size_t{1} << 60;

}  // namespace

TEST_CASE("malloc: a capture in which nothing is allocated has no event") {
  std::size_t spaces = 1;
  const memprof::profile profile = recorded_by([&] {
    for (int round = 0; round < 3; ++round) spaces = memprof::current_profile().spaces.size();
  });
  CHECK(spaces == 0);
  CHECK(profile.spaces.empty());
  CHECK(profile.anomalies.reentrant_events == 0);
}

TEST_CASE("malloc: every function is recorded once, with the bytes that were asked for") {
  const memprof::space_profile cpu = cpu_of([] {
    std::free(keep(std::malloc(1)));
    std::free(keep(std::calloc(2, 1)));
    std::free(keep(std::realloc(nullptr, 4)));
    std::free(keep(::reallocarray(nullptr, 4, 2)));
    void* aligned = nullptr;
    if (::posix_memalign(&aligned, 256, 16) == 0) std::free(keep(aligned));
    std::free(keep(std::aligned_alloc(64, 32)));
    std::free(keep(::memalign(128, 64)));
    std::free(keep(::valloc(128)));
    free_sized(keep(std::malloc(256)), 256);
    free_aligned_sized(keep(std::aligned_alloc(64, 512)), 64, 512);
    std::free(keep(::pvalloc(1)));  // a page of 4,096 bytes
    std::free(keep(std::malloc(0)));
    std::free(nullptr);
  });
  const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(cpu.allocations == 1023 + page);
  CHECK(cpu.allocation_count == 12);
  CHECK(cpu.deallocation_count == 12);
  CHECK(cpu.cumulative_current == 0);
  CHECK(cpu.cumulative_peak == page);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("malloc: operator new in all forms is recorded once, with the bytes that were asked for") {
  const memprof::space_profile cpu = cpu_of([] {
    constexpr std::align_val_t page{4096};
    ::operator delete(keep(::operator new(1)));
    ::operator delete (keep(::operator new(2)), std::size_t{2});
    ::operator delete[](keep(::operator new[](4)));
    ::operator delete[](keep(::operator new[](8)), std::size_t{8});
    ::operator delete(keep(::operator new(16, page)), page);
    ::operator delete (keep(::operator new(32, page)), std::size_t{32}, page);
    ::operator delete[](keep(::operator new[](64, page)), page);
    ::operator delete[](keep(::operator new[](128, page)), std::size_t{128}, page);
    ::operator delete(keep(::operator new(256, std::nothrow)), std::nothrow);
    ::operator delete[](keep(::operator new[](512, std::nothrow)), std::nothrow);
    ::operator delete(keep(::operator new(1024, page, std::nothrow)), page, std::nothrow);
    ::operator delete[](keep(::operator new[](2048, page, std::nothrow)), page, std::nothrow);
    ::operator delete(keep(::operator new(0)));
  });
  CHECK(cpu.allocations == 4095);
  CHECK(cpu.allocation_count == 13);
  CHECK(cpu.deallocation_count == 13);
  CHECK(cpu.cumulative_peak == 2048);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("malloc: realloc replaces a block's bytes, and frees it for a size of 0") {
  std::vector<std::int64_t> seen;
  seen.reserve(8);
  const memprof::space_profile cpu = cpu_of([&] {
    void* block = keep(std::realloc(nullptr, 100));
    seen.push_back(live());
    block = keep(std::realloc(block, 101));  // in place
    seen.push_back(live());
    block = keep(std::realloc(block, 1'000'000));  // moves
    seen.push_back(live());
    block = keep(std::realloc(block, 10));
    seen.push_back(live());
    block = keep(::reallocarray(block, 3, 7));
    seen.push_back(live());
    block = keep(std::realloc(block, 0));
    seen.push_back(live());
    std::free(block);
  });
  CHECK(seen == std::vector<std::int64_t>{100, 101, 1'000'000, 10, 21, 0});
  CHECK(cpu.cumulative_peak == 1'000'000);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("malloc: a realloc that fails leaves its block as it was") {
  std::vector<std::int64_t> seen;
  seen.reserve(8);
  int refusals = 0;
  const memprof::space_profile cpu = cpu_of([&] {
    const auto refuses = [&refusals](void* block) { refusals += block == nullptr && errno == ENOMEM ? 1 : 0; };
    {
      const auto scope = memprof::track_operation<"owner">();
      void* block = keep(std::malloc(100));
      for (const std::size_t bytes : {too_much, ~std::size_t{0}, std::size_t{1} << 48}) {
        errno = 0;
        refuses(keep(std::realloc(block, bytes)));
      }
      errno = 0;
      refuses(keep(::reallocarray(keep(block), too_much, 100)));
      seen.push_back(live());  // not 104, which glibc has room for
      std::free(block);
    }
    seen.push_back(live());
  });
  CHECK(refusals == 4);
  CHECK(seen == std::vector<std::int64_t>{100, 0});
  CHECK(cpu.allocation_count == 1);
  CHECK(cpu.deallocation_count == 1);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

/// Refuses to change a block, and has the events of all threads taken meanwhile, as another thread may do.
struct draining_heap {
  static void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
  static void* reallocate(void*, std::size_t) noexcept {
    (void)memprof::current_profile();
    return nullptr;
  }
  static void release(void* address) noexcept { std::free(address); }
  static std::size_t usable_bytes(void*) noexcept { return 104; }
};

/// What a capture says at its end of a block of 100 bytes that the heap would not enlarge.
memprof::profile with_refused_realloc(std::size_t bytes) {
  using family = memprof::detail::malloc_family<draining_heap>;
  alignas(16) static char block[104];
  return recorded_by([&] {
    memprof::detail::record_heap_event(memprof::extend::event_kind::allocate, block, 100);
    CHECK(family::reallocate(block, bytes) == nullptr);
  });
}

TEST_CASE("malloc: a block whose realloc failed while its free was taken is not exact, as nobody knows its bytes") {
  const memprof::profile profile = with_refused_realloc(std::size_t{1} << 40);
  CHECK(profile.space("cpu").cumulative_current == 104);
  CHECK_FALSE(profile.exact);
}

TEST_CASE("malloc: a realloc to more than can be had leaves its block as it was, whatever other threads do") {
  const memprof::profile profile = with_refused_realloc((std::size_t{1} << 48) + 1);
  CHECK(profile.space("cpu").cumulative_current == 100);
  CHECK(profile.exact);
}

TEST_CASE("malloc: what fails is not recorded and says so as the C library does") {
  int faults = 0;
  void* untouched = &faults;
  const memprof::space_profile cpu = cpu_of([&] {
    const auto expect = [&faults](bool holds) { faults += holds ? 0 : 1; };
    errno = 0;
    expect(keep(std::malloc(too_much)) == nullptr && errno == ENOMEM);
    errno = 0;
    expect(keep(std::calloc(too_much, 100)) == nullptr && errno == ENOMEM);
    errno = 0;
    expect(keep(::pvalloc(~std::size_t{0})) == nullptr && errno == ENOMEM);
    errno = 7;
    expect(::posix_memalign(&untouched, 24, 10) == EINVAL && ::posix_memalign(&untouched, 0, 10) == EINVAL);
    expect(::posix_memalign(&untouched, 64, too_much) == ENOMEM && errno == 7);
    expect(keep(::operator new(too_much, std::nothrow)) == nullptr);
    errno = 7;
    std::free(keep(std::malloc(3)));
    expect(errno == 7);
  });
  CHECK(faults == 0);
  CHECK(untouched == &faults);
  CHECK(cpu.allocations == 3);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("malloc: blocks are aligned as was asked for, and calloc's are zero") {
  std::uint64_t wrong = 0;
  (void)cpu_of([&] {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto check = [&wrong](void* block, std::size_t alignment) {
      wrong += reinterpret_cast<std::uintptr_t>(block) % alignment;
      std::free(block);
    };
    check(keep(::memalign(512, 3)), 512);
    check(keep(std::aligned_alloc(64, 64)), 64);
    check(keep(::valloc(3)), page);
    check(keep(::pvalloc(3)), page);
    std::memset(keep(std::malloc(1000)), 1, 1000);
    auto* const zeros = static_cast<unsigned char*>(keep(std::calloc(10, 100)));
    for (int index = 0; index < 1000; ++index) wrong += zeros[index];
    std::free(zeros);
  });
  CHECK(wrong == 0);
}

TEST_CASE("malloc: what the C library allocates for the program is recorded") {
  const memprof::space_profile cpu = cpu_of([] {
    char* const copy = keep(::strdup("a string of 25 characters"));
    std::free(copy);
  });
  CHECK(cpu.allocations == 26);
  CHECK(cpu.allocation_count == 1);
  CHECK(cpu.cumulative_current == 0);
}

TEST_CASE("malloc: the profiler's own blocks are not the program's, even if the program frees them") {
  const std::string long_name(200, 'n');
  const memprof::space_profile cpu = cpu_of([&] {
    for (int round = 0; round < 50; ++round) {
      memprof::snapshot(long_name);
      const auto scope = memprof::track_operation(long_name, memprof::category::activation);
      memprof::annotate(&scope, {.name = "a description that does not fit into a string's own buffer"});
      const memprof::profile given = memprof::current_profile();
      std::free(keep(std::malloc(10)));
      try {
        (void)memprof::begin_capture();
      } catch (const memprof::error&) {
      }
    }
  });
  CHECK(cpu.allocations == 500);
  CHECK(cpu.allocation_count == 50);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("malloc: a thread's blocks are recorded, with what the C library keeps for the thread") {
  constexpr int threads = 100;
  const memprof::space_profile cpu = cpu_of([] {
    for (int count = 0; count < threads; ++count) {
      std::thread([] { std::free(keep(std::malloc(1'000'000))); }).join();
    }
  });
  CHECK(cpu.allocation_count >= threads);
  CHECK(cpu.cumulative_peak >= 1'000'000);
  CHECK(cpu.cumulative_peak < 1'100'000);     // one at a time
  CHECK(cpu.cumulative_current < 100 * 100);  // glibc keeps the stacks of past threads, with their tables
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("malloc: a child after fork frees what it inherited, and the parent's capture goes on") {
  int status = -1;
  const memprof::space_profile cpu = cpu_of([&] {
    void* const inherited = keep(std::malloc(100));
    const ::pid_t child = ::fork();
    if (child == 0) {
      std::free(inherited);
      std::free(keep(std::malloc(5000)));
      ::_exit(0);
    }
    ::waitpid(child, &status, 0);
    std::free(inherited);
  });
  CHECK(status == 0);
  CHECK(cpu.allocations == 100);
  CHECK(cpu.deallocation_count == 1);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("malloc: the report knows that nothing of the heap was left out") {
  constexpr std::size_t bytes = std::size_t{20} << 20;
  const memprof::profile profile = recorded_by([] {
    void* const block = keep(::memalign(std::size_t{8} << 20, bytes));
    std::memset(block, 1, bytes);
    memprof::snapshot("BUILD");
    std::free(block);
  });
  CHECK(profile.space("cpu").cumulative_peak == static_cast<std::int64_t>(bytes));
  for (const memprof::process_memory& row : memprof::rows_of<memprof::process_memory>(profile.facts)) {
    CHECK(row.unrecorded_heap_bytes <= 0);
    if (row.moment != "most_recorded") continue;  // others may be the first, made before the hooks were looked for
    CHECK(row.recorded_bytes == static_cast<std::int64_t>(bytes));
    CHECK(row.records_malloc == 1);
    CHECK(row.records_operator_new == 1);
  }
  CHECK(memprof::to_text(profile).find(", 0 B heap not recorded, ") != std::string::npos);
  CHECK(memprof::to_text(profile).find("of heap not recorded") == std::string::npos);
}
