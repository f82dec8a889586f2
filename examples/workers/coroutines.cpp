// Coroutines that go on on another thread: the awaitable ends the adoption before it suspends, and renews it where it goes on.
#include "work.hpp"

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <thread>

namespace {

/// A coroutine that works for one operation on whichever thread it is.
struct job {
  struct promise_type {
    const memprof::operation_handle operation = memprof::current_operation();  // of who called it
    std::optional<memprof::adopted_operation> adopted;

    job get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }  // still on the caller's thread, within its operation
    std::suspend_always final_suspend() noexcept {
      adopted.reset();
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

struct other_thread {
  std::coroutine_handle<job::promise_type> waiting;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<job::promise_type> suspended) {
    waiting = suspended;
    waiting.promise().adopted.reset();  // on the thread on which it began
  }
  void await_resume() { waiting.promise().adopted.emplace(waiting.promise().operation); }
};

job work_on_three_threads() {
  work_on(1);
  co_await other_thread{};
  work_on(10);
  co_await other_thread{};
  work_on(100);
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    const job begun = work_on_three_threads();
    for (int part = 0; part < 2; ++part) std::thread{[begun] { begun.handle.resume(); }}.join();
    begun.handle.destroy();
  }
  capture.end();
  print_bytes(capture.profile(), "forward");
}
