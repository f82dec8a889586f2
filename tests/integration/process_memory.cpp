// What a capture says about memory that it did not record. This program records its `operator new`, and calls `malloc` besides,
// as C libraries do.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/report/text.hpp>
#include <memprof/trace/fact_payload.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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

/// An optimiser may leave out a block that nobody uses, but not this one.
template <class T>
T* keep(T* block) {
  asm volatile("" : : "r"(block) : "memory");
  return block;
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

/// As if the process had not asked `malloc` yet.
void forget_cost_of_heap() { std::construct_at(&memprof::detail::process_heap_schedule); }

/// Runs the function in a process of its own. Its status, as of `waitpid`.
template <class Function>
int status_of_child(Function&& run) {
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(run());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

process_memory row(const memprof::profile& profile, std::string_view moment) {
  for (process_memory& each : memprof::rows_of<process_memory>(profile.facts)) {
    if (each.moment == moment) return each;
  }
  FAIL("there is no row " << moment);
  return {};
}

}  // namespace

#define REQUIRE_KNOWN_HEAP()                                       \
  if (!is_heap_known()) SKIP("malloc does not say what it holds"); \
  forget_cost_of_heap()

TEST_CASE("process memory: 20 MiB from posix_memalign beside 1000 B of operator new are named, with the cure") {
  REQUIRE_KNOWN_HEAP();
  auto capture = memprof::begin_capture();
  {
    const std::unique_ptr<char[]> recorded{keep(new char[1000])};
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

TEST_CASE("process memory: a program that records what it allocates hears of no cure") {
  REQUIRE_KNOWN_HEAP();
  auto capture = memprof::begin_capture();
  {
    const std::vector<char> large(20 * mib, 'x');
    std::vector<std::unique_ptr<char[]>> small;
    for (int count = 0; count < 200'000; ++count) small.emplace_back(keep(new char[24]));  // blocks of 32 bytes for malloc
    memprof::snapshot("WORK");
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  const std::string text = memprof::to_text(profile);
  CHECK_THAT(text, ContainsSubstring("B recorded, 0 B heap not recorded, "));
  CHECK_THAT(text, !ContainsSubstring("process_memory"));
  CHECK_THAT(text, !ContainsSubstring("(malloc)"));
  CHECK_THAT(text, ContainsSubstring("exact: "));
  CHECK(row(profile, "most_recorded").recorded_bytes >= 20 * mib);
}

TEST_CASE("process memory: what malloc takes for the alignment of recorded blocks is not called unrecorded") {
  REQUIRE_KNOWN_HEAP();
  constexpr std::align_val_t huge_page{2 * mib};
  const auto one = [&](bool may_throw) {
    return may_throw ? ::operator new(mib, huge_page) : ::operator new(mib, huge_page, std::nothrow);
  };
  auto capture = memprof::begin_capture();
  std::vector<void*> blocks;
  for (int count = 0; count < 20; ++count) blocks.push_back(one(count % 2 == 0));  // 3 MiB each for malloc
  memprof::snapshot("WORK");
  for (void* const block : blocks) ::operator delete(block, huge_page);
  const c_block other = aligned_block(20 * mib);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(row(profile, "most_recorded").recorded_bytes >= 20 * mib);
  CHECK(row(profile, "most_recorded").unrecorded_heap_bytes == 0);
  CHECK(row(profile, "last").unrecorded_heap_bytes > 19 * mib);
}

TEST_CASE("process memory: blocks that nobody touched are counted, and never as resident") {
  REQUIRE_KNOWN_HEAP();
  constexpr std::int64_t much = std::int64_t{8} << 30;
  auto capture = memprof::begin_capture();
  {
    const std::unique_ptr<char[]> recorded{keep(new char[much])};
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
  memprof::extend::event_sink sink;
  sink.allocate(device, reinterpret_cast<void*>(0x1000), 500 * mib);
  void* const block = pool.allocate(3000);
  memprof::snapshot("MODEL");
  pool.deallocate(block, 3000);
  capture.end();
  CHECK(row(capture.profile(), "most_recorded").recorded_bytes == 3000);
}

TEST_CASE("process memory: blocks of the spaces beyond the 254th are recorded, too") {
  REQUIRE_KNOWN_HEAP();
  const int status = status_of_child([] {  // the spaces stay until the process ends
    std::vector<memprof::memory_space> spaces;
    for (int number = 0; number < 300; ++number) spaces.emplace_back("space " + std::to_string(number));
    memprof::memory_resource pool{"yet another"};
    auto capture = memprof::begin_capture();
    void* const block = pool.allocate(20 * mib);
    memprof::snapshot("WORK");
    pool.deallocate(block, 20 * mib);
    capture.end();
    const process_memory most = row(capture.profile(), "most_recorded");
    return most.recorded_bytes >= 20 * mib && most.unrecorded_heap_bytes == 0 ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("process memory: threads that allocate during a snapshot, by operator new alone, make nothing unrecorded") {
  REQUIRE_KNOWN_HEAP();
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  auto capture = memprof::begin_capture();
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      while (!stops) {
        std::vector<std::unique_ptr<char[]>> blocks;
        for (int count = 0; count < 64; ++count) blocks.emplace_back(keep(new char[mib / 10]));
      }
    });
  }
  for (int step = 0; step < 200; ++step) {
    std::this_thread::yield();
    memprof::snapshot("WORK");
  }
  stops = true;
  for (std::thread& each : threads) each.join();
  capture.end();
  // A block of each thread may be on its way.
  CHECK(row(capture.profile(), "most_unrecorded").unrecorded_heap_bytes < mib);
}

TEST_CASE("process memory: what was allocated before the capture is not called unrecorded") {
  REQUIRE_KNOWN_HEAP();
  const c_block before = aligned_block(30 * mib);
  auto capture = memprof::begin_capture();
  delete keep(new int);
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
    for (int count = 0; count < 2000; ++count) delete keep(new int);
    memprof::snapshot("STEP");
    if (step == 20) (void)capture.profile();
  }
  capture.end();
  const memprof::profile live = capture.profile();
  const auto rows = memprof::rows_of<process_memory>(live.facts);
  CHECK(rows.size() == std::size(memprof::detail::process_moments));
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
    delete keep(new int);
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
  CHECK(spent < std::chrono::seconds{2});  // 200 s if each snapshot asked malloc
  CHECK(row(capture.profile(), "last").heap_bytes > 0);
  auto next = memprof::begin_capture();
  next.end();
  CHECK(row(next.profile(), "last").resident_bytes > 0);
  CHECK(row(next.profile(), "last").heap_bytes == -1);  // or a thousand captures would take 20 s or more
  for (std::size_t index = 1; index < blocks.size(); index += 2) std::free(blocks[index]);
}

namespace {

volatile std::sig_atomic_t may_wait = 1;
void note_may_wait(int) { may_wait = memprof::detail::may_wait_for_malloc() ? 1 : 0; }
void remove_and_note(int number) {
  std::signal(number, SIG_DFL);
  note_may_wait(number);
}

/// A handler of SIGUSR1 until the end of the scope.
class handler_guard {
 public:
  handler_guard(void (*handler)(int), int flags) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    REQUIRE(::sigaction(SIGUSR1, &action, &before_) == 0);
  }
  handler_guard(const handler_guard&) = delete;
  handler_guard& operator=(const handler_guard&) = delete;
  ~handler_guard() { ::sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// Signals blocked on this thread until the end of the scope.
class blocked_guard {
 public:
  explicit blocked_guard(std::initializer_list<int> numbers) {
    sigset_t blocked;
    ::sigemptyset(&blocked);
    for (const int number : numbers) ::sigaddset(&blocked, number);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  blocked_guard(const blocked_guard&) = delete;
  blocked_guard& operator=(const blocked_guard&) = delete;
  ~blocked_guard() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

TEST_CASE("process memory: a signal handler does not wait for malloc, which it may have interrupted") {
  struct kind {
    const char* name;
    void (*handler)(int);
    int flags;
  };
  const kind of = GENERATE(kind{"plain", note_may_wait, 0}, kind{"with SA_NODEFER", note_may_wait, SA_NODEFER},
                           kind{"that removes itself", remove_and_note, 0},
                           kind{"that the system removes", note_may_wait, static_cast<int>(SA_RESETHAND)});
  const bool is_late = GENERATE(false, true);  // installed during the capture
  CAPTURE(of.name, is_late);
  std::optional<handler_guard> handler;
  if (!is_late) handler.emplace(of.handler, of.flags);
  auto capture = memprof::begin_capture();
  CHECK(memprof::detail::may_wait_for_malloc() == (is_late || of.flags != SA_NODEFER));
  if (is_late) handler.emplace(of.handler, of.flags);
  may_wait = 1;
  ::raise(SIGUSR1);
  CHECK(may_wait == 0);
  handler.reset();
  capture.end();
}

TEST_CASE("process memory: a handler that has removed itself is known from before the capture, whatever that blocked") {
  const handler_guard handler{remove_and_note, 0};
  std::optional<blocked_guard> at_begin{std::initializer_list<int>{SIGUSR1}};
  auto capture = memprof::begin_capture();
  at_begin.reset();
  may_wait = 1;
  ::raise(SIGUSR1);
  CHECK(may_wait == 0);
  capture.end();
}

TEST_CASE("process memory: a handler on a stack of its own is recognised, and others may wait meanwhile") {
  const std::vector<char> memory(static_cast<std::size_t>(SIGSTKSZ) + 65'536);
  stack_t before{};
  stack_t stack{};
  stack.ss_sp = const_cast<char*>(memory.data());
  stack.ss_size = memory.size();
  REQUIRE(::sigaltstack(&stack, &before) == 0);
  auto capture = memprof::begin_capture();
  {
    const handler_guard handler{note_may_wait, SA_NODEFER | SA_ONSTACK};
    CHECK(memprof::detail::may_wait_for_malloc());
    may_wait = 1;
    ::raise(SIGUSR1);
    CHECK(may_wait == 0);
    bool may_wait_without_stack = true;
    std::thread{[&] {
      const stack_t none{nullptr, SS_DISABLE, 0};  // a sanitizer gives its threads one
      ::sigaltstack(&none, nullptr);
      may_wait_without_stack = memprof::detail::may_wait_for_malloc();
    }}.join();
    CHECK_FALSE(may_wait_without_stack);
  }
  capture.end();
  ::sigaltstack(&before, nullptr);
}

TEST_CASE("process memory: snapshots of a thread that blocks signals without handlers, as servers do, see the heap") {
  REQUIRE_KNOWN_HEAP();
  const blocked_guard blocked{SIGPIPE, SIGHUP, SIGRTMIN + 1};  // Catch2 handles SIGINT
  auto capture = memprof::begin_capture();
  std::thread{[] {
    delete keep(new int);
    const c_block other = aligned_block(20 * mib);
    memprof::snapshot("WORK");
  }}.join();
  capture.end();
  CHECK(row(capture.profile(), "most_unrecorded").unrecorded_heap_bytes > 19 * mib);
}

TEST_CASE("process memory: begin, end and profile see the heap, whatever signals their thread blocks") {
  REQUIRE_KNOWN_HEAP();
  const handler_guard handler{note_may_wait, SA_NODEFER};
  auto capture = memprof::begin_capture();
  const blocked_guard blocked{SIGUSR1, SIGPIPE};
  const c_block other = aligned_block(20 * mib);
  CHECK(row(capture.profile(), "last").unrecorded_heap_bytes > 19 * mib);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(row(profile, "first").heap_bytes > 0);
  CHECK(row(profile, "last").unrecorded_heap_bytes > 19 * mib);
}

namespace {

volatile std::sig_atomic_t handled_count = 0;
void count_handled(int) { handled_count = handled_count + 1; }

/// Set while `mallinfo2` below raises SIGUSR1.
bool raises_in_malloc = false;
int handled_in_malloc = -1;

}  // namespace

TEST_CASE("process memory: no handler runs while malloc is asked, whose locks it would leave behind by siglongjmp") {
  REQUIRE_KNOWN_HEAP();
  const handler_guard handler{count_handled, 0};
  handled_count = 0;
  handled_in_malloc = -1;
  raises_in_malloc = true;
  memprof::detail::process_reading reading;
  memprof::detail::add_heap(reading);
  raises_in_malloc = false;
  CHECK(handled_in_malloc == 0);
  CHECK(handled_count == 1);
  CHECK(reading.heap > 0);
}

#if defined(__linux__)

TEST_CASE("process memory: a thread is cancelled neither while it reads the file of /proc nor while it opens or closes it") {
  const memprof_tests::scratch_folder folder;
  bool is_past = false;
  std::thread{[&] {
    ::pthread_cancel(::pthread_self());
    auto capture = memprof::begin_capture({.trace_file = folder.file("run.memtrace")});
    memprof::snapshot("CANCELLED");
    (void)memprof::current_profile();
    capture.end();
    is_past = capture.profile().segments.size() == 2;
    for (;;) ::pthread_testcancel();
  }}.join();
  CHECK(is_past);
  auto next = memprof::begin_capture();
  next.end();
  CHECK(row(next.profile(), "last").resident_bytes > 0);
}

namespace {

/// The number of the capture's file of /proc; -1: there is none.
int number_of_status_file() {
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code failure;
    const std::string path = std::filesystem::read_symlink(entry.path(), failure).string();
    if (path.starts_with("/proc/") && path.ends_with("/status")) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

/// Has the system kill this process if it opens a file.
bool forbid_open() {
  sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#if defined(SYS_open)
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 2, 0),
#endif
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("process memory: a program that may open no files since the capture began lives on, and is read") {
  const memprof_tests::scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const int status = status_of_child([&] {
    auto capture = memprof::begin_capture({.trace_file = file});
    if (!forbid_open()) return 77;
    {
      const std::vector<char> large(20 * mib, 'x');
      memprof::snapshot("WORK");
    }
    capture.end();
    return 0;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("the system has no filters of calls");
  CHECK(status == 0);
  CHECK(row(memprof::profile_of(file), "most_recorded").recorded_bytes >= 20 * mib);
}

TEST_CASE("process memory: the file of /proc is open during the capture alone, and in no child") {
  CHECK(number_of_status_file() == -1);
  auto capture = memprof::begin_capture();
  const int number = number_of_status_file();
  REQUIRE(number >= 0);
  CHECK((::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK_THROWS(memprof::begin_capture());
  CHECK(number_of_status_file() == number);
  const int status = status_of_child([] {
    if (number_of_status_file() != -1) return 1;
    auto own = memprof::begin_capture();
    const std::vector<char> large(100 * mib, 'x');
    memprof::snapshot("WORK");
    // The parent does not have them.
    return row(own.profile(), "last").resident_bytes >= 100 * mib ? 0 : 2;
  });
  CHECK(status == 0);
  capture.end();
  CHECK(number_of_status_file() == -1);
}

TEST_CASE("process memory: a program that closes every file and opens others keeps them, unread, and its heap is known") {
  const memprof_tests::scratch_folder folder;
  auto capture = memprof::begin_capture();
  const int number = number_of_status_file();
  REQUIRE(number >= 0);
  delete keep(new int);
  memprof::snapshot("BEFORE");
  int ends[2] = {-1, -1};
  SECTION("a file") {
    ends[0] = ::open(folder.file("own").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(::write(ends[0], "Pid:\nVmRSS:\t1 kB\n", 18) == 18);
    REQUIRE(::lseek(ends[0], 0, SEEK_SET) == 0);
  }
  SECTION("a pipe") {
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::write(ends[1], "0123456789abcdef..", 18) == 18);
  }
  SECTION("the status of another process") {
    ends[0] = ::open("/proc/1/status", O_RDONLY | O_CLOEXEC);
    if (ends[0] < 0 || ::getpid() == 1) SKIP("there is no other process");
  }
  REQUIRE(::dup2(ends[0], number) == number);
  const std::int64_t before = row(capture.profile(), "last").time_ns;
  {
    const c_block other = aligned_block(20 * mib);
    forget_cost_of_heap();
    memprof::snapshot("AFTER");
    forget_cost_of_heap();
    capture.end();
  }
  // `malloc` needs no file.
  if (is_heap_known()) {
    CHECK(row(capture.profile(), "last").resident_bytes == -1);
    CHECK(row(capture.profile(), "last").unrecorded_heap_bytes >= 20 * mib);
    CHECK_THAT(memprof::to_text(capture.profile()), ContainsSubstring("resident unknown: "));
  } else {
    CHECK(row(capture.profile(), "last").time_ns == before);
  }
  char text[100];
  CHECK(::read(number, text, sizeof text) >= 18);
  for (const int file : {number, ends[0], ends[1]}) {
    if (file >= 0) CHECK(::close(file) == 0);
  }
}

#endif

TEST_CASE("process memory: a program that allocates nothing under capture hears that operator new was recorded") {
  auto capture = memprof::begin_capture();
  capture.end();
  CHECK_THAT(memprof::to_text(capture.profile()), ContainsSubstring("No allocations recorded.\n"
                                                                    "operator new is recorded, but was not called"));
}

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
/// Stands before that of the C library.
extern "C" struct mallinfo2 mallinfo2() noexcept {
  static const auto real = reinterpret_cast<struct mallinfo2 (*)()>(::dlsym(RTLD_NEXT, "mallinfo2"));
  if (raises_in_malloc) {
    const int before = handled_count;
    ::raise(SIGUSR1);
    handled_in_malloc = handled_count - before;
  }
  return real();
}
#endif
#endif
