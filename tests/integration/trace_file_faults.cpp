// What becomes of a capture whose trace file cannot be made, or not be written: it goes on, its own profile is exact and says
// what the file lacks, one line on stderr says why, and nothing of anybody else's is touched. This program puts functions of its
// own in the place of those that write files.
#include <memprof/memprof.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/file_lock.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>
#include <thread_sanitizer.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

/// How the disk behaves.
struct disk {
  std::atomic<std::int64_t> room{INT64_MAX};  ///< bytes until it is full
  std::atomic<bool> is_stuck{false};          ///< it takes nothing for a while
  std::atomic<bool> hangs{false};             ///< no call returns, whatever it is
  std::atomic<bool> is_hesitant{false};       ///< it takes few bytes at a time, and every second call is interrupted
  std::atomic<int> fallocate_error{0};
  std::atomic<unsigned> calls{0};
  std::atomic<unsigned> writes{0};  ///< that are done
  std::atomic<int> held{0};         ///< writes that wait because it is stuck

  void heal() {
    room = INT64_MAX;
    is_stuck = false;
    hangs = false;
    is_hesitant = false;
    fallocate_error = 0;
  }
  void wait_while_it_hangs() const {
    while (hangs) ::usleep(1000);
  }
};
disk the_disk;

ssize_t write_to_disk(int file, const void* bytes, std::size_t size, off_t offset) {
  the_disk.wait_while_it_hangs();
  const bool is_reserved = offset < 4096;
  ++the_disk.held;
  while (the_disk.is_stuck && !is_reserved) ::usleep(1000);
  --the_disk.held;
  if (the_disk.is_hesitant) {
    if (the_disk.calls.fetch_add(1) % 2 == 0) return errno = EINTR, -1;
    if (size > 1000) size = 1000;
  }
  const std::int64_t room = is_reserved ? INT64_MAX : the_disk.room.load();
  if (room <= 0) return errno = ENOSPC, -1;
  if (room < static_cast<std::int64_t>(size)) size = static_cast<std::size_t>(room);
  const ssize_t written = ::syscall(SYS_pwrite64, file, bytes, size, offset);
  if (written > 0 && room != INT64_MAX) the_disk.room -= written;
  the_disk.writes.fetch_add(1);
  return written;
}

}  // namespace

extern "C" {
ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) { return write_to_disk(file, bytes, size, offset); }
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) { return write_to_disk(file, bytes, size, offset); }
int fallocate(int file, int mode, off_t offset, off_t size) {
  the_disk.wait_while_it_hangs();
  if (const int error = the_disk.fallocate_error; error != 0 && mode == 0) return errno = error, -1;
  return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, size));
}
int fallocate64(int file, int mode, off64_t offset, off64_t size) { return fallocate(file, mode, offset, size); }
int ftruncate(int file, off_t size) {
  the_disk.wait_while_it_hangs();
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }
}

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using memprof_tests::scratch_folder;

/// Whether a thread of this process sleeps.
bool is_asleep(long thread) {
  std::ifstream file{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // what stands before it may contain anything
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

/// Lets the disk take writes again when it has held one up until the calling thread had to wait for it.
std::thread repair_when_waited_for() {
  return std::thread{[thread = ::syscall(SYS_gettid)] {
    for (int looks = 0; looks < 20; ::usleep(1000)) looks = the_disk.held > 0 && is_asleep(thread) ? looks + 1 : 0;
    the_disk.is_stuck = false;
  }};
}

/// What is written to stderr meanwhile.
class said_on_stderr {
 public:
  explicit said_on_stderr(const scratch_folder& folder) : path_{folder.file("stderr")}, before_{::dup(2)} {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, 2);
    ::close(file);
  }
  said_on_stderr(const said_on_stderr&) = delete;
  said_on_stderr& operator=(const said_on_stderr&) = delete;
  ~said_on_stderr() { stop(); }

  std::string stop() {
    if (before_ >= 0) {
      ::dup2(before_, 2);
      ::close(before_);
      before_ = -1;
    }
    return memprof::detail::read_whole_file(path_);
  }

 private:
  std::string path_;
  int before_;
};

struct finished_capture {
  memprof::profile profile;
  std::string said;
  memprof::vector<memprof::incomplete_trace_file> lacks;
};

/// A capture of so many blocks of 64 bytes, each of a new address, of which each other one is freed.
finished_capture run(
    const scratch_folder& folder, const std::string& file, std::uint64_t blocks,
    memprof::slow_disk on_slow_disk = memprof::slow_disk::leave_gap, std::uint32_t ring_capacity = 1024,
    const std::function<void()>& after_half = [] {}, memprof::trace* kept = nullptr) {
  memprof::detail::watcher = nullptr;  // it would write the trace to a file of its own
  said_on_stderr said{folder};
  const memprof::memory_space space{"dram"};
  auto capture =
      memprof::begin_capture({.ring_capacity = ring_capacity, .trace = kept, .trace_file = file, .on_slow_disk = on_slow_disk});
  {
    auto scope = memprof::track_operation<"forward">();
    for (std::uint64_t block = 1; block <= blocks; ++block) {
      const auto* const address = reinterpret_cast<const void*>(block * 0x9E3779B97F4AU * 16 % (std::uint64_t{1} << 46));
      memprof::extend::event_sink{}.allocate(space, address, 64);
      if (block % 2 == 0) memprof::extend::event_sink{}.deallocate(space, address);
      if (block == blocks / 2) after_half();
    }
  }
  memprof::extend::event_sink{}.add_facts({"batches", {"size"}, {{std::int64_t{32}}}});
  memprof::snapshot("FORWARD_PASS");
  capture.end();
  finished_capture result{capture.profile(), said.stop(), {}};
  result.lacks = memprof::rows_of<memprof::incomplete_trace_file>(result.profile.facts);
  CHECK(result.profile.exact);
  CHECK(result.profile.complete);
  CHECK(result.profile.space("dram").allocation_count == static_cast<std::int64_t>(blocks));
  CHECK(result.profile.space("dram").deallocation_count == static_cast<std::int64_t>(blocks / 2));
  return result;
}

std::string content_of(const std::string& path) { return memprof::detail::read_whole_file(path); }

/// The capture that `run` makes, and its file, know the same.
void check_equal(const std::string& file, const memprof::profile& live) {
  memprof::trace_file_status status;
  memprof::profile read = memprof::profile_of(file, status);
  CHECK(status.damage.empty());
  CHECK(status.has_ended);
  read.cost = live.cost;
  CHECK(read == live);
}

/// Counts what is in a trace.
struct event_counter {
  std::uint64_t events_read = 0;
  void info(const memprof::extend::capture_info& /*info*/) {}
  void name(memprof::extend::label /*id*/, std::string_view /*text*/) {}
  void space(const memprof::extend::space_definition& /*space*/) {}
  void facts(memprof::extend::fact_part&& /*facts*/) {}
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t /*ring*/) {
    events_read += static_cast<std::uint64_t>(last - first);
  }
};

void check_refused(const scratch_folder& folder, const std::string& file, const std::string& reason) {
  const finished_capture capture = run(folder, file, 10);
  CHECK(capture.said == "memprof: no trace file '" + file + "': " + reason + "; the capture goes on without one\n");
  REQUIRE(capture.lacks.size() == 1);
  CHECK(capture.lacks[0].path == file);
  CHECK(capture.lacks[0].reason == reason);
}

}  // namespace

TEST_CASE("trace file: it becomes what write_trace would have written, in its size too") {
  const scratch_folder folder;
  for (const std::uint64_t blocks : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{200'000}}) {
    const std::string file = folder.file("run.memtrace");
    memprof::trace kept;
    const finished_capture capture = run(
        folder, file, blocks, memprof::slow_disk::leave_gap, 1024, [] {}, &kept);
    CHECK(capture.said.empty());
    CHECK(capture.lacks.empty());
    check_equal(file, capture.profile);
    const std::string written = folder.file("written.memtrace");
    memprof::write_trace(kept, written);
    CHECK(std::filesystem::file_size(file) < std::filesystem::file_size(written) + 700);  // a state, and how the file ended
  }
}

TEST_CASE("trace file: a run longer than what was reserved leaves no blocks behind") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  constexpr std::uint64_t blocks = 1'600'000;  // of some 10 bytes: more than the 12 MiB in front of the live area
  const finished_capture capture = run(folder, file, blocks, memprof::slow_disk::wait, 64);
  CHECK(capture.said.empty());
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  memprof::trace_file_status read;
  const memprof::profile profile = memprof::profile_of(file, read);
  CHECK(profile.exact);
  CHECK(read.bytes == static_cast<std::uint64_t>(status.st_size));
  CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 < blocks * 12);
  check_equal(file, capture.profile);

  // Where the area was is a hole, which a pipe brings as zeros.
  std::FILE* const pipe = ::popen(("cat '" + file + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  memprof::extend::trace_fold piped;
  const memprof::trace_file_status from_pipe = memprof::read_trace(pipe, "pipe", piped);
  ::pclose(pipe);
  CHECK(from_pipe.damage.empty());
  CHECK(from_pipe.chunks == read.chunks);
  CHECK(from_pipe.has_ended);
}

TEST_CASE("trace file: short and interrupted writes are continued") {
  const scratch_folder folder;
  the_disk.is_hesitant = true;
  const finished_capture capture = run(folder, folder.file("run.memtrace"), 200'000);
  the_disk.heal();
  CHECK(capture.said.empty());
  check_equal(folder.file("run.memtrace"), capture.profile);
}

TEST_CASE("trace file: on a disk that becomes full it ends, and the capture goes on") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  the_disk.room = 1'000'000;
  const finished_capture capture = run(folder, file, 1'000'000);
  the_disk.heal();
  CHECK(capture.said ==
        "memprof: trace file '" + file + "' ends here: No space left on device; the capture goes on without it\n");
  REQUIRE(capture.lacks.size() == 1);
  CHECK(capture.lacks[0].reason == "writing it failed: No space left on device");
  CHECK(capture.lacks[0].missing_events > 0);

  memprof::trace_file_status status;
  const memprof::profile read = memprof::profile_of(file, status);
  CHECK_THAT(status.damage, ContainsSubstring("ends early because writing it failed (No space left on device)"));
  CHECK_FALSE(status.has_ended);
  CHECK_FALSE(read.exact);
  CHECK_FALSE(read.complete);
  // Three whole chunks of 256 KiB fit, and what a buffer held is there too; a block takes less than 14 bytes.
  CHECK(status.chunks > 3);
  CHECK(read.space("dram").allocation_count > 4 * 262'144 / 14);
  CHECK(read.space("dram").anomalies.unmatched_frees.count == 0);
}

TEST_CASE("trace file: events that come faster than the disk takes them leave a gap of a known size") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  the_disk.is_stuck = true;
  const finished_capture capture = run(folder, file, 2'400'000, memprof::slow_disk::leave_gap, 1024, [] {
    the_disk.writes = 0;
    the_disk.is_stuck = false;
    // A gap ends when half of the 32 buffers are free; each takes two writes.
    while (the_disk.writes < 40) ::usleep(1000);
  });
  CHECK(capture.said == "memprof: trace file '" + file +
                            "': its disk is too slow, so events are left out; the capture's own numbers stay exact\n");
  REQUIRE(capture.lacks.size() == 1);
  CHECK(capture.lacks[0].reason == "its disk was too slow");
  const std::int64_t missing = capture.lacks[0].missing_events;
  CHECK(missing > 0);

  struct counter {
    std::int64_t events_seen = 0;
    bool is_named = false;
    void info(const memprof::extend::capture_info&) {}
    void name(memprof::extend::label, std::string_view text) { is_named = is_named || text == "FORWARD_PASS"; }
    void space(const memprof::extend::space_definition&) {}
    void facts(memprof::extend::fact_part&&) {}
    void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t) {
      for (; first != last; ++first) events_seen += first->kind == memprof::extend::event_kind::gap ? 0 : 1;
    }
  } counted;
  const memprof::trace_file_status status = memprof::read_trace(file, counted);
  CHECK(status.damage.empty());
  CHECK(status.has_ended);
  CHECK(counted.is_named);
  CHECK(counted.events_seen + missing == capture.profile.cost.events);

  // What was live where the gap ended takes more than the buffers had room for.
  const memprof::profile read = memprof::profile_of(file);
  CHECK_FALSE(read.exact);
  CHECK(read.complete);
  CHECK(read.anomalies.missing_events == missing);
  bool has_facts = false;
  for (const memprof::fact_table& table : read.facts) has_facts = has_facts || table.name == "batches";
  CHECK(has_facts);
}

TEST_CASE("trace file: where little is live behind a gap, its profile is that of the whole capture") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  memprof::detail::watcher = nullptr;
  said_on_stderr said{folder};
  the_disk.is_stuck = true;
  const memprof::memory_space space{"dram"};
  auto capture = memprof::begin_capture({.trace_file = file});
  for (std::uint64_t block = 1; block <= 1'600'000; ++block) {
    const auto* const address = reinterpret_cast<const void*>(block * 0x9E3779B97F4AU * 16 % (std::uint64_t{1} << 46));
    memprof::extend::event_sink{}.allocate(space, address, block % 1000);
    if (block % 100'000 != 0) memprof::extend::event_sink{}.deallocate(space, address);
    if (block != 1'200'000) continue;
    memprof::snapshot("STUCK");
    the_disk.writes = 0;
    the_disk.is_stuck = false;
    while (the_disk.writes < 40) ::usleep(1000);
  }
  capture.end();
  CHECK_THAT(said.stop(), EndsWith("its disk is too slow, so events are left out; the capture's own numbers stay exact\n"));
  const memprof::profile profile = capture.profile();
  const auto lacks = memprof::rows_of<memprof::incomplete_trace_file>(profile.facts);
  REQUIRE(lacks.size() == 1);
  CHECK(lacks[0].missing_events > 0);
  CHECK(profile.space("dram").deallocation_count == 1'600'000 - 16);
  check_equal(file, profile);
}

TEST_CASE("trace file: no call of a training waits for a file system that hangs") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  memprof::detail::watcher = nullptr;
  said_on_stderr said{folder};
  constexpr std::int64_t blocks = 400'000;
  constexpr int more_threads = 200;  // than have a place in the file before its disk gives room for others
  const memprof::memory_space space{"dram"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.ring_capacity = 256, .trace_file = file});
  the_disk.hangs = true;

  std::atomic<bool> is_done{false};
  memprof::profile meanwhile;
  std::thread training{[&] {
    for (int step = 0; step < 4; ++step) {
      auto scope = memprof::track_operation<"forward">();
      for (std::int64_t block = 1; block <= blocks; ++block) {
        const std::uint64_t number = static_cast<std::uint64_t>(step * blocks + block);
        const auto* const address = reinterpret_cast<const void*>(number * 0x9E3779B97F4AU * 16 % (std::uint64_t{1} << 46));
        sink.allocate(space, address, static_cast<std::size_t>(block % 1000));
        if (block % 10'000 != 0 || step != 0) sink.deallocate(space, address);
      }
      memprof::snapshot("STEP " + std::to_string(step));
    }
    std::vector<std::thread> others;
    std::atomic<int> arrived{0};
    for (int index = 0; index < more_threads; ++index) {
      others.emplace_back([&, index] {
        sink.allocate(space, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(index + 1)), 3);
        for (++arrived; arrived < more_threads;) std::this_thread::yield();  // so that each has a ring of its own
      });
    }
    for (std::thread& each : others) each.join();
    memprof::annotate(reinterpret_cast<const void*>(std::uintptr_t{1}), {.name = "first"});
    const memprof::memory_space other{"sram"};
    sink.allocate(other, &capture, 70);
    sink.add_facts({"batches", {"size"}, {{std::int64_t{32}}}});
    meanwhile = capture.profile();
    is_done = true;
  }};
  // What waits for the disk would wait for ever. A minute is for machines that are slow, not for the disk.
  for (int waited = 0; waited < 60'000 && !is_done; ++waited) ::usleep(1000);
  const bool has_not_waited = is_done;
  the_disk.heal();
  training.join();
  CHECK(has_not_waited);
  capture.end();

  CHECK(said.stop() == "memprof: trace file '" + file +
                           "': its disk is too slow, so events are left out; the capture's own numbers stay exact\n");
  const memprof::profile profile = capture.profile();
  for (const memprof::profile& each : {meanwhile, profile}) {
    CHECK(each.exact);
    CHECK(each.space("dram").allocation_count == 4 * blocks + more_threads);
    CHECK(each.space("dram").deallocation_count == 4 * blocks - blocks / 10'000);
    CHECK(each.space("dram").anomalies.unmatched_frees.count == 0);
    CHECK(each.space("sram").allocations == 70);
    const auto lacks = memprof::rows_of<memprof::incomplete_trace_file>(each.facts);
    REQUIRE(lacks.size() == 1);
    CHECK(lacks[0].reason == "its disk was too slow");
    CHECK(lacks[0].missing_events > 0);
  }
  check_equal(file, profile);  // behind the gap stands what was known
}

TEST_CASE("trace file: with slow_disk::wait nothing is missing on a slow disk") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  the_disk.is_stuck = true;
  std::thread repair = repair_when_waited_for();
  const finished_capture capture = run(folder, file, 1'200'000, memprof::slow_disk::wait);
  repair.join();
  CHECK(capture.said.empty());
  CHECK(capture.lacks.empty());
  check_equal(file, capture.profile);
}

TEST_CASE("trace file: where blocks cannot be reserved it is written without being mapped, and the profile says so") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  the_disk.fallocate_error = EOPNOTSUPP;
  const finished_capture capture = run(folder, file, 200'000);
  the_disk.heal();
  CHECK(capture.said.empty());
  REQUIRE(capture.lacks.size() == 1);
  CHECK_THAT(capture.lacks[0].reason, StartsWith("it cannot be mapped on its file system"));
  check_equal(file, capture.profile);
}

namespace {

/// A capture of steps with the same blocks in each, of which some stay a while, whose file has a limit; the file says the same.
/// Returns the events that it has not, and calls `after_half` when half of the steps are done.
std::uint64_t run_with_limit(
    const std::string& file, std::uint64_t limit, std::uint64_t steps, const std::function<void()>& after_half = [] {}) {
  memprof::detail::watcher = nullptr;
  const memprof::memory_space space{"dram"};
  auto capture = memprof::begin_capture({.timeline_points = 64, .trace_file = file, .trace_limit = limit});
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto scope = memprof::track_operation<"step">();
    for (std::uint64_t block = 0; block < 100; ++block) {
      const auto* const address = reinterpret_cast<const void*>((step % 7 * 100 + block + 1) * 4096);
      if (step >= 7) memprof::extend::event_sink{}.deallocate(space, address);
      memprof::extend::event_sink{}.allocate(space, address, 1 + (step * 31 + block) % 5000);
    }
    if (step % 1000 == 999) memprof::snapshot("STEPS");
    if (step == steps / 2) after_half();
  }
  memprof::extend::event_sink{}.add_facts({"batches", {"size"}, {{std::int64_t{32}}}});
  capture.end();
  const memprof::profile live = capture.profile();
  CHECK(live.exact);
  check_equal(file, live);
  memprof::trace_file_status status;
  CHECK(memprof::profile_of(file, status).exact);
  return status.dropped;
}

/// Bytes of a finished file's chunks, those of events and those with which its generations begin.
struct chunk_bytes {
  std::uint64_t of_events = 0;
  std::uint64_t of_beginnings = 0;

  explicit chunk_bytes(const std::string& path) {
    namespace detail = memprof::detail;
    const std::string file = content_of(path);
    const auto bytes_at = [&](std::uint64_t at, auto& bytes) { std::memcpy(bytes.data(), file.data() + at, bytes.size()); };
    std::array<unsigned char, detail::trace_file_header::size> begin{};
    bytes_at(0, begin);
    detail::trace_file_header header;
    REQUIRE(header.decode(begin));
    CHECK(header.more_chunks == 0);
    for (std::uint64_t at = header.first_chunk; at < file.size();) {
      std::array<unsigned char, detail::chunk_header::size> next{};
      bytes_at(at, next);
      detail::chunk_header chunk;
      REQUIRE(chunk.decode(next));
      (chunk.packing == detail::generation_beginning ? of_beginnings : of_events) += chunk.bytes;
      at += next.size() + chunk.bytes;
    }
  }
};

/// Generations are as long as half of the limit, or as what they begin with. They become longer only while the thread that writes
/// lags behind, by what the buffers hold.
void check_size(const std::string& file, std::uint64_t limit) {
  const chunk_bytes found{file};
  const std::uint64_t buffers = memprof::detail::live_layout::buffers * std::uint64_t{memprof::detail::live_layout::buffer_bytes};
  CHECK(found.of_events <= std::max(limit, 2 * found.of_beginnings) + buffers);
  CHECK(found.of_events > limit / 2);
  CHECK(found.of_beginnings < std::uint64_t{1} << 20);
}

}  // namespace

TEST_CASE("trace file: with a limit it keeps the newest events, and its profile is that of the whole capture") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  // The thread sanitizer makes each step take ten times as long; few of them do not fill the larger files.
  constexpr std::uint64_t steps = memprof_tests::has_thread_sanitizer ? 5'000 : 20'000;
  std::vector<std::uint64_t> limits{std::uint64_t{64} << 10};
  if (!memprof_tests::has_thread_sanitizer) limits.insert(limits.end(), {std::uint64_t{1} << 20, std::uint64_t{4} << 20});
  for (const std::uint64_t limit : limits) {
    INFO("limit " << limit);
    CHECK(run_with_limit(file, limit, steps) > 0);
    check_size(file, limit);
    const std::uint64_t size = std::filesystem::file_size(file);
    // Its blocks are gone too, those of the live area among them.
    struct stat status {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 <= size + 65'536);
  }
  CHECK(run_with_limit(file, std::uint64_t{1} << 30, steps) == 0);
}

TEST_CASE("trace file: one with a limit can be read from a pipe and packed, and has a copy of the same content") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  REQUIRE(run_with_limit(file, 65'536, 5000) > 0);
  const memprof::profile whole = memprof::profile_of(file);
  std::FILE* const pipe = ::popen(("cat '" + file + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  memprof::trace_file_status status;
  const memprof::profile piped = memprof::profile_of(pipe, "-", status);
  ::pclose(pipe);
  CHECK(status.damage.empty());
  CHECK(piped == whole);
}

TEST_CASE("trace file: a limit holds where nothing is mapped, on a disk that is stuck, and with short writes") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  SECTION("not mapped") {
    the_disk.fallocate_error = EOPNOTSUPP;
    CHECK(run_with_limit(file, std::uint64_t{1} << 20, 20'000) > 0);
    check_size(file, std::uint64_t{1} << 20);
  }
  SECTION("stuck") {
    const said_on_stderr said{folder};
    std::thread repair;
    CHECK(run_with_limit(file, std::uint64_t{1} << 20, 20'000, [&] {
            the_disk.is_stuck = true;
            repair = repair_when_waited_for();
          }) > 0);
    repair.join();
  }
  SECTION("short writes") {
    the_disk.is_hesitant = true;
    CHECK(run_with_limit(file, 65'536, 5000) > 0);
  }
  the_disk.heal();
}

TEST_CASE("trace file: a disk that becomes full ends one with a limit, and what it kept is read") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  for (const std::int64_t room : {300'000, 1'000'000, 2'000'000}) {
    INFO("room " << room);
    const said_on_stderr said{folder};
    memprof::detail::watcher = nullptr;
    const memprof::memory_space space{"dram"};
    auto capture = memprof::begin_capture({.timeline_points = 64, .trace_file = file, .trace_limit = std::uint64_t{1} << 20});
    the_disk.room = room;
    for (std::uint64_t block = 1; block <= 500'000; ++block) {
      const auto* const address = reinterpret_cast<const void*>(block * 0x9E3779B97F4AU * 16 % (std::uint64_t{1} << 46));
      memprof::extend::event_sink{}.allocate(space, address, 64);
      memprof::extend::event_sink{}.deallocate(space, address);
    }
    capture.end();
    the_disk.heal();
    CHECK(capture.profile().exact);
    memprof::trace_file_status status;
    const memprof::profile read = memprof::profile_of(file, status);
    CHECK_THAT(status.damage, EndsWith("ends early because writing it failed (No space left on device)"));
    CHECK_FALSE(read.exact);
    CHECK(read.space("dram").anomalies.unmatched_frees.count == 0);
    // Before it ended, nothing was missing that a saved state does not tell.
    CHECK(read.anomalies.missing_events == 1);
    CHECK(read.space("dram").allocation_count > room / 14 / 2);
  }
}

TEST_CASE("trace file: a disk that is full from the begin leaves no file") {
  const scratch_folder folder;
  the_disk.fallocate_error = ENOSPC;
  check_refused(folder, folder.file("run.memtrace"), "No space left on device");
  the_disk.heal();
  CHECK_FALSE(std::filesystem::exists(folder.file("run.memtrace")));
}

TEST_CASE("trace file: where there can be none the capture goes on, and what is there stays as it is") {
  const scratch_folder folder;
  const std::string taken = "something other than a trace has this name and is left as it is; choose another name";
  check_refused(folder, folder.file("nowhere/run.memtrace"), "No such file or directory");
  check_refused(folder, folder.path().string(), taken);
  if (std::filesystem::exists("/dev/full")) check_refused(folder, "/dev/full", taken);

  const std::string foreign = folder.file("notes.txt");
  std::ofstream{foreign} << "do not lose me";
  check_refused(folder, foreign, taken);
  CHECK(content_of(foreign) == "do not lose me");

  const std::string printed = "the program's standard input, output or error is this file; choose another one";
  check_refused(folder, folder.file("stderr"), printed);  // empty, and the name that `run` redirects to
  check_refused(folder, "/proc/self/fd/2", printed);

  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_refused(folder, pipe, taken);

  std::filesystem::create_symlink("missing", folder.file("link"));
  check_refused(folder, folder.file("link"), taken);
  CHECK_FALSE(std::filesystem::exists(folder.file("missing")));

  if (::geteuid() != 0) {
    std::filesystem::create_directory(folder.file("closed"));
    std::filesystem::permissions(folder.file("closed"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    check_refused(folder, folder.file("closed/run.memtrace"), "Permission denied");
  }
}

TEST_CASE("trace file: an earlier trace of the name is kept once, and an empty file is taken") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  std::ofstream{file};
  for (const std::uint64_t blocks : {1, 2, 3}) {
    const finished_capture capture = run(folder, file, blocks);
    CHECK(capture.said.empty());
  }
  CHECK(memprof::profile_of(file).space("dram").allocation_count == 3);
  CHECK(memprof::profile_of(file + ".old").space("dram").allocation_count == 2);
  CHECK_FALSE(std::filesystem::exists(file + ".old.old"));

  std::ofstream{file + ".old"} << "mine";
  const std::string before = content_of(file);
  check_refused(folder, file,
                "it is an earlier trace and cannot become '" + file + ".old', which is not a trace; move one of them");
  CHECK(content_of(file) == before);
  CHECK(content_of(file + ".old") == "mine");
}

TEST_CASE("trace file: its name may have the process, the rank and the host in it") {
  const scratch_folder folder;
  ::setenv("RANK", "3", 1);
  ::setenv("WORLD_SIZE", "8", 1);
  const finished_capture capture = run(folder, folder.file("%h_%r_%p_%%_%x.memtrace"), 3);
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  const memprof::process_info& process = capture.profile.process;
  const std::string name = process.host + "_3_" + std::to_string(::getpid()) + "_%_%x.memtrace";
  CHECK(std::filesystem::exists(folder.file(name)));
}

TEST_CASE("trace file: one that was deleted while it was written is missed") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  said_on_stderr said{folder};
  auto capture = memprof::begin_capture({.trace_file = file});
  std::filesystem::remove(file);
  capture.end();
  CHECK(said.stop() == "memprof: trace file '" + file + "': it was deleted while it was written\n");
  CHECK(memprof::rows_of<memprof::incomplete_trace_file>(capture.profile().facts).size() == 1);
}

TEST_CASE("trace file: a program that closes its number, and opens a file of its own, keeps that") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const memprof::memory_space space{"dram"};
  auto capture = memprof::begin_capture({.ring_capacity = 8, .trace_file = file});
  int number = -1;
  for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(each.path(), gone) == file) number = std::stoi(each.path().filename().string());
  }
  REQUIRE(number >= 0);
  const std::string mine = folder.file("mine.txt");
  const int opened = ::open(mine.c_str(), O_RDWR | O_CREAT, 0644);
  REQUIRE(::dup2(opened, number) == number);
  REQUIRE(::write(number, "precious", 8) == 8);
  for (int round = 0; round < 200'000; ++round) {
    memprof::extend::event_sink{}.allocate(space, memprof::extend::block_address{0x100}, 10);
    memprof::extend::event_sink{}.deallocate(space, memprof::extend::block_address{0x100});
  }
  capture.end();
  CHECK(memprof::detail::read_whole_file(mine) == "precious");
  CHECK(::lseek(number, 0, SEEK_CUR) == 8);  // still open
  CHECK(capture.profile().space("dram").allocation_count == 200'000);
  CHECK(memprof::rows_of<memprof::incomplete_trace_file>(capture.profile().facts).size() == 1);
  ::close(number);
  ::close(opened);
}

TEST_CASE("trace file: one that another process has made and not written yet is that process's") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const int theirs = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
  REQUIRE(memprof::detail::lock_file(theirs));
  CHECK_THAT(run(folder, file, 10).said, ContainsSubstring("': another capture is writing it; put %p in the name"));
  ::close(theirs);
  CHECK(run(folder, file, 10).said.empty());
}

TEST_CASE("trace file: two captures do not write the same one, and a child leaves its parent's alone") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const memprof::memory_space space{"dram"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.ring_capacity = 8, .trace_file = file});
  sink.allocate(space, &file, 1000);
  const pid_t child = ::fork();
  if (child == 0) {
    sink.allocate(space, &sink, 77);  // of no capture
    const finished_capture refused = run(folder, file, 10);
    const bool is_refused = refused.said.find("': another capture is writing it; ") != std::string::npos;
    if (memprof_tests::has_thread_sanitizer) std::_Exit(is_refused ? 0 : 1);  // a file of its own takes a thread
    const finished_capture own = run(folder, folder.file("child.memtrace"), 10);
    std::_Exit(is_refused && own.said.empty() && own.lacks.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (int round = 0; round < 100; ++round) {
    sink.allocate(space, &capture, 10);
    sink.deallocate(space, &capture, 10);
  }
  capture.end();
  check_equal(file, capture.profile());
  CHECK(memprof::profile_of(file).space("dram").allocations == 2000);
  if (memprof_tests::has_thread_sanitizer) return;
  CHECK(memprof::profile_of(folder.file("child.memtrace")).space("dram").allocation_count == 10);
}

namespace {

/// What a fork handler of the program does in the child, before memprof's own: the system has no more memory from then on.
bool takes_memory_from_children = false;
void take_memory_from_child() {
  const rlimit none{1, RLIM_INFINITY};
  if (takes_memory_from_children) (void)::setrlimit(RLIMIT_AS, &none);
}

}  // namespace

TEST_CASE("trace file: a child for which the system has no memory leaves its parent's alone too") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  // Handlers of children run in the order in which they were registered, and this one comes before the first capture's.
  static const int is_registered = ::pthread_atfork(nullptr, nullptr, take_memory_from_child);
  REQUIRE(is_registered == 0);
  memprof::detail::watcher = nullptr;
  const memprof::memory_space space{"dram"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file});
  sink.allocate(space, &file, 1000);
  takes_memory_from_children = true;
  const pid_t child = ::fork();
  takes_memory_from_children = false;
  if (child == 0) {
    const rlimit limits{RLIM_INFINITY, RLIM_INFINITY};
    (void)::setrlimit(RLIMIT_AS, &limits);
    // In a ring of the same size, as if it were that of the parent.
    auto own = memprof::begin_capture({.ring_capacity = 64});
    for (int count = 0; count < 1000; ++count) sink.allocate(space, &file + count, 77);
    own.end();
    const memprof::profile profile = own.profile();
    std::_Exit(profile.exact && profile.space("dram").allocation_count == 1000 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (int round = 0; round < 10; ++round) sink.deallocate(space, &file, 0), sink.allocate(space, &file, 1000);
  capture.end();
  CHECK(capture.profile().space("dram").allocations == 11'000);
  check_equal(file, capture.profile());
}

TEST_CASE("trace file: a limit on the size of files ends it without a signal") {
  constexpr std::int64_t blocks = 250'000;  // some 1.5 MB
  for (const rlim_t limit : {rlim_t{100}, rlim_t{1} << 20, rlim_t{13} << 20}) {
    INFO("limit " << limit);
    const scratch_folder folder;
    const std::string file = folder.file("run.memtrace");
    const pid_t child = ::fork();
    if (child == 0) {
      rlimit before{};
      const rlimit limits{limit, RLIM_INFINITY};
      if (::getrlimit(RLIMIT_FSIZE, &before) != 0 || ::setrlimit(RLIMIT_FSIZE, &limits) != 0) std::_Exit(2);
      std::signal(SIGXFSZ, SIG_DFL);
      // With rings of 64 events the live area takes 12 MiB: the last file may have it, and some chunks.
      auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file});
      const memprof::memory_space space{"dram"};
      for (std::uint64_t block = 1; block <= std::uint64_t{blocks}; ++block)
        memprof::extend::event_sink{}.allocate(space, reinterpret_cast<const void*>(block * 4096), block % 5000);
      capture.end();
      ::setrlimit(RLIMIT_FSIZE, &before);
      const memprof::profile profile = capture.profile();
      const auto lacks = memprof::rows_of<memprof::incomplete_trace_file>(profile.facts);
      const bool is_said =
          lacks.size() == 1 && lacks[0].reason == "writing it failed: File too large (for RLIMIT_FSIZE: ulimit -f)";
      std::ofstream{folder.file("kept")} << profile.cost.events - (is_said ? lacks[0].missing_events : 0);
      std::_Exit(profile.exact && profile.space("dram").allocation_count == blocks && is_said ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(std::filesystem::file_size(file) <= limit);
    memprof::trace_file_status read;
    const memprof::profile profile = memprof::profile_of(file, read);
    CHECK_THAT(read.damage, EndsWith("because writing it failed (File too large (for RLIMIT_FSIZE: ulimit -f))"));
    CHECK_FALSE(profile.exact);
    std::uint64_t kept = 0;
    std::ifstream{folder.file("kept")} >> kept;
    event_counter found;
    (void)memprof::read_trace(file, found);
    CHECK(kept == found.events_read - 1);  // the last is the gap where reading ended
  }
}
