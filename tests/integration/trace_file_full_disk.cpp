// A trace file on a disk that is really full: a small tmpfs, which takes the right to mount one (in a namespace of the test's
// own).
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_trace_file_full_disk {

namespace {

constexpr int not_permitted = 77;

/// Mounts a tmpfs of that size over a folder, for this process alone. False if the system does not let us.
bool mount_small_disk(const std::string& folder, const std::string& size) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);  // so that nobody else sees the next
  return ::mount("tmpfs", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

/// Takes what is left of the disk.
void fill_disk(const std::string& file) {
  const int filler = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  const std::vector<char> bytes(4096, 'x');
  while (::write(filler, bytes.data(), bytes.size()) > 0) {
  }
  ::close(filler);
}

std::string said_of(const memprof::profile& profile) {
  const auto lacks = memprof::rows_of<memprof::incomplete_trace_file>(profile.facts);
  return lacks.size() == 1 ? lacks[0].reason : "nothing";
}

/// The exit status of `work` in a child that has such a disk.
template <class Work>
int run_on_small_disk(const std::string& size, Work work) {
  const memprof_tests::scratch_folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    memprof::detail::watcher = nullptr;
    if (!mount_small_disk(folder.path().string(), size)) std::_Exit(not_permitted);
    std::_Exit(work(folder));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("trace file: a full disk stops no thread, and its stores into mapped pages never lack a block") {
  const int status = run_on_small_disk("16m", [](const memprof_tests::scratch_folder& folder) {
    const std::string file = folder.file("run.memtrace");
    constexpr std::uint64_t blocks = 300'000;
    constexpr std::uint64_t thread_count = 8;
    auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file});
    fill_disk(folder.file("filler"));
    const memprof::memory_space space{"dram"};
    // Threads that come now find few places for their rings, and no room for more.
    std::vector<std::thread> threads;
    for (std::uint64_t self = 0; self < thread_count; ++self) {
      threads.emplace_back([&, self] {
        for (std::uint64_t block = 0; block < blocks / thread_count; ++block) {
          const std::uint64_t index = self * blocks + block;
          memprof::extend::event_sink{}.allocate(space, reinterpret_cast<const void*>((index + 1) * 4096), block % 5000);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    capture.end();
    const memprof::profile profile = capture.profile();
    if (!profile.exact || profile.space("dram").allocation_count != std::int64_t{blocks}) return 1;
    if (said_of(profile) != "writing it failed: No space left on device") return 2;
    memprof::trace_file_status read;
    const memprof::profile of_file = memprof::profile_of(file, read);
    if (of_file.exact || read.damage.find("No space left on device") == std::string::npos) return 3;
    return of_file.space("dram").allocation_count > 10'000 ? 0 : 4;
  });
  if (status == not_permitted) SKIP("the system does not let us mount a tmpfs");
  CHECK(status == 0);
}

TEST_CASE("trace file: a disk without room for its live area gets none") {
  const int status = run_on_small_disk("4m", [](const memprof_tests::scratch_folder& folder) {
    const std::string file = folder.file("run.memtrace");
    auto capture = memprof::begin_capture({.trace_file = file});
    memprof::extend::event_sink{}.allocate(memprof::memory_space{"dram"}, &file, 1);
    capture.end();
    const memprof::profile profile = capture.profile();
    if (!profile.exact || said_of(profile) != "No space left on device") return 1;
    return std::filesystem::exists(file) ? 2 : 0;
  });
  if (status == not_permitted) SKIP("the system does not let us mount a tmpfs");
  CHECK(status == 0);
}

}  // namespace memprof_tests::integration_trace_file_full_disk
