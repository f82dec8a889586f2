// Calls of a capture's backends that a signal handler leaves by `siglongjmp`, and calls from within them: no call hangs, and the
// profile is not exact.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <memprof/memprof.hpp>

#include <memprof/record/backend_guard.hpp>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

namespace memprof_tests::integration_left_backends {

namespace {

enum class at : std::uint8_t { nothing, facts, detach };

thread_local sigjmp_buf before_call;
std::atomic<at> leaves_at{at::nothing};  ///< once
std::atomic<bool> asks_for_profile{false};

void leave(int) { ::siglongjmp(before_call, 1); }

/// A backend that a signal interrupts.
struct interrupted_backend {
  static constexpr std::string_view name = "interrupted";
  void attach(memprof::extend::event_sink&, const memprof::capture_options&) {}
  void detach(memprof::extend::event_sink&) noexcept { be_interrupted(at::detach); }
  void report_facts(memprof::extend::event_sink&) {
    be_interrupted(at::facts);
    if (asks_for_profile.exchange(false)) CHECK_FALSE(memprof::current_profile().exact);
  }

 private:
  static void be_interrupted(at place) {
    if (leaves_at.load() != place) return;
    leaves_at = at::nothing;
    ::raise(SIGUSR1);
  }
};
static_assert(memprof::extend::backend<interrupted_backend>);

class handler_guard {
 public:
  handler_guard() {
    struct sigaction action {};
    action.sa_handler = leave;
    ::sigaction(SIGUSR1, &action, &before_);
  }
  handler_guard(const handler_guard&) = delete;
  handler_guard& operator=(const handler_guard&) = delete;
  ~handler_guard() { ::sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// Shortens the wait for other threads.
class wait_guard {
 public:
  wait_guard() { memprof::detail::longest_wait_for_backends_ns = 50'000'000; }
  wait_guard(const wait_guard&) = delete;
  wait_guard& operator=(const wait_guard&) = delete;
  ~wait_guard() { memprof::detail::longest_wait_for_backends_ns = before_; }

 private:
  std::int64_t before_ = memprof::detail::longest_wait_for_backends_ns;
};

template <class Call>
void leave_call(at place, Call&& call) {
  leaves_at = place;
  if (sigsetjmp(before_call, 1) == 0) call();
}

void record_block(std::int64_t bytes) {
  memprof::extend::event_sink{}.allocate(memprof::memory_space{"after"}, reinterpret_cast<const void*>(std::uintptr_t{64}),
                                         static_cast<std::size_t>(bytes));
}

/// What follows a call that was left is as if it had ended.
void require_next_capture() {
  auto next = memprof::begin_capture<interrupted_backend>();
  record_block(7);
  next.end();
  CHECK(next.profile().exact);
  CHECK(next.profile().space("after").cumulative_current == 7);
}

/// At a greater depth of the stack.
[[gnu::noinline]] void begin_deeper() {
  volatile char room[4096];
  room[0] = 0;
  CHECK_THROWS_WITH(memprof::begin_capture(), Catch::Matchers::ContainsSubstring("left it by siglongjmp"));
  CHECK(room[0] == 0);
}

}  // namespace

TEST_CASE("left backends: a capture whose end was left ends at the next call, and others follow") {
  const handler_guard handler;
  auto capture = memprof::begin_capture<interrupted_backend>();
  record_block(5);
  leave_call(at::detach, [&] { capture.end(); });
  capture.end();
  CHECK(capture.profile().complete);
  CHECK_FALSE(capture.profile().exact);
  CHECK(capture.profile().space("after").cumulative_current == 5);
  require_next_capture();
}

TEST_CASE("left backends: a profile whose making was left can be asked for again") {
  const handler_guard handler;
  auto capture = memprof::begin_capture<interrupted_backend>();
  leave_call(at::facts, [&] { (void)capture.profile(); });
  record_block(5);
  CHECK(capture.profile().space("after").cumulative_current == 5);
  CHECK_FALSE(capture.profile().exact);
  capture.end();
  require_next_capture();
}

TEST_CASE("left backends: where a call may be what interrupted another one, it does not wait for that") {
  const handler_guard handler;
  auto capture = memprof::begin_capture<interrupted_backend>();
  leave_call(at::detach, [&] { capture.end(); });
  begin_deeper();
  capture.end();  // from where the one before it was called
  require_next_capture();
}

TEST_CASE("left backends: a backend may ask for the profile") {
  auto capture = memprof::begin_capture<interrupted_backend>();
  asks_for_profile = true;
  CHECK_FALSE(capture.profile().exact);
  capture.end();
  require_next_capture();
}

TEST_CASE("left backends: another thread does not wait for ever for one that left, and takes over when that has ended") {
  const handler_guard handler;
  const wait_guard shorter;
  std::atomic<bool> has_left{false};
  std::atomic<bool> may_end{false};
  auto capture = memprof::begin_capture<interrupted_backend>();
  std::thread other{[&] {
    leave_call(at::detach, [&] { capture.end(); });
    has_left = true;
    while (!may_end) std::this_thread::yield();
  }};
  while (!has_left) std::this_thread::yield();
  capture.end();
  CHECK(capture.profile().complete);
  CHECK_FALSE(capture.profile().exact);
  CHECK_THROWS_WITH(memprof::begin_capture(), Catch::Matchers::ContainsSubstring("another call of memprof has not ended"));
  may_end = true;
  other.join();
  require_next_capture();
}

}  // namespace memprof_tests::integration_left_backends
