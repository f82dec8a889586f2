// What is in the trace file of a process that was killed: all that it had recorded, up to the events that were being written at
// that instant. The process notes what it does in a page that it shares with the test. MEMPROF_TEST_KILLS sets how often each is
// killed.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_trace_file_killed {

namespace {

using memprof_tests::scratch_folder;

constexpr std::uint32_t thread_count = 4;
constexpr std::int64_t block_bytes = 96;

/// What one thread has done: `begun` is counted before the call, `done` after it.
struct noted_calls {
  alignas(64) std::atomic<std::int64_t> begun{0};
  alignas(64) std::atomic<std::int64_t> done{0};
};

/// The page that outlives the process.
struct noted {
  std::atomic<bool> has_begun{false};
  std::array<noted_calls, thread_count> allocations;
  std::array<noted_calls, thread_count> frees;  ///< of blocks that the thread before handed over

  static noted& make() {
    void* const pages = ::mmap(nullptr, sizeof(noted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc{};
    return *new (pages) noted;
  }
  void forget() { ::munmap(this, sizeof(noted)); }
};

/// Each thread allocates blocks in a space of its own, in rounds of a few; the next one frees them.
[[noreturn]] void allocate_and_hand_over(noted& page, const std::string& file, std::uint32_t ring_capacity,
                                         std::uint64_t trace_limit) {
  // With few points of timelines, generations of a file with a limit are short. On a busy machine the disk may be too slow for
  // threads that do nothing but record.
  auto capture = memprof::begin_capture({.ring_capacity = ring_capacity,
                                         .timeline_points = 16,
                                         .trace_file = file,
                                         .on_slow_disk = memprof::slow_disk::wait,
                                         .trace_limit = trace_limit});
  std::vector<memprof::memory_space> spaces;
  for (std::uint32_t thread = 0; thread < thread_count; ++thread) spaces.emplace_back("thread " + std::to_string(thread));
  static std::array<std::atomic<std::uint64_t>, thread_count> handed_over{};  // blocks of each thread
  static std::array<std::atomic<std::uint64_t>, thread_count> freed{};
  page.has_begun = true;
  std::vector<std::thread> threads;
  for (std::uint32_t self = 0; self < thread_count; ++self) {
    threads.emplace_back([&, self] {
      const memprof::extend::event_sink sink;
      const std::uint32_t before = (self + thread_count - 1) % thread_count;
      const auto block = [](std::uint32_t thread, std::uint64_t index) {
        return reinterpret_cast<const void*>(((std::uint64_t{thread} + 1) << 40) + index % 1000 * 128);
      };
      for (std::uint64_t next = 0, taken = 0;;) {
        auto scope = memprof::track_operation<"round">();
        // An address is used again only when its block is freed, so an order that was not possible would show.
        for (int count = 0; count < 7 && next - freed[self].load(std::memory_order_acquire) < 1000; ++count, ++next) {
          page.allocations[self].begun.fetch_add(1, std::memory_order_relaxed);
          sink.allocate(spaces[self], block(self, next), block_bytes);
          page.allocations[self].done.fetch_add(1, std::memory_order_relaxed);
          handed_over[self].store(next + 1, std::memory_order_release);
        }
        for (; taken < handed_over[before].load(std::memory_order_acquire); ++taken) {
          page.frees[before].begun.fetch_add(1, std::memory_order_relaxed);
          sink.deallocate(spaces[before], block(before, taken), block_bytes);
          page.frees[before].done.fetch_add(1, std::memory_order_relaxed);
          freed[before].store(taken + 1, std::memory_order_release);
        }
      }
    });
  }
  for (;;) ::pause();
}

/// Returns how many events before the first that is kept are missing.
std::uint64_t check_file(const noted& page, const std::string& file) {
  memprof::trace_file_status status;
  const memprof::profile profile = memprof::profile_of(file, status);
  CHECK(status.damage.empty());
  CHECK_FALSE(status.has_ended);
  CHECK_FALSE(status.is_being_written);
  CHECK(profile.exact);
  CHECK_FALSE(profile.complete);
  for (std::uint32_t thread = 0; thread < thread_count; ++thread) {
    INFO("thread " << thread);
    const memprof::space_profile* const space = profile.find_space("thread " + std::to_string(thread));
    const std::int64_t allocations = space == nullptr ? 0 : space->allocation_count;
    const std::int64_t frees = space == nullptr ? 0 : space->deallocation_count;
    CHECK(allocations >= page.allocations[thread].done);
    CHECK(allocations <= page.allocations[thread].begun);
    CHECK(frees >= page.frees[thread].done);
    CHECK(frees <= page.frees[thread].begun);
    if (space == nullptr) continue;
    CHECK(space->cumulative_current == block_bytes * (allocations - frees));
    CHECK(space->anomalies.unmatched_frees.count == 0);
    CHECK(space->anomalies.replaced_allocations.count == 0);
    CHECK(space->anomalies.mismatched_sizes.count == 0);
  }
  return status.dropped;
}

/// Whether the file has lost its first generation.
bool has_dropped(const std::string& file) {
  std::array<unsigned char, memprof::detail::trace_file_header::size> bytes{};
  std::ifstream{file, std::ios::binary}.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  memprof::detail::trace_file_header header;
  return header.decode(bytes) && header.first_number != 0;
}

int kills() {
  const char* const wanted = std::getenv("MEMPROF_TEST_KILLS");
  return wanted == nullptr ? 20 : std::atoi(wanted);
}

}  // namespace

TEST_CASE("trace file: of a process that is killed at any moment it has all that was recorded") {
  const auto ring_capacity = GENERATE(std::uint32_t{32}, std::uint32_t{1024});
  const auto trace_limit = GENERATE(std::uint64_t{0}, std::uint64_t{65'536});
  std::mt19937 random{std::random_device{}()};
  int read = 0;
  int shortened = 0;
  for (int kill = 0; kill < kills(); ++kill) {
    const scratch_folder folder;
    const std::string file = folder.file("run.memtrace");
    noted& page = noted::make();
    const auto microseconds = static_cast<useconds_t>(random() % (kill % 4 == 0 ? 2'000U : 60'000U));
    INFO("kill " << kill << " after " << microseconds << " us");
    const pid_t child = ::fork();
    if (child == 0) allocate_and_hand_over(page, file, ring_capacity, trace_limit);
    // Half of them a while after the capture began, the others at any time.
    if (kill % 4 != 0) {
      while (!page.has_begun) std::this_thread::yield();
    }
    // Some so late that a file with a limit has lost its first generations.
    if (trace_limit != 0 && kill % 4 == 1) {
      for (int wait = 0; wait < 60'000 && !has_dropped(file); ++wait) ::usleep(1000);
    }
    ::usleep(microseconds);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    if (page.has_begun) {
      if (check_file(page, file) != 0) ++shortened;
      ++read;
    }
    page.forget();
  }
  CHECK(read >= kills() / 2);
  if (trace_limit == 0) CHECK(shortened == 0);
  if (trace_limit != 0) CHECK(shortened > 0);
}

TEST_CASE("trace file: a process that exceeds its memory limit leaves all that it recorded") {
#if defined(__clang__) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
  SKIP("with a limit, clang's sanitizers take a minute to run out of memory");
#endif
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  noted& page = noted::make();
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    const memprof::memory_space space{"thread 0"};
    auto capture = memprof::begin_capture({.trace_file = file});
    // What is mapped so far, and 200 MB.
    long pages = 0;
    if (std::FILE* const statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%ld", &pages) != 1) std::_Exit(1);
      std::fclose(statm);
    }
    const auto limit = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
    const rlimit limits{limit, limit};
    if (::setrlimit(RLIMIT_AS, &limits) != 0) std::_Exit(1);
    for (std::uint64_t index = 0;; ++index) {
      void* const block = std::malloc(1 << 16);
      if (block == nullptr) std::abort();
      page.allocations[0].begun.fetch_add(1);
      memprof::extend::event_sink{}.allocate(space, block, block_bytes);
      page.allocations[0].done.fetch_add(1);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  CHECK(page.allocations[0].done > 1000);
  check_file(page, file);
#endif
  page.forget();
}

}  // namespace memprof_tests::integration_trace_file_killed
