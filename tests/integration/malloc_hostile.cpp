// The hook of `malloc` that is linked into a program, where the program does what hooks do not survive. What it allocates is
// known by arithmetic; children end by `_exit`, and what they recorded is read from their trace files.
#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/record/session.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>
#include <stderr_of.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

using memprof_tests::scratch_folder;

/// An optimiser may leave out a block that nobody uses, but not this one.
void* keep(void* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

constexpr std::int64_t churn_blocks = 100;
constexpr std::int64_t churn_bytes = 5050;

/// Blocks of 1 to 100 bytes, one after the other.
void churn() {
  for (std::size_t bytes = 1; bytes <= churn_blocks; ++bytes) std::free(keep(std::malloc(bytes)));
}

/// A child's status after `work`, which returns its exit status; that of `waitpid` if it did not exit.
template <class Work>
int status_of(Work work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    memprof::detail::watcher = nullptr;  // it would write the trace to a file of its own
    ::_exit(work());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

/// The blocks of a profile, without a fault in it.
memprof::space_profile whole_cpu(const memprof::profile& profile) {
  CHECK(profile.exact);
  CHECK(profile.anomalies.reentrant_events == 0);
  const memprof::space_profile* const cpu = profile.find_space("cpu");
  if (cpu == nullptr) return {};
  CHECK(cpu->anomalies.unmatched_frees.count == 0);
  CHECK(cpu->anomalies.replaced_allocations.count == 0);
  CHECK(cpu->anomalies.mismatched_sizes.count == 0);
  return *cpu;
}

struct recorded_file {
  memprof::trace_file_status status;
  memprof::profile profile;
  memprof::space_profile cpu;

  explicit recorded_file(const std::string& path) : profile{memprof::profile_of(path, status)}, cpu{whole_cpu(profile)} {
    CHECK(status.damage.empty());
    CHECK_FALSE(status.is_being_written);
  }
};

/// The bytes and blocks of an operation itself: what the C library takes for threads is not among them.
std::array<std::int64_t, 2> self_of(const memprof::profile& profile, const char* operation) {
  const memprof::operation_profile* const found = profile.find_operation(operation);
  if (found == nullptr || found->usage.empty()) return {};
  return {found->usage.front().self_allocated, found->usage.front().allocation_count};
}

/// A thread with a small stack, of which there is room for thousands.
::pthread_t start_thread(void* (*work)(void*), void* argument) {
  ::pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  ::pthread_t made{};
  if (::pthread_create(&made, &attributes, work, argument) != 0) std::abort();
  ::pthread_attr_destroy(&attributes);
  return made;
}

/// What is mapped so far and some more. Allocates nothing.
void limit_address_space(rlim_t more) {
  std::array<char, 128> statm{};
  const int file = ::open("/proc/self/statm", O_RDONLY);
  if (::read(file, statm.data(), statm.size() - 1) <= 0) std::abort();
  ::close(file);
  const rlim_t pages = std::strtoul(statm.data(), nullptr, 10);
  const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limits{limit, limit};
  if (::setrlimit(RLIMIT_AS, &limits) != 0) std::abort();
}

void close_all_descriptors() {
  for (int number = 3; number < 1024; ++number) ::close(number);
}

/// Waits until there are more checkpoints than `known`, and counts them. Nothing of it is recorded.
bool has_further_checkpoint(std::int64_t& known) {
  const memprof::detail::recording_suppressor hidden;
  for (int attempt = 0; attempt < 60'000; ++attempt) {
    const std::int64_t count = memprof::current_profile().checkpoint_count;
    if (count > known) {
      known = count;
      return true;
    }
    ::usleep(1'000);
  }
  return false;
}

}  // namespace

TEST_CASE("malloc: 2,000 threads that are there at once are recorded to the last block") {
  constexpr int threads = 2000;
  static ::pthread_barrier_t all_there;
  const bool trace_thread = GENERATE(true, false);
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  static std::array<::pthread_t, threads> started;
  ::pthread_barrier_init(&all_there, nullptr, threads);
  const int status = status_of([&] {
    auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file, .trace_thread = trace_thread});
    for (::pthread_t& each : started) {
      each = start_thread(
          [](void*) -> void* {
            const auto scope = memprof::track_operation<"thread">();
            void* const held = keep(std::malloc(1000));
            churn();
            ::pthread_barrier_wait(&all_there);
            churn();
            std::free(held);
            return nullptr;
          },
          nullptr);
    }
    for (const ::pthread_t each : started) ::pthread_join(each, nullptr);
    capture.end();
    return capture.profile().exact ? 0 : 1;
  });
  REQUIRE(status == 0);
  const recorded_file recorded{file};
  CHECK(recorded.status.has_ended);
  CHECK(self_of(recorded.profile, "thread") ==
        std::array<std::int64_t, 2>{threads * (1000 + 2 * churn_bytes), threads * (1 + 2 * churn_blocks)});
  REQUIRE(recorded.profile.find_operation("thread") != nullptr);
  CHECK(recorded.profile.find_operation("thread")->invocations == threads);
  CHECK(recorded.profile.find_operation("thread")->usage.front().live == 0);
  CHECK(recorded.cpu.cumulative_peak >= 1000 * threads);
}

TEST_CASE("malloc: forks beside threads that allocate lose nothing, and a child may have a capture of its own") {
  constexpr int children = 40;
  const bool trace_thread = GENERATE(true, false);
  const scratch_folder folder;
  const std::string file = folder.file("parent.memtrace");
  const int status = status_of([&] {
    static std::atomic<bool> is_over{false};
    static std::atomic<std::int64_t> rounds{0};
    auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file, .trace_thread = trace_thread});
    std::array<::pthread_t, 4> threads{};
    for (::pthread_t& each : threads) {
      each = start_thread(
          [](void*) -> void* {
            while (!is_over) {
              const auto scope = memprof::track_operation<"thread">();
              churn();
              ++rounds;
            }
            return nullptr;
          },
          nullptr);
    }
    int failed = 0;
    for (int child = 0; child < children; ++child) {
      void* const inherited = keep(std::malloc(100));
      const std::string own_file = folder.file("child" + std::to_string(child) + ".memtrace");
      failed += status_of([&] {
        std::free(inherited);
        std::free(keep(std::malloc(7777)));  // the parent's capture is not the child's
        auto own = memprof::begin_capture({.ring_capacity = 16, .trace_file = own_file, .trace_thread = trace_thread});
        void* const stays = keep(std::malloc(30));
        for (int round = 0; round < 10; ++round) churn();
        own.end();
        std::free(stays);
        return own.profile().exact && own.profile().space("cpu").allocations == 30 + 10 * churn_bytes ? 0 : 1;
      });
      std::free(inherited);
    }
    is_over = true;
    for (const ::pthread_t each : threads) ::pthread_join(each, nullptr);
    capture.end();
    const memprof::profile profile = capture.profile();
    const std::array<std::int64_t, 2> seen = self_of(profile, "thread");
    const bool is_right = seen[0] == rounds * churn_bytes && seen[1] == rounds * churn_blocks && profile.exact;
    return failed != 0 ? 2 : is_right ? 0 : 3;
  });
  REQUIRE(status == 0);
  const recorded_file parent{file};
  CHECK(parent.status.has_ended);
  for (int child = 0; child < children; ++child) {
    INFO("child " << child);
    const recorded_file own{folder.file("child" + std::to_string(child) + ".memtrace")};
    CHECK(own.status.has_ended);
    CHECK(own.cpu.allocations == 30 + 10 * churn_bytes);
    CHECK(own.cpu.allocation_count == 1 + 10 * churn_blocks);
    CHECK(own.cpu.cumulative_current == 30);
    CHECK(own.cpu.cumulative_peak == 30 + churn_blocks);
  }
}

namespace {

/// Gives each block once, also to a signal handler that interrupts it, as glibc's allocator cannot.
struct signal_safe_heap {
  alignas(16) inline static std::array<char, std::size_t{1} << 26> store{};
  inline static std::atomic<std::size_t> used{0};
  static void* allocate(std::size_t bytes) noexcept {
    const std::size_t begin = used.fetch_add((bytes + 15) / 16 * 16);
    return begin + bytes > store.size() ? nullptr : store.data() + begin;
  }
  static void* reallocate(void*, std::size_t bytes) noexcept { return allocate(bytes); }
  static void release(void*) noexcept {}
  static std::size_t usable_bytes(void*) noexcept { return 0; }
};
using signal_safe_malloc = memprof::detail::malloc_family<signal_safe_heap>;

std::atomic<std::int64_t> handled{0};

}  // namespace

TEST_CASE("malloc: what a signal handler allocates while it interrupts malloc is recorded or counted") {
  const std::uint32_t ring_capacity = GENERATE(2U, 64U);
  handled = 0;
  signal_safe_heap::used = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    void* const block = keep(signal_safe_malloc::allocate(10));
    signal_safe_malloc::release(keep(signal_safe_malloc::reallocate(block, 20)));
    handled.fetch_add(1);
  };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  auto capture = memprof::begin_capture({.ring_capacity = ring_capacity});
  std::int64_t rounds = 0;
  {
    const auto scope = memprof::track_operation<"interrupted">();
    signal_safe_malloc::release(keep(signal_safe_malloc::allocate(7)));  // a thread's first event is not for a handler
    const itimerval often{{0, 150}, {0, 150}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    for (; handled < 500 && signal_safe_heap::used < signal_safe_heap::store.size() / 2; ++rounds) {
      signal_safe_malloc::release(keep(signal_safe_malloc::allocate(7)));
    }
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& cpu = profile.space("cpu");
  REQUIRE(handled > 100);
  // Two allocations and two frees in a handler, two events of each block beside it. A free whose allocation was re-entrant is
  // unmatched, and one whose free was is live at the end.
  const std::int64_t recorded = cpu.allocation_count + cpu.deallocation_count + cpu.anomalies.unmatched_frees.count;
  CHECK(recorded + profile.anomalies.reentrant_events == 2 * (rounds + 1) + 4 * handled);
  CHECK(profile.exact == (profile.anomalies.reentrant_events == 0));
  CHECK(cpu.anomalies.mismatched_sizes.count == 0);
}

TEST_CASE("malloc: unshare(CLONE_NEWUSER) works in a capture whose trace file has no thread, and fails beside that thread") {
  if (status_of([] { return ::unshare(CLONE_NEWUSER) == 0 ? 0 : 1; }) != 0)
    SKIP("the system does not let a process have a user namespace");
  for (const bool trace_thread : {false, true}) {
    INFO("a thread writes the file: " << trace_thread);
    const scratch_folder folder;
    const std::string file = folder.file("run.memtrace");
    CHECK(status_of([&] {
            auto capture = memprof::begin_capture({.ring_capacity = 16, .trace_file = file, .trace_thread = trace_thread});
            churn();
            errno = 0;
            const bool is_allowed = ::unshare(CLONE_NEWUSER) == 0;
            const bool is_refused = !is_allowed && errno == EINVAL;  // "the calling process is multithreaded": unshare(2)
            churn();
            capture.end();
            return trace_thread ? (is_refused ? 0 : 1) : (is_allowed ? 0 : 1);
          }) == 0);
    const recorded_file recorded{file};
    CHECK(recorded.status.has_ended);
    CHECK(recorded.cpu.allocations == 2 * churn_bytes);
    CHECK(recorded.cpu.allocation_count == 2 * churn_blocks);
    CHECK(recorded.cpu.cumulative_peak == churn_blocks);
  }
}

TEST_CASE("malloc: a program that closes every descriptor and opens a file of its own finds nothing of the trace in it") {
  const bool trace_thread = GENERATE(true, false);
  constexpr int rounds = 1000;
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const std::string own = folder.file("own");
  CHECK(status_of([&] {
          ::close(STDERR_FILENO);  // which would say that the trace ends
          auto capture = memprof::begin_capture({.ring_capacity = 16, .trace_file = file, .trace_thread = trace_thread});
          for (int round = 0; round < rounds; ++round) churn();
          close_all_descriptors();
          for (int number = 3; number < 64; ++number) {
            if (::open(own.c_str(), O_CREAT | O_RDWR, 0600) != number) return 1;
          }
          for (int round = 0; round < rounds; ++round) churn();
          capture.end();
          for (int number = 3; number < 64; ++number) {
            if (::fcntl(number, F_GETFD) < 0) return 2;
          }
          const memprof::space_profile& cpu = capture.profile().space("cpu");
          return capture.profile().exact && cpu.allocation_count == 2 * rounds * churn_blocks ? 0 : 3;
        }) == 0);
  CHECK(std::filesystem::file_size(own) == 0);
  if (trace_thread) {  // the trace ends there, and says so
    memprof::trace_file_status status;
    const memprof::profile read = memprof::profile_of(file, status);
    CHECK_FALSE(status.has_ended);
    CHECK_FALSE(read.exact);
    CHECK(read.space("cpu").allocation_count < 2 * rounds * churn_blocks);
    return;
  }
  const recorded_file recorded{file};
  CHECK(recorded.status.has_ended);
  CHECK(recorded.cpu.allocations == 2 * rounds * churn_bytes);
  CHECK(recorded.cpu.allocation_count == 2 * rounds * churn_blocks);
}

TEST_CASE("malloc: a program that ends at once, however it does, leaves all that it recorded") {
  enum class ending : std::uint8_t { kill, exec, leave };
  const ending end = GENERATE(ending::kill, ending::exec, ending::leave);
  const bool trace_thread = GENERATE(true, false);
  const int rounds = GENERATE(0, 300);  // in the rings alone, and beyond them
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const int status = status_of([&] {
    memprof::begin_capture({.trace_file = file, .trace_thread = trace_thread}).release();
    for (int round = 0; round < rounds; ++round) churn();
    keep(std::malloc(1234));
    if (end == ending::kill) ::raise(SIGKILL);
    if (end == ending::exec) ::execl("/bin/sh", "sh", "-c", "exit 5", nullptr);
    return 6;
  });
  CHECK(status == (end == ending::kill ? SIGKILL : end == ending::exec ? 5 : 6));
  const recorded_file recorded{file};
  CHECK_FALSE(recorded.profile.complete);
  CHECK(recorded.cpu.allocations == rounds * churn_bytes + 1234);
  CHECK(recorded.cpu.allocation_count == rounds * churn_blocks + 1);
  CHECK(recorded.cpu.cumulative_current == 1234);
  CHECK(recorded.cpu.cumulative_peak == 1234);
}

TEST_CASE("malloc: where the address space is used up, what fails is not recorded and blocks stay what they were") {
  const bool trace_thread = GENERATE(true, false);
  constexpr std::size_t most = 1000;
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const int status = status_of([&] {
    static std::array<void*, most> blocks;
    auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file, .trace_thread = trace_thread});
    void* const first = keep(std::malloc(100));
    limit_address_space(rlim_t{200} << 20);
    std::size_t count = 0;
    while (count < most && (blocks[count] = keep(std::malloc(block_bytes))) != nullptr) ++count;
    if (count == 0 || count == most || errno != ENOMEM) return 1;
    for (void* const block : {first, blocks[0]}) {
      errno = 0;
      if (keep(std::realloc(block, std::size_t{1} << 30)) != nullptr || errno != ENOMEM) return 2;
      if (keep(::reallocarray(block, 1 << 15, 1 << 15)) != nullptr || errno != ENOMEM) return 3;
    }
    if (keep(std::calloc(1 << 15, 1 << 15)) != nullptr || keep(::operator new (std::size_t{1} << 30, std::nothrow)) != nullptr)
      return 4;
    void* aligned = nullptr;
    if (::posix_memalign(&aligned, 64, std::size_t{1} << 30) != ENOMEM) return 5;
    for (std::size_t index = 0; index < count; ++index) std::free(blocks[index]);
    capture.end();
    return capture.profile().space("cpu").allocation_count == static_cast<std::int64_t>(1 + count) ? 0 : 6;
  });
  REQUIRE(status == 0);
  const recorded_file recorded{file};
  CHECK(recorded.status.has_ended);
  CHECK(recorded.cpu.cumulative_current == 100);
  CHECK(recorded.cpu.cumulative_peak == 100 + (recorded.cpu.allocation_count - 1) * static_cast<std::int64_t>(block_bytes));
}

TEST_CASE("malloc: a limit on open files, or on their size, that comes in a capture costs no event of its profile") {
  const int resource = GENERATE(RLIMIT_NOFILE, RLIMIT_FSIZE);
  const bool trace_thread = GENERATE(true, false);
  constexpr int rounds = 1000;
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  CHECK(status_of([&] {
          ::close(STDERR_FILENO);  // which would say so
          auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file, .trace_thread = trace_thread});
          for (int round = 0; round < rounds; ++round) churn();
          const rlimit none{0, 0};
          ::setrlimit(static_cast<__rlimit_resource>(resource), &none);
          for (int round = 0; round < rounds; ++round) churn();
          capture.end();
          const memprof::profile profile = capture.profile();
          const memprof::space_profile& cpu = profile.space("cpu");
          return profile.exact && cpu.allocations == 2 * rounds * churn_bytes && cpu.allocation_count == 2 * rounds * churn_blocks
                     ? 0
                     : 1;
        }) == 0);
  memprof::trace_file_status status;
  const memprof::profile read = memprof::profile_of(file, status);
  if (resource == RLIMIT_NOFILE) {
    CHECK(status.has_ended);
    CHECK(whole_cpu(read).allocation_count == 2 * rounds * churn_blocks);
  } else if (!status.has_ended) {
    CHECK_FALSE((read.exact && read.complete));
    CHECK(read.space("cpu").allocation_count <= 2 * rounds * churn_blocks);
  }
}

TEST_CASE("malloc: a capture that may not open a file goes on without it, and says so in a line") {
  const scratch_folder folder;
  int status = -1;
  const std::string said = memprof_tests::stderr_of([&] {
    status = status_of([&] {
      const rlimit none{3, 3};
      ::setrlimit(RLIMIT_NOFILE, &none);
      auto capture = memprof::begin_capture({.trace_file = folder.file("run.memtrace")});
      for (int round = 0; round < 300; ++round) churn();
      capture.end();
      const memprof::profile profile = capture.profile();
      return profile.exact && profile.space("cpu").allocations == 300 * churn_bytes ? 0 : 1;
    });
  });
  CHECK(status == 0);
  INFO(said);
  CHECK(said.find("Too many open files") != std::string::npos);
  CHECK(said.find('\n') == said.size() - 1);
}

TEST_CASE("malloc: a session records a program's blocks and none of its own, whether it ends or is killed") {
  const bool is_killed = GENERATE(false, true);
  constexpr int rounds = 1000;
  const scratch_folder folder;
  int status = -1;
  (void)memprof_tests::stderr_of([&] {  // which says where the files are
    status = status_of([&] {
      memprof::session session{{.output_dir = folder.path().string(), .interval = 0.01, .enabled = true, .trace = true}};
      void* const held = keep(std::malloc(1000));
      std::int64_t checkpoints = 0;
      for (int round = 0; round < rounds; ++round) {
        churn();
        if (round % 100 == 0 && !has_further_checkpoint(checkpoints)) return 3;
      }
      const int failed = status_of([] {
        churn();
        return 0;
      });
      if (is_killed) ::raise(SIGKILL);
      std::free(held);
      session.end();
      return failed;
    });
  });
  CHECK(status == (is_killed ? SIGKILL : 0));
  int traces = 0;
  int profiles = 0;
  for (const std::filesystem::directory_entry& each : std::filesystem::directory_iterator{folder.path()}) {
    const std::string path = each.path().string();
    memprof::profile profile;
    if (path.ends_with(".memtrace")) {
      profile = recorded_file{path}.profile;
      ++traces;
    } else if (path.ends_with(".json")) {
      const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
      REQUIRE(file);
      profile = memprof::read_json(file.get(), path);
      ++profiles;
    } else {
      continue;
    }
    INFO(path);
    const memprof::space_profile cpu = whole_cpu(profile);
    CHECK(cpu.allocations == 1000 + rounds * churn_bytes);
    CHECK(cpu.allocation_count == 1 + rounds * churn_blocks);
    CHECK(cpu.cumulative_peak == 1000 + churn_blocks);
    CHECK(cpu.cumulative_current == (is_killed ? 1000 : 0));
  }
  CHECK(traces == 1);
  CHECK(profiles == 1);  // of a killed one, from before its fork
}

namespace {

void load_and_unload(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  reinterpret_cast<void (*)()>(::dlsym(library, "work"))();
  ::dlclose(library);
}

memprof::space_profile of_library(const char* path, int rounds) {
  auto capture = memprof::begin_capture({.ring_capacity = 8});
  for (int round = 0; round < rounds; ++round) load_and_unload(path);
  capture.end();
  return whole_cpu(capture.profile());
}

}  // namespace

TEST_CASE("malloc: a library's blocks are recorded from its constructors to its destructors, each time it is loaded") {
  constexpr int rounds = 50;
  // The same code, whose blocks have 1 byte together in the one and 150,000 in the other: what the loader takes is equal.
  for (int round = 0; round < 4; ++round) {  // what the loader takes the first times, for itself
    load_and_unload(MEMPROF_LOADING_PLUGIN);
    load_and_unload(MEMPROF_WORKING_PLUGIN);
  }
  const memprof::space_profile loading = of_library(MEMPROF_LOADING_PLUGIN, rounds);
  const memprof::space_profile working = of_library(MEMPROF_WORKING_PLUGIN, rounds);
  CHECK(working.allocations - loading.allocations == rounds * std::int64_t{149'999});
  CHECK(working.allocation_count == loading.allocation_count);
  CHECK(working.allocation_count >= rounds * std::int64_t{4});
  CHECK(working.cumulative_current == 0);
  CHECK(loading.cumulative_current == 0);
}
