// trainer ENDING: a training of three steps with a session in it, and the ways in which such a program ends. What the session is
// to do comes from the environment.
#include <memprof/memprof.hpp>
#include <memprof/record/session.hpp>
#if defined(TRAINER_READS_TOML)
#include <memprof/record/session_toml.hpp>
#endif

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__linux__)
#include <sys/syscall.h>

namespace {
std::atomic<std::int64_t> wall_clock_ahead{0};  ///< seconds, as those of the other
std::atomic<std::int64_t> monotonic_clock_ahead{0};
std::atomic<pid_t> read_by{0};  ///< the thread that raises `raised` when it next reads the monotonic clock; 0: none
std::atomic<int> raised{0};

/// Called where a clock is read, so that a signal can come exactly there.
void raise_if_asked(clockid_t clock) {
  pid_t self = clock == CLOCK_MONOTONIC && read_by != 0 ? static_cast<pid_t>(::syscall(SYS_gettid)) : 0;
  if (self != 0 && read_by.compare_exchange_strong(self, 0)) ::raise(raised);
}
}  // namespace

/// In place of libc's: a clock that the endings set.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  raise_if_asked(clock);
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME) now->tv_sec += wall_clock_ahead;
  if (clock == CLOCK_MONOTONIC) now->tv_sec += monotonic_clock_ahead;
  return result;
}

namespace {
void set_clocks(std::int64_t wall, std::int64_t monotonic) {
  wall_clock_ahead = wall;
  monotonic_clock_ahead = monotonic;
}
/// Raises the signal where this thread next reads the monotonic clock.
void raise_at_clock(int number) {
  raised = number;
  read_by = static_cast<pid_t>(::syscall(SYS_gettid));
}
}  // namespace
#else
namespace {
void set_clocks(std::int64_t, std::int64_t) {}
void raise_at_clock(int number) { ::raise(number); }
}  // namespace
#endif

namespace {

memprof::memory_resource& memory() {
  static auto* const never_destroyed = new memprof::memory_resource{"cpu"};
  return *never_destroyed;
}

void* volatile weights = nullptr;  ///< reachable to the end, for leak checkers
void* volatile more = nullptr;     ///< likewise

/// 10,000 bytes of weights that stay, and in each of three steps 4,096 for "forward" that do not.
void train() {
  weights = memory().allocate(10'000);
  memprof::annotate(weights, {.name = "weights", .category = memprof::category::parameter});
  memprof::memory_checkpoint("model");
  for (int step = 0; step < 3; ++step) {
    auto scope = memprof::track_operation<"forward">();
    void* const activation = memory().allocate(4096);
    memory().deallocate(activation, 4096);
    memprof::snapshot("STEP");
  }
}

std::atomic<int> handled{0};
void note(int) { ++handled; }

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

void wait_until_handled() {
  while (handled == 0) ::usleep(1000);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(number, &action, nullptr);
}

[[noreturn]] void say_and_leave() {
  std::fputs("the program's own handler\n", stdout);
  std::fflush(stdout);
  std::_Exit(9);
}

std::atomic<std::int64_t> churned_blocks{0};

/// Allocates and frees without a pause; full rings are drained all the time, under the registry's lock.
void allocate_for_ever() {
  memprof::memory_resource churned{"churned"};
  for (;; ++churned_blocks) churned.deallocate(churned.allocate(64), 64);
}

/// The status of a child that does `work`.
int child(const std::function<void()>& work) {
  const pid_t made = ::fork();
  if (made == 0) {
    work();
    std::exit(4);
  }
  int status = 0;
  ::waitpid(made, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Does not come to an end when a profile asks what it knows.
struct stuck_backend {
  static constexpr std::string_view name = "stuck";
  void attach(memprof::extend::event_sink&, const memprof::capture_options&) {}
  void detach(memprof::extend::event_sink&) noexcept {}
  void report_facts(memprof::extend::event_sink&) {
    if (is_stuck) wait_for_the_end();
  }
  static inline std::atomic<bool> is_stuck{false};
};

/// Takes its time when the capture ends.
struct slow_backend {
  static constexpr std::string_view name = "slow";
  void attach(memprof::extend::event_sink&, const memprof::capture_options&) {}
  void detach(memprof::extend::event_sink&) noexcept {
    is_ending = true;
    ::usleep(200'000);
  }
  void report_facts(memprof::extend::event_sink&) {}
  static inline std::atomic<bool> is_ending{false};
};

/// Ends the process in three threads: in the first one, and in the others while that ends the session.
int end_in_three_threads(void (*first)(int), void (*others)(int)) {
  std::thread{[first] { first(3); }}.detach();
  while (!slow_backend::is_ending) ::usleep(1000);
  std::thread{[others] { others(3); }}.detach();
  others(3);
  return 0;
}

/// Sleeps until there are so many checkpoints more, however slow the machine; who waits in vain is ended by SIGALRM.
void wait_for_checkpoints(std::int64_t count) {
  const std::int64_t wanted = memprof::current_profile().checkpoint_count + count;
  while (memprof::current_profile().checkpoint_count < wanted) ::usleep(10'000);
}

/// Sleeps until the session has left a profile, and returns its path. Profiles get their names when they are complete.
std::filesystem::path wait_for_profile() {
  const std::filesystem::path folder = std::getenv("MEMPROF_OUTPUT_DIR");
  for (;; ::usleep(1000)) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
      if (entry.path().extension() == ".json") return entry.path();
    }
  }
}

/// Sleeps until the session's thread has done all that it was told before, and more.
void wait_for_session_thread() {
  ::raise(SIGUSR1);
  std::filesystem::remove(wait_for_profile());
}

/// Sleeps that long at least, whatever interrupts it.
void sleep_through(std::chrono::milliseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) ::usleep(1000);
}

int wait_through_a_jump(std::int64_t wall, std::int64_t monotonic) {
  wait_for_checkpoints(3);
  set_clocks(wall, monotonic);
  wait_for_checkpoints(5);
  return 0;
}

struct ending {
  std::function<void()> before_session = [] {};
  std::function<int()> after_training = [] { return 0; };
};

int raise_and_wait(int number) {
  ::raise(number);
  wait_for_the_end();
}

const std::map<std::string, ending>& endings() {
  static const std::map<std::string, ending> known{
      {"return", {.after_training = [] { return 7; }}},
      {"exit", {.after_training = []() -> int { std::exit(3); }}},
      {"exit in a thread",
       {.after_training =
            [] {
              std::thread{[] { std::exit(3); }}.join();
              return 0;
            }}},
      {"quick_exit", {.after_training = []() -> int { std::quick_exit(3); }}},
      {"exit in three threads", {.after_training = [] { return end_in_three_threads(std::exit, std::exit); }}},
      {"quick_exit in three threads", {.after_training = [] { return end_in_three_threads(std::quick_exit, std::quick_exit); }}},
      {"exit beside quick_exit", {.after_training = [] { return end_in_three_threads(std::exit, std::quick_exit); }}},
      {"quick_exit beside exit", {.after_training = [] { return end_in_three_threads(std::quick_exit, std::exit); }}},
      {"return beside exit",
       {.after_training =
            [] {
              std::thread{[] { std::exit(3); }}.detach();
              while (!slow_backend::is_ending) ::usleep(1000);
              return 3;
            }}},
      {"_exit", {.after_training = []() -> int { std::_Exit(3); }}},
      {"exception", {.after_training = []() -> int { throw std::runtime_error{"no more data"}; }}},
      {"exception in a thread",
       {.after_training =
            [] {
              std::thread{[] { throw std::runtime_error{"no more data"}; }}.join();
              return 0;
            }}},
      {"abort", {.after_training = []() -> int { std::abort(); }}},
      {"SIGINT", {.after_training = [] { return raise_and_wait(SIGINT); }}},
      {"SIGTERM", {.after_training = [] { return raise_and_wait(SIGTERM); }}},
      {"SIGHUP", {.after_training = [] { return raise_and_wait(SIGHUP); }}},
      {"SIGKILL", {.after_training = [] { return raise_and_wait(SIGKILL); }}},
      {"SIGSEGV",
       {.after_training =
            [] {
              std::signal(SIGSEGV, SIG_DFL);  // not a sanitizer's
              return raise_and_wait(SIGSEGV);
            }}},
      {"SIGTERM while the rings are drained",
       {.after_training =
            [] {
              for (int count = 0; count < 3; ++count) std::thread{allocate_for_ever}.detach();
              std::thread{[] {
                while (churned_blocks < 10'000) ::usleep(1000);
                ::kill(::getpid(), SIGTERM);
              }}.detach();
              allocate_for_ever();
              return 0;
            }}},
      {"SIGTERM twice",
       {.after_training =
            [] {
              ::raise(SIGTERM);
              return raise_and_wait(SIGTERM);
            }}},
      {"SIGINT while SIGTERM is noted",
       {.after_training =
            [] {
              raise_at_clock(SIGINT);
              return raise_and_wait(SIGTERM);
            }}},
      {"SIGINT while SIGTERM is noted, after others",
       {.before_session = [] { handle(SIGHUP, note); },
        .after_training =
            [] {
              ::raise(SIGHUP);
              wait_until_handled();
              ::usleep(600'000);  // the time of the first one is long ago
              raise_at_clock(SIGINT);
              return raise_and_wait(SIGTERM);
            }}},
      {"SIGTERM again after a while",
       {.after_training =
            [] {
              stuck_backend::is_stuck = true;
              ::raise(SIGTERM);
              sleep_through(std::chrono::milliseconds{700});  // longer than two count as one
              return raise_and_wait(SIGTERM);
            }}},
      {"SIGUSR1",
       {.after_training =
            [] {
              ::raise(SIGUSR1);
              wait_for_profile();
              more = memory().allocate(500);
              return 0;
            }}},
      {"SIGUSR1 that the program handles",
       {.before_session = [] { handle(SIGUSR1, note); },
        .after_training =
            [] {
              ::raise(SIGUSR1);
              wait_until_handled();
              wait_for_profile();
              return 10 + handled;
            }}},
      {"handled before",
       {.before_session = [] { handle(SIGTERM, note); },
        .after_training =
            [] {
              ::raise(SIGTERM);
              wait_until_handled();
              handled = 0;
              ::raise(SIGTERM);  // and once more
              wait_until_handled();
              return 10 + handled;
            }}},
      {"a handler that leaves at once",
       {.before_session = [] { handle(SIGTERM, [](int) { std::_Exit(12); }); },
        .after_training = [] { return raise_and_wait(SIGTERM); }}},
      {"handled later",
       {.after_training =
            [] {
              handle(SIGTERM, note);
              ::raise(SIGTERM);
              return 10 + handled;
            }}},
      {"handled later by one that calls the one before",
       {.after_training =
            [] {
              static struct sigaction before {};
              struct sigaction action {};
              action.sa_flags = SA_SIGINFO;
              action.sa_sigaction = [](int number, siginfo_t* info, void* context) {
                ++handled;
                if ((before.sa_flags & SA_SIGINFO) != 0) before.sa_sigaction(number, info, context);
              };
              ::sigaction(SIGTERM, &action, &before);
              ::raise(SIGTERM);
              wait_for_profile();
              return 10 + handled;
            }}},
      {"ignored",
       {.before_session = [] { std::signal(SIGTERM, SIG_IGN); },
        .after_training =
            [] {
              ::raise(SIGTERM);
              wait_for_session_thread();
              return 6;
            }}},
      {"terminate handler before",
       {.before_session = [] { std::set_terminate(say_and_leave); }, .after_training = []() -> int { throw 1; }}},
      {"terminate handler later", {.after_training = []() -> int {
         std::set_terminate([] { std::abort(); });
         throw 1;
       }}},
      {"abort that the program handles",
       {.before_session = [] { handle(SIGABRT, [](int) { std::_Exit(12); }); }, .after_training = []() -> int { std::abort(); }}},
      {"children",
       {.after_training =
            [] {
              int faults = 0;
              faults += child([] { std::exit(5); }) == 5 ? 0 : 1;
              faults += child([] { ::raise(SIGTERM); }) == 128 + SIGTERM ? 0 : 2;
              faults += child([] { ::raise(SIGUSR1); }) == 128 + SIGUSR1 ? 0 : 4;
              faults += child([] { std::abort(); }) == 128 + SIGABRT ? 0 : 8;
              return faults;
            }}},
      {"children in a row",
       {.after_training =
            [] {
              int faults = 0;
              for (int count = 0; count < 50; ++count) faults += child([] { std::_Exit(5); }) == 5 ? 0 : 1;
              return faults;
            }}},
      {"daemon", {.after_training = [] { return ::daemon(1, 1) == 0 ? 5 : 6; }}},
      {"a child while the session is stuck", {.after_training = []() -> int {
         stuck_backend::is_stuck = true;
         std::_Exit(child([] { std::_Exit(5); }));
       }}},
      {"a session of a child",
       {.after_training =
            [] {
              return child([] {
                memprof::session own{{.enabled = true}};
                more = memory().allocate(77);
                std::exit(own.is_active() ? 5 : 6);
              });
            }}},
      {"ended twice",
       {.after_training =
            [] {
              memprof::end_capture();
              return 0;
            }}},
      {"directory changed", {.after_training = [] { return ::chdir("/"); }}},
      {"some intervals",
       {.after_training =
            [] {
              wait_for_checkpoints(5);
              return 0;
            }}},
      {"wall clock set forward", {.after_training = [] { return wait_through_a_jump(3600, 0); }}},
      {"wall clock set back", {.after_training = [] { return wait_through_a_jump(-3600, 0); }}},
      {"both clocks jump forward", {.after_training = [] { return wait_through_a_jump(3600, 3600); }}},
      {"both clocks jump back", {.after_training = [] { return wait_through_a_jump(-3600, -3600); }}},
      {"an interval of 0", {}},
      {"a capture of the program's own", {.before_session = [] { memprof::begin_capture().release(); }}},
  };
  return known;
}

}  // namespace

int main(int count, char** arguments) {
  const auto found = endings().find(count > 1 ? arguments[1] : "return");
  if (found == endings().end()) return 99;
  found->second.before_session();
  const auto ends_with_others = [&] {
    return found->first.find("three threads") != std::string::npos || found->first.find(" beside ") != std::string::npos;
  };
  memprof::session_options options;
  if (found->first == "an interval of 0") options.interval = 0;
  const bool gets_stuck = found->first == "SIGTERM again after a while" || found->first == "a child while the session is stuck";
  memprof::session session = gets_stuck           ? memprof::session::with<stuck_backend>()
                             : ends_with_others() ? memprof::session::with<slow_backend>()
                                                  : memprof::session{options};
  train();
  return found->second.after_training();
}
