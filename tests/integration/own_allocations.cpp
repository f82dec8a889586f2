// Every `operator new` of this program is recorded, so whatever the profiler allocated for itself would show.
#include <catch2/catch_test_macros.hpp>

#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

/// Bytes that the calls of `work` allocated in the space `cpu`, according to a profile made after the capture.
template <class Work>
memprof::space_profile recorded_in(Work work) {
  memprof::profile profile;
  {
    auto capture = memprof::begin_capture({.ring_capacity = 8});
    work(capture);
    capture.end();
    profile = capture.profile();
  }
  const memprof::space_profile* const space = profile.find_space("cpu");
  return space == nullptr ? memprof::space_profile{} : *space;
}

/// A backend that allocates while it is attached and detached, as one that starts a library's tracing would.
struct allocating_backend {
  static constexpr std::string_view name = "allocating";

  void attach(memprof::extend::event_sink& sink, const memprof::capture_options&) {
    buffer = std::make_unique<char[]>(5000);
    sink.allocate(memprof::memory_space{"of a backend"}, buffer.get(), 77);
  }
  void detach(memprof::extend::event_sink&) noexcept { buffer.reset(); }
  void report_facts(memprof::extend::event_sink&) { const std::string note(1000, 'x'); }

  std::unique_ptr<char[]> buffer;
  char own_state[3000] = {};
};

/// An upstream over `operator new`, which the program replaced.
struct new_upstream : std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    note = std::string(1000, 'x');  // what an upstream does besides is its own business
    return ::operator new(bytes);
  }
  void do_deallocate(void* address, std::size_t bytes, std::size_t) override { ::operator delete(address, bytes); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  std::string note;
};

}  // namespace

TEST_CASE("own allocations: control calls, scopes and annotations allocate nothing that the program sees") {
  const std::string long_name(200, 'n');
  const memprof::space_profile cpu = recorded_in([&](memprof::capture_guard& capture) {
    for (int round = 0; round < 100; ++round) {
      memprof::snapshot(long_name);
      capture.snapshot(std::string_view{"a name beyond the small buffer of a string"});
      (void)capture.profile();
      auto scope = memprof::track_operation(long_name, memprof::category::activation);
      auto inner = memprof::track_operation<"a name known at compile time, longer than a small string">();
      memprof::annotate(&scope, {.name = "a description that does not fit into a string's own buffer",
                                 .shape = "[1, 2]",
                                 .requires_grad = memprof::requires_grad::no});
    }
  });
  CHECK(cpu.allocations == 0);
  CHECK(cpu.allocation_count == 0);
  CHECK(cpu.cumulative_peak == 0);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("own allocations: a guard of an earlier capture that goes away in a later one frees nothing that the program sees") {
  std::optional<memprof::capture_guard> earlier{memprof::begin_capture()};
  {
    const auto scope = memprof::track_operation<"an operation whose name a small string does not hold">();
    ::operator delete(::operator new(100));
  }
  earlier->end();
  REQUIRE(earlier->profile().space("cpu").allocations == 100);

  const memprof::space_profile space = recorded_in([&](memprof::capture_guard&) {
    earlier.reset();
    ::operator delete(::operator new(10));
  });
  CHECK(space.allocations == 10);
  CHECK(space.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("own allocations: a profile that the program was given and destroys frees nothing of the program's") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    for (int round = 0; round < 20; ++round) {
      const auto scope = memprof::track_operation<"an operation whose name a small string does not hold">();
      ::operator delete(::operator new(10));
      const memprof::profile given = memprof::current_profile();
      const memprof::profile moved = memprof::current_profile();
    }
  });
  CHECK(cpu.allocations == 200);
  CHECK(cpu.allocation_count == 20);
  CHECK(cpu.deallocation_count == 20);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("own allocations: an error that the program catches frees nothing of the program's") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    for (const std::uint32_t largest_blocks : {10U, 1'000'000U}) {
      try {
        (void)memprof::begin_capture({.largest_blocks = largest_blocks});
        FAIL("a second capture");
      } catch (const memprof::error&) {
      }
    }
    ::operator delete(::operator new(10));
  });
  CHECK(cpu.allocations == 10);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("own allocations: a summary printed under capture is not part of what it tells") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    std::fflush(stdout);
    memprof::print_memory_usage();
    memprof::print_memory_usage();
  });
  CHECK(cpu.allocations == 0);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("own allocations: a capture's backends and what they allocate to start are not the program's") {
  memprof::profile profile;
  {
    auto capture = memprof::begin_capture<allocating_backend>();
    int* volatile const kept = new int[100];  // volatile: an unused pair of new and delete may be left out
    capture.end();
    profile = capture.profile();
    delete[] kept;
  }
  CHECK(profile.space("cpu").allocations == 400);
  CHECK(profile.space("cpu").anomalies.unmatched_frees.count == 0);
  CHECK(profile.space("of a backend").allocations == 77);  // what a backend records is not hidden
}

TEST_CASE("own allocations: other threads' blocks are recorded while one reads profiles") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard& capture) {
    std::thread other;
    {
      // What `std::thread` allocates is the program's; keep it apart from the numbers below.
      const memprof::detail::recording_suppressor hidden;
      other = std::thread{[] {
        const memprof::detail::recording_suppressor still_hidden;
        for (int count = 0; count < 1000; ++count) {
          memprof::allocator<char> heap;
          heap.deallocate(heap.allocate(10), 10);
        }
      }};
    }
    for (int count = 0; count < 50; ++count) (void)capture.profile();
    const memprof::detail::recording_suppressor hidden;
    other.join();
  });
  CHECK(cpu.allocation_count == 1000);
  CHECK(cpu.allocations == 10'000);
}

TEST_CASE("new_delete: every form of new and delete is recorded with the bytes that were asked for") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    constexpr std::align_val_t page{4096};
    ::operator delete(::operator new(1));
    ::operator delete (::operator new(2), std::size_t{2});
    ::operator delete[](::operator new[](4));
    ::operator delete[](::operator new[](8), std::size_t{8});
    ::operator delete(::operator new(16, page), page);
    ::operator delete (::operator new(32, page), std::size_t{32}, page);
    ::operator delete[](::operator new[](64, page), page);
    ::operator delete[](::operator new[](128, page), std::size_t{128}, page);
    ::operator delete(::operator new(256, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](512, std::nothrow), std::nothrow);
    ::operator delete(::operator new(1024, page, std::nothrow), page, std::nothrow);
    ::operator delete[](::operator new[](2048, page, std::nothrow), page, std::nothrow);
    ::operator delete(::operator new(0));
    ::operator delete(nullptr);
  });
  CHECK(cpu.allocations == 4095);
  CHECK(cpu.allocation_count == 13);
  CHECK(cpu.deallocation_count == 13);
  CHECK(cpu.cumulative_current == 0);
  CHECK(cpu.cumulative_peak == 2048);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
}

TEST_CASE("new_delete: a block of a memory_resource is counted once, whatever its upstream takes from operator new") {
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    new_upstream upstream;
    memprof::memory_resource memory{"cpu", &upstream};
    memory.deallocate(memory.allocate(300), 300);
    std::vector<char, memprof::allocator<char>> values(500);
  });
  CHECK(cpu.allocations == 800);
  CHECK(cpu.allocation_count == 2);
  CHECK(cpu.cumulative_peak == 500);
  CHECK(cpu.cumulative_current == 0);
}

TEST_CASE("new_delete: an allocation that fails is not recorded, and a new-handler may still save it") {
  static int handler_calls = 0;
  const memprof::space_profile cpu = recorded_in([](memprof::capture_guard&) {
    // More than any machine has: malloc refuses.
    const std::size_t too_much = std::size_t{1} << 60;
    CHECK(::operator new(too_much, std::nothrow) == nullptr);
    std::set_new_handler([] {
      if (++handler_calls == 2) std::set_new_handler(nullptr);
    });
    CHECK(::operator new(too_much, std::nothrow) == nullptr);
  });
  CHECK(handler_calls == 2);
  CHECK(cpu.cumulative_peak < 1 << 20);  // what the checks above allocated
}

TEST_CASE("new_delete: a signal handler that frees never waits for the thread that it interrupts") {
  // An address that the table of the profiler's own blocks may hold, as long as it holds any: each free of it is looked up.
  static constinit std::atomic<const void*> looked_up = nullptr;
  static std::atomic<std::int64_t> handled = 0;
  std::int64_t freed = 0;
  memprof::profile kept;
  const memprof::space_profile cpu = recorded_in([&](memprof::capture_guard&) {
    ::operator delete(::operator new(1));  // for a space
    kept = memprof::current_profile();
    memprof::profile given_back = memprof::current_profile();
    REQUIRE_FALSE(given_back.spaces.empty());
    looked_up = given_back.spaces.data();
    given_back = {};
    // The event alone: to free in a handler is the program's risk.
    const auto free_it = [] { memprof::detail::record_heap_event(memprof::extend::event_kind::deallocate, looked_up.load(), 0); };
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = [](int) {
      memprof::detail::record_heap_event(memprof::extend::event_kind::deallocate, looked_up.load(), 0);
      ++handled;
    };
    ::sigaction(SIGALRM, &action, &before);
    const itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    for (; handled < 300; ++freed) free_it();
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
  });
  const std::int64_t unmatched = cpu.anomalies.unmatched_frees.count;
  CHECK(unmatched >= freed);
  CHECK(unmatched <= freed + handled);
}
