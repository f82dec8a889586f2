// Records of events that a signal handler interrupts and that never finish, because the handler leaves by `siglongjmp`: the
// profile is not exact, the thread's next events are recorded, and no call hangs.
#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/process_reading.hpp>

#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <thread>

namespace memprof_tests::integration_unfinished_records {

namespace {

thread_local sigjmp_buf before_record;
thread_local volatile bool may_leave = false;

const void* pointer(std::int64_t number) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number)); }

/// Leaves the record that it interrupts, if it interrupts one.
void leave_record(int) {
  const bool is_inside = memprof::detail::is_inside_record(memprof::abi_1::this_thread);
  if (may_leave && is_inside) ::siglongjmp(before_record, 1);
}

/// Handles a timer's signals while it lives.
class frequent_signals {
 public:
  frequent_signals() {
    struct sigaction action {};
    action.sa_handler = leave_record;
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  frequent_signals(const frequent_signals&) = delete;
  frequent_signals& operator=(const frequent_signals&) = delete;
  ~frequent_signals() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    std::signal(SIGALRM, SIG_IGN);  // discards one that is pending
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

/// Records until a handler has left one of the records. SIGALRM is blocked afterwards, and in all other threads.
void record_until_left(memprof::memory_space space) {
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  if (sigsetjmp(before_record, 1) == 0) {
    may_leave = true;
    const memprof::extend::event_sink sink;
    for (;;) {
      sink.allocate(space, pointer(16), 10);
      sink.deallocate(space, pointer(16), 10);
    }
  }
  may_leave = false;
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
}

/// Blocks SIGALRM while it lives, in the thread and in those that it makes.
class alarm_blocked {
 public:
  alarm_blocked() {
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, &before_);
  }
  alarm_blocked(const alarm_blocked&) = delete;
  alarm_blocked& operator=(const alarm_blocked&) = delete;
  ~alarm_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void record_block(std::int64_t bytes) {
  const memprof::memory_space after{"after"};
  memprof::extend::event_sink{}.allocate(after, pointer(64), static_cast<std::size_t>(bytes));
}

}  // namespace

TEST_CASE("unfinished record: the profile is not exact, and what comes after the next control call is recorded") {
  const alarm_blocked blocked;
  const frequent_signals signals;
  for (int round = 0; round < 5; ++round) {
    INFO(round);
    auto capture = memprof::begin_capture();
    const memprof::memory_space space{"interrupted"};
    memprof::extend::event_sink{}.allocate(space, pointer(16), 10);  // the handler may leave the very first record
    memprof::extend::event_sink{}.deallocate(space, pointer(16), 10);
    record_until_left(space);
    const memprof::profile so_far = memprof::current_profile();
    CHECK_FALSE(so_far.exact);
    CHECK(so_far.anomalies.reentrant_events == 1);
    CHECK(so_far.space("interrupted").cumulative_peak <= 10);
    record_block(1000);
    CHECK(capture.profile().space("after").cumulative_current == 1000);
    capture.end();
    CHECK_FALSE(capture.profile().exact);
    CHECK(capture.profile().space("after").cumulative_current == 1000);
  }
  auto next = memprof::begin_capture();
  record_block(7);
  next.end();
  CHECK(next.profile().exact);
  CHECK(next.profile().space("after").cumulative_current == 7);
}

TEST_CASE("unfinished record: the capture ends, and the next one begins, right after it") {
  const alarm_blocked blocked;
  const frequent_signals signals;
  {
    auto capture = memprof::begin_capture();
    record_until_left(memprof::memory_space{"interrupted"});
    capture.end();
    CHECK_FALSE(capture.profile().exact);
    CHECK(capture.profile().complete);
  }
  {
    auto capture = memprof::begin_capture();
    record_until_left(memprof::memory_space{"interrupted"});
    memprof::snapshot("LEFT");  // the first control call
    record_block(9);
    capture.end();
    CHECK(capture.profile().space("after").cumulative_current == 9);
    CHECK_FALSE(capture.profile().exact);
  }
}

TEST_CASE("unfinished record: another thread's makes the profile not exact, whether the thread lives on or not") {
  const alarm_blocked blocked;
  const frequent_signals signals;
  for (const bool lives_on : {true, false}) {
    INFO(lives_on);
    std::atomic<bool> has_left{false};
    std::atomic<bool> may_end{!lives_on};
    auto capture = memprof::begin_capture();
    const memprof::memory_space space{"interrupted"};
    std::thread other{[&] {
      record_until_left(space);
      has_left = true;
      while (!may_end) std::this_thread::yield();
    }};
    while (!has_left) std::this_thread::yield();
    if (!lives_on) other.join();
    capture.end();
    CHECK_FALSE(capture.profile().exact);
    may_end = true;
    if (lives_on) other.join();
  }
  auto next = memprof::begin_capture();
  record_block(7);
  next.end();
  CHECK(next.profile().exact);
}

TEST_CASE("unfinished record: records that are left again and again take a limited number of rings") {
  const alarm_blocked blocked;
  const frequent_signals signals;
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  constexpr int rounds = 100;
  const memprof::memory_space space{"interrupted"};
  for (int round = 0; round < rounds; ++round) {
    if (memprof::detail::is_inside_record(memprof::abi_1::this_thread)) break;  // no ring is given up any more
    record_until_left(space);
    memprof::snapshot("LEFT");
  }
  CHECK(memprof::abi_1::process_registry.ring_count <= 100);
  capture.end();
  CHECK_FALSE(capture.profile().exact);
  CHECK(capture.profile().complete);
}

TEST_CASE("unfinished record: a thread that is cancelled while it drains leaves no lock") {
  auto capture = memprof::begin_capture({.ring_capacity = 4});
  const memprof::memory_space space{"interrupted"};
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> is_running{false};
    std::thread other{[&] {
      const memprof::extend::event_sink sink;
      is_running = true;
      for (;;) {
        for (int count = 0; count < 64; ++count) {
          sink.allocate(space, pointer(16), 10);
          sink.deallocate(space, pointer(16), 10);
        }
        ::pthread_testcancel();
      }
    }};
    while (!is_running) std::this_thread::yield();
    ::pthread_cancel(other.native_handle());
    other.join();
  }
  record_block(7);
  capture.end();
  CHECK(capture.profile().exact);
  CHECK(capture.profile().space("after").cumulative_current == 7);
}

TEST_CASE("unfinished record: a thread is not cancelled in a snapshot, which reads the process's memory") {
  auto capture = memprof::begin_capture();
  bool is_past = false;
  std::thread other{[&] {
    ::pthread_cancel(::pthread_self());
    memprof::detail::process_schedule.restart(memprof::detail::monotonic_ns());  // a reading is due
    memprof::snapshot("CANCELLED");
    is_past = true;
    for (;;) ::pthread_testcancel();
  }};
  other.join();
  CHECK(is_past);
  capture.end();
  CHECK(capture.profile().segments.size() == 2);
}

/// Whether a signal's handler runs in a thread while that waits for the registry's lock in `call`.
template <class Call>
bool handles_while_waiting(Call call) {
  static std::atomic<bool> is_handled;
  is_handled = false;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { is_handled = true; };
  ::sigaction(SIGUSR2, &action, &before);
  std::atomic<bool> is_calling{false};
  bool was_handled = false;
  memprof::registry& shared = memprof::abi_1::process_registry;
  shared.lock.lock();
  std::thread waiting{[&] {
    is_calling = true;
    call();
  }};
  while (!is_calling) std::this_thread::yield();
  ::usleep(50'000);  // so that it waits; if it does not yet, the test proves less
  ::pthread_kill(waiting.native_handle(), SIGUSR2);
  for (int tenths = 0; tenths < 100 && !was_handled; ++tenths) {
    ::usleep(100'000);
    was_handled = is_handled;
  }
  shared.lock.unlock();
  waiting.join();
  ::sigaction(SIGUSR2, &before, nullptr);
  return was_handled;
}

TEST_CASE("unfinished record: handlers run while a control call waits for another thread") {
  CHECK(handles_while_waiting([] { memprof::begin_capture().release(); }));
  CHECK(handles_while_waiting([] { memprof::extend::event_sink{}.add_facts({"made", {"count"}, {{std::int64_t{1}}}}); }));
  CHECK(handles_while_waiting([] { (void)memprof::current_profile(); }));
  CHECK(handles_while_waiting([] { memprof::snapshot("FIRST"); }));
  CHECK(handles_while_waiting([] { memprof::end_capture(); }));
}

}  // namespace memprof_tests::integration_unfinished_records
