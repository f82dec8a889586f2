// A trace file that the recording threads write themselves, as `memprof run` needs it.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

namespace memprof_tests::trace_file_without_thread {

/// Enough for several chunks of 256 KiB.
constexpr std::uint64_t blocks = 200'000;

void record(std::uint64_t first, std::uint64_t last) {
  const memprof::memory_space space{"dram"};
  for (std::uint64_t block = first; block <= last; ++block) {
    const auto* const address = reinterpret_cast<const void*>(block * 0x9E3779B97F4AU * 16 % (std::uint64_t{1} << 46));
    memprof::extend::event_sink{}.allocate(space, address, 64);
    if (block % 2 == 0) memprof::extend::event_sink{}.deallocate(space, address);
  }
}

/// The profile of a capture into that file, with something done halfway.
memprof::profile captured(const std::string& file, const std::function<void()>& after_half) {
  memprof::detail::watcher = nullptr;  // it would write the trace to a file of its own
  auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file, .trace_thread = false});
  record(1, blocks / 2);
  after_half();
  record(blocks / 2 + 1, blocks);
  capture.end();
  return capture.profile();
}

void check_equal(const std::string& file, const memprof::profile& live) {
  memprof::trace_file_status status;
  memprof::profile read = memprof::profile_of(file, status);
  CHECK(status.damage.empty());
  CHECK(status.has_ended);
  read.cost = live.cost;
  CHECK(read == live);
  CHECK(live.space("dram").allocation_count == static_cast<std::int64_t>(blocks));
}

std::int64_t threads() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return std::distance(begin(tasks), end(tasks));
}

TEST_CASE("trace file: without a thread it holds the same, and the process has none but its own") {
  const scratch_folder folder;
  const std::int64_t before = threads();
  std::int64_t during = 0;
  const memprof::profile live = captured(folder.file("run.memtrace"), [&] { during = threads(); });
  CHECK(during == before);
  check_equal(folder.file("run.memtrace"), live);
}

TEST_CASE("trace file: without a thread it goes on after the program has closed every descriptor") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const memprof::profile live = captured(file, [] {
      for (int number = 3; number < 64; ++number) ::close(number);
    });
    ::_exit(live.exact && live.facts.size() <= 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  memprof::trace_file_status read;
  const memprof::profile profile = memprof::profile_of(file, read);
  CHECK(read.has_ended);
  CHECK(profile.exact);
  CHECK(profile.space("dram").allocation_count == static_cast<std::int64_t>(blocks));
}

TEST_CASE("trace file: without a thread, a file beyond the process's limit ends the trace and not the program") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(STDERR_FILENO);  // which would say so
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const memprof::profile live = captured(file, [] {});
    ::_exit(live.space("dram").allocation_count == static_cast<std::int64_t>(blocks) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("trace file: a limit on the size of files that comes during a short capture does not end the program") {
  for (const bool has_thread : {false, true}) {
    for (const rlim_t most : {rlim_t{0}, rlim_t{4096}}) {
      for (const bool has_one_pending : {false, true}) {
        INFO("thread " << has_thread << ", limit " << most << ", a signal before " << has_one_pending);
        const scratch_folder folder;
        const std::string file = folder.file("run.memtrace");
        const ::pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
          ::close(STDERR_FILENO);  // which would say so
          memprof::detail::watcher = nullptr;
          sigset_t signals;
          ::sigemptyset(&signals);
          ::sigaddset(&signals, SIGXFSZ);
          if (has_one_pending) {
            ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
            ::raise(SIGXFSZ);
          }
          auto capture = memprof::begin_capture({.trace_file = file, .trace_thread = has_thread});
          const rlimit limit{most, most};
          ::setrlimit(RLIMIT_FSIZE, &limit);
          record(1, 10);
          capture.end();
          ::sigpending(&signals);
          const bool is_pending = ::sigismember(&signals, SIGXFSZ) == 1;
          ::_exit(capture.profile().space("dram").allocation_count == 10 && is_pending == has_one_pending ? 0 : 1);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
      }
    }
  }
}

}  // namespace memprof_tests::trace_file_without_thread
