// Signal handlers that allocate while the thread they interrupt records: nothing hangs, and every event is either recorded or
// counted as re-entrant.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memprof/memprof.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/process_reading.hpp>

#include <pthread.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_signal_handlers {

namespace {

constexpr int wanted_signals = 300;

std::atomic<std::int64_t> handled{0};
const memprof::memory_space* handled_space = nullptr;

const void* pointer(std::int64_t number) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number)); }

/// Two events: an allocation and its free.
void allocate_in_handler(int) {
  const memprof::extend::event_sink sink;
  const std::int64_t number = handled.fetch_add(1);
  const void* const address = pointer(0x4000'0000 + 16 * (number % 8));
  sink.allocate(*handled_space, address, 50);
  sink.deallocate(*handled_space, address, 50);
}

/// Handles a signal while it lives.
class signal_guard {
 public:
  explicit signal_guard(int number) : number_(number) {
    struct sigaction action {};
    action.sa_handler = allocate_in_handler;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, &before_);
  }
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;
  struct sigaction before_ {};
};

/// Records at least once and until `is_enough`, and returns the number of events. The space is made before any signal comes: a
/// handler that interrupts that is taken for the profiler's own work (`event_sink`).
template <class IsEnough>
std::int64_t record_pairs_until(memprof::memory_space space, IsEnough is_enough) {
  const memprof::extend::event_sink sink;
  std::int64_t events = 0;
  do {
    for (int count = 0; count < 100; ++count) {
      sink.allocate(space, pointer(16), 10);
      sink.deallocate(space, pointer(16), 10);
      events += 2;
    }
  } while (!is_enough());
  return events;
}

void check(const memprof::profile& profile, std::int64_t main_events) {
  const memprof::space_profile& interrupted = profile.space("interrupted");
  CHECK(interrupted.allocation_count * 2 == main_events);
  CHECK(interrupted.cumulative_peak == 10);
  CHECK(interrupted.cumulative_current == 0);
  CHECK(interrupted.anomalies == memprof::space_anomalies{});

  // A handler's event is recorded or counted; a free whose allocation was re-entrant is unmatched.
  const memprof::space_profile* const seen = profile.find_space("handler");
  const std::int64_t recorded = seen == nullptr
                                    ? 0
                                    : seen->allocation_count + seen->deallocation_count + seen->anomalies.unmatched_frees.count -
                                          seen->anomalies.replaced_allocations.count;
  CHECK(recorded + profile.anomalies.reentrant_events == 2 * handled.load());
  CHECK(profile.exact == (profile.anomalies.reentrant_events == 0));
}

}  // namespace

TEST_CASE("signals: a timer's handler that allocates is recorded or counted, never a deadlock") {
  const memprof::memory_space space{"handler"};
  const memprof::memory_space interrupted{"interrupted"};
  handled_space = &space;
  handled = 0;
  const signal_guard handler{SIGALRM};
  auto capture = memprof::begin_capture({.ring_capacity = GENERATE(2U, 64U)});
  // A thread's first event is not for a handler (`event_sink`).
  std::int64_t events = record_pairs_until(interrupted, [] { return true; });

  const itimerval often{{0, 200}, {0, 200}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  events += record_pairs_until(interrupted, [] { return handled >= wanted_signals; });
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  capture.end();
  check(capture.profile(), events);
}

TEST_CASE("signals: a storm from another thread that records as well is recorded or counted") {
  const memprof::memory_space space{"handler"};
  const memprof::memory_space interrupted{"interrupted"};
  handled_space = &space;
  handled = 0;
  const signal_guard handler{SIGUSR1};
  auto capture = memprof::begin_capture({.ring_capacity = GENERATE(8U, 64U)});
  // A thread's first event is not for a handler (`event_sink`).
  std::int64_t events = record_pairs_until(interrupted, [] { return true; });

  const pthread_t recording = ::pthread_self();
  std::atomic<bool> is_over{false};
  std::thread storm{[&] {
    const memprof::memory_space own_space{"storm"};
    const memprof::extend::event_sink sink;
    while (!is_over) {
      // A signal that is still on its way when the capture ends would be handled and not recorded.
      const std::int64_t before = handled;
      ::pthread_kill(recording, SIGUSR1);
      do {
        sink.allocate(own_space, pointer(32), 7);
        sink.deallocate(own_space, pointer(32), 7);
        std::this_thread::yield();
      } while (handled == before);
    }
  }};
  events += record_pairs_until(interrupted, [] { return handled >= wanted_signals / 3; });
  is_over = true;
  storm.join();
  capture.end();
  CHECK(capture.profile().space("storm").cumulative_peak == 7);
  check(capture.profile(), events);
}

TEST_CASE("signals: a handler that interrupts control calls is recorded or counted") {
  const memprof::memory_space space{"handler"};
  const memprof::memory_space interrupted{"interrupted"};
  handled_space = &space;
  handled = 0;
  const signal_guard handler{SIGUSR1};
  auto capture = memprof::begin_capture();
  // A thread's first event is not for a handler (`event_sink`).
  const std::int64_t events = record_pairs_until(interrupted, [] { return true; });
  const memprof::memory_space annotated{"annotated"};
  memprof::extend::event_sink{}.allocate(annotated, pointer(48), 1);

  const pthread_t interrupted_thread = ::pthread_self();
  std::atomic<bool> is_over{false};
  std::thread storm{[&] {
    while (!is_over) {
      const std::int64_t before = handled;
      ::pthread_kill(interrupted_thread, SIGUSR1);
      while (handled == before) std::this_thread::yield();
    }
  }};
  for (int round = 0; handled < 2 * wanted_signals; ++round) {
    (void)memprof::current_profile();
    memprof::snapshot("SEGMENT");
    memprof::annotate(pointer(48), {.name = std::to_string(round % 64)});
    const auto scope = memprof::track_operation(std::to_string(round % 64));
    (void)memprof::memory_space{std::to_string(round % 64)};
    (void)capture.profile();
  }
  is_over = true;
  storm.join();
  capture.end();
  check(capture.profile(), events);
}

TEST_CASE("signals: a handler may open an operation while an event is being written") {
  const memprof::memory_space space{"handler"};
  const memprof::memory_space interrupted{"interrupted"};
  handled_space = &space;
  handled = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    auto scope = memprof::track_operation<"in a handler">();
    allocate_in_handler(0);
  };
  struct sigaction before {};
  ::sigaction(SIGALRM, &action, &before);
  auto capture = memprof::begin_capture({.ring_capacity = 4});
  // A thread's first event is not for a handler (`event_sink`).
  std::int64_t events = record_pairs_until(interrupted, [] { return true; });
  {
    auto scope = memprof::track_operation<"interrupted operation">();
    const itimerval often{{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    events += record_pairs_until(interrupted, [] { return handled >= wanted_signals; });
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
  }
  ::sigaction(SIGALRM, &before, nullptr);
  capture.end();
  const memprof::profile& profile = capture.profile();
  CHECK(profile.space("interrupted").allocation_count * 2 == events);
  REQUIRE(profile.find_operation("interrupted operation") != nullptr);
  CHECK(profile.find_operation("interrupted operation")->invocations == 1);
}

namespace {

void snapshot_in_handler(int) {
  memprof::detail::process_schedule.restart(memprof::detail::monotonic_ns());  // a reading of the process is due
  memprof::snapshot("IN_HANDLER");
}
void checkpoint_in_handler(int) { memprof::memory_checkpoint("in handler"); }

/// The bytes that a handler took at most of an alternate stack, of several calls. Some of them empty a ring.
std::size_t stack_bytes_of(void (*handler)(int)) {
  constexpr unsigned char untouched = 0x5a;
  std::vector<unsigned char> stack(std::size_t{1} << 18, untouched);
  stack_t before{};
  const stack_t alternate{stack.data(), 0, stack.size()};
  struct sigaction action {};
  struct sigaction action_before {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  ::sigaltstack(&alternate, &before);
  ::sigaction(SIGUSR2, &action, &action_before);
  for (int count = 0; count < 64; ++count) ::raise(SIGUSR2);
  ::sigaction(SIGUSR2, &action_before, nullptr);
  ::sigaltstack(&before, nullptr);
  const auto first = std::find_if(stack.begin(), stack.end(), [](unsigned char byte) { return byte != untouched; });
  return static_cast<std::size_t>(stack.end() - first);
}

}  // namespace

// Many programs have SIGSTKSZ bytes there: 8,192, a third of which the system may take for the registers.
TEST_CASE("signals: on an alternate stack, a snapshot does not read the process, which takes more than half of a small one") {
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  const std::size_t checkpoint = stack_bytes_of(checkpoint_in_handler);
  const std::size_t snapshot = stack_bytes_of(snapshot_in_handler);
  INFO(snapshot << " bytes, a checkpoint takes " << checkpoint);
  CHECK(snapshot < checkpoint + 2048);
  memprof::detail::process_schedule.restart(memprof::detail::monotonic_ns());
  memprof::snapshot("BEHIND");
  capture.end();
  CHECK(capture.profile().exact);
}

}  // namespace memprof_tests::integration_signal_handlers
