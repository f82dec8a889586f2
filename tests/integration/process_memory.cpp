// What a capture says about memory that it did not record. This program records its `operator new`, and calls `malloc` besides,
// as C libraries do.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <memprof/analysis/process_account.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/report/text.hpp>
#include <memprof/trace/fact_payload.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Catch::Matchers::ContainsSubstring;
using memprof::process_memory;

constexpr std::int64_t mib = std::int64_t{1} << 20;

/// A sanitizer has a `malloc` of its own, and glibc before 2.33 and other C libraries do not say what theirs holds.
bool is_heap_known() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__GLIBC__) && defined(__GLIBC_PREREQ)
  return __GLIBC_PREREQ(2, 33);
#else
  return false;
#endif
}

struct free_deleter {
  void operator()(void* block) const { std::free(block); }
};
using c_block = std::unique_ptr<void, free_deleter>;

/// As hnswlib and other libraries allocate: past `operator new`.
c_block aligned_block(std::int64_t bytes, bool is_touched = true) {
  void* block = nullptr;
  if (::posix_memalign(&block, 64, static_cast<std::size_t>(bytes)) != 0) throw std::bad_alloc{};
  if (is_touched) std::memset(block, 1, static_cast<std::size_t>(bytes));
  return c_block{block};
}

process_memory row(const memprof::profile& profile, std::string_view moment) {
  for (process_memory& each : memprof::rows_of<process_memory>(profile.facts)) {
    if (each.moment == moment) return each;
  }
  FAIL("there is no row " << moment);
  return {};
}

}  // namespace

#define REQUIRE_KNOWN_HEAP() \
  if (!is_heap_known()) SKIP("malloc does not say what it holds")

TEST_CASE("process memory: 20 MiB from posix_memalign beside 1000 B of operator new are named, with the cure") {
  REQUIRE_KNOWN_HEAP();
  auto capture = memprof::begin_capture();
  {
    const std::unique_ptr<char[]> recorded{new char[1000]};
    const c_block index = aligned_block(20 * mib);
    memprof::snapshot("BUILD");
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  REQUIRE(profile.space("cpu").cumulative_peak == 1000);
  const process_memory most = row(profile, "most_unrecorded");
  CHECK(most.unrecorded_heap_bytes >= 20 * mib);
  CHECK(most.unrecorded_heap_bytes < 21 * mib);
  CHECK(most.recorded_bytes == 1000);
  CHECK(most.resident_bytes > 20 * mib);
  CHECK(most.records_operator_new == 1);
  CHECK(row(profile, "most_resident").unrecorded_heap_bytes == most.unrecorded_heap_bytes);
  CHECK(row(profile, "last").unrecorded_heap_bytes < mib);

  const std::string text = memprof::to_text(profile);
  CHECK_THAT(text, ContainsSubstring("1000 B recorded, 20.0 MiB heap not recorded (malloc)"));
  CHECK_THAT(text, ContainsSubstring("incomplete: exact for what was captured"));
  CHECK_THAT(text, ContainsSubstring("20.0 MiB of heap not recorded: memory from malloc, calloc or posix_memalign"));
}

TEST_CASE("process memory: a program that records what it allocates hears nothing of it") {
  auto capture = memprof::begin_capture();
  {
    const std::vector<char> large(20 * mib, 'x');
    std::vector<std::unique_ptr<char[]>> small;
    for (int count = 0; count < 200'000; ++count) small.emplace_back(new char[24]);  // blocks of 32 bytes for malloc
    memprof::snapshot("WORK");
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const std::string text = memprof::to_text(profile);
  CHECK_THAT(text, !ContainsSubstring("Process"));
  CHECK_THAT(text, !ContainsSubstring("process_memory"));
  CHECK_THAT(text, !ContainsSubstring("not recorded"));
  CHECK(row(profile, "most_recorded").recorded_bytes >= 20 * mib);
}

TEST_CASE("process memory: blocks that nobody touched are counted, and never as resident") {
  REQUIRE_KNOWN_HEAP();
  constexpr std::int64_t much = std::int64_t{8} << 30;
  auto capture = memprof::begin_capture();
  {
    const std::unique_ptr<char[]> recorded{new char[much]};
    const c_block other = aligned_block(much, false);
    memprof::snapshot("RESERVE");
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const std::optional<memprof::process_account> account = memprof::process_account_of(profile);
  REQUIRE(account);
  CHECK(account->reading.unrecorded_heap_bytes >= much);
  CHECK(account->not_resident > much);
  for (const std::int64_t part : {account->recorded, account->unrecorded_heap, account->heap_before, account->free_heap,
                                  account->profiler, account->other_anonymous, account->files, account->not_resident}) {
    CHECK(part >= 0);
  }
  CHECK(account->recorded + account->unrecorded_heap + account->heap_before + account->free_heap + account->profiler +
            account->other_anonymous + account->files ==
        account->reading.resident_bytes);
  CHECK_THAT(memprof::to_text(profile), ContainsSubstring("of blocks not resident"));
}

TEST_CASE("process memory: what a simulated run records is not in the process") {
  auto capture = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch});
  memprof::memory_resource memory{"cpu"};
  void* const block = memory.allocate(100 * mib);
  memprof::snapshot("MODEL");
  memory.deallocate(block, 100 * mib);
  capture.end();
  for (const process_memory& each : memprof::rows_of<process_memory>(capture.profile().facts)) CHECK(each.recorded_bytes == 0);
}

TEST_CASE("process memory: blocks of a device are not in the process, those of other spaces of the host are") {
  const memprof::memory_space device{"cuda:0"};
  memprof::memory_resource pool{"pool"};
  auto capture = memprof::begin_capture();
  memprof::event_sink sink;
  sink.allocate(device, reinterpret_cast<void*>(0x1000), 500 * mib);
  void* const block = pool.allocate(3000);
  memprof::snapshot("MODEL");
  pool.deallocate(block, 3000);
  capture.end();
  CHECK(row(capture.profile(), "most_recorded").recorded_bytes == 3000);
}

TEST_CASE("process memory: what was allocated before the capture is not called unrecorded") {
  REQUIRE_KNOWN_HEAP();
  const c_block before = aligned_block(30 * mib);
  auto capture = memprof::begin_capture();
  delete new int;
  memprof::snapshot("WORK");
  capture.end();
  const memprof::profile profile = capture.profile();
  const process_memory most = row(profile, "most_unrecorded");
  CHECK(most.heap_before_bytes >= 30 * mib);
  CHECK(most.unrecorded_heap_bytes < mib);
  CHECK_THAT(memprof::to_text(profile), ContainsSubstring("exact: "));
}

TEST_CASE("process memory: the heap of all threads counts") {
  REQUIRE_KNOWN_HEAP();
  auto capture = memprof::begin_capture();
  std::thread{[] {
    std::vector<c_block> kept;
    for (int count = 0; count < 100; ++count) kept.push_back(aligned_block(mib / 20));  // from the thread's own arena
    memprof::snapshot("WORK");
  }}.join();
  capture.end();
  CHECK(row(capture.profile(), "most_unrecorded").unrecorded_heap_bytes >= 4 * mib);
}

TEST_CASE("process memory: live capture, kept trace and trace file say the same") {
  const memprof_tests::scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const std::uint64_t limit = GENERATE(std::uint64_t{0}, std::uint64_t{1} << 16);
  memprof::trace kept;
  auto capture = memprof::begin_capture({.trace = &kept, .trace_file = file, .trace_limit = limit});
  for (int step = 0; step < 50; ++step) {
    const c_block block = aligned_block(mib / 10);
    for (int count = 0; count < 2000; ++count) delete new int;
    memprof::snapshot("STEP");
    if (step == 20) (void)capture.profile();
  }
  capture.end();
  const memprof::profile live = capture.profile();
  const std::vector<process_memory> rows = memprof::rows_of<process_memory>(live.facts);
  CHECK(rows.size() == std::size(memprof::process_moments));
  CHECK(memprof::rows_of<process_memory>(memprof::profile_of(kept).facts) == rows);
  CHECK(memprof::rows_of<process_memory>(memprof::profile_of(file).facts) == rows);
}

TEST_CASE("process memory: a trace file of a killed process has the readings up to the last snapshot") {
  REQUIRE_KNOWN_HEAP();
  const memprof_tests::scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto capture = memprof::begin_capture({.trace_file = file});
    const c_block block = aligned_block(20 * mib);
    delete new int;
    memprof::snapshot("BUILD");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const process_memory last = row(memprof::profile_of(file), "last");
  CHECK(last.unrecorded_heap_bytes >= 20 * mib);
  CHECK(last.records_operator_new == 1);
}

TEST_CASE("process memory: a trace file of many small segments stays small") {
  const memprof_tests::scratch_folder folder;
  auto capture = memprof::begin_capture({.trace_file = folder.file("run.memtrace")});
  for (int step = 0; step < 300; ++step) memprof::snapshot("STEP");
  capture.end();
  CHECK(std::filesystem::file_size(folder.file("run.memtrace")) < 20'000);
}

TEST_CASE("process memory: nothing that a reading allocates is the program's") {
  auto capture = memprof::begin_capture();
  for (int step = 0; step < 1000; ++step) {
    memprof::snapshot("STEP");
    if (step % 100 == 0) (void)capture.profile();
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile* const cpu = profile.find_space("cpu");
  CHECK((cpu == nullptr || cpu->allocations == 0));
  CHECK(profile.anomalies.reentrant_events == 0);
  CHECK(profile.exact);
}

TEST_CASE("process memory: snapshots cost no more than the schedule allows, with a million free chunks in malloc") {
  REQUIRE_KNOWN_HEAP();
  std::vector<void*> blocks;
  for (int count = 0; count < 2'000'000; ++count) blocks.push_back(std::malloc(100));
  for (std::size_t index = 0; index < blocks.size(); index += 2) std::free(blocks[index]);
  auto capture = memprof::begin_capture();  // asks malloc, which takes some 20 ms
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < 10'000; ++step) memprof::snapshot("STEP");
  const auto spent = std::chrono::steady_clock::now() - begin;
  capture.end();
  for (std::size_t index = 1; index < blocks.size(); index += 2) std::free(blocks[index]);
  CHECK(spent < std::chrono::seconds{2});  // 200 s if each snapshot asked malloc
  CHECK(row(capture.profile(), "last").heap_bytes > 0);
}

TEST_CASE("process memory: a snapshot in a signal handler does not wait for malloc") {
  auto capture = memprof::begin_capture();
  delete new int;
  static volatile std::sig_atomic_t may_wait = 1;
  struct sigaction action {};
  action.sa_handler = [](int) {
    may_wait = memprof::detail::may_wait_for_malloc() ? 1 : 0;
    memprof::snapshot("HANDLER");
  };
  struct sigaction before {};
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  CHECK(memprof::detail::may_wait_for_malloc());
  ::raise(SIGUSR1);
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(may_wait == 0);
  capture.end();
}

TEST_CASE("process memory: a program that allocates nothing under capture hears that operator new was recorded") {
  auto capture = memprof::begin_capture();
  capture.end();
  CHECK_THAT(memprof::to_text(capture.profile()), ContainsSubstring("No allocations recorded.\n"
                                                                    "operator new is recorded, but was not called"));
}
