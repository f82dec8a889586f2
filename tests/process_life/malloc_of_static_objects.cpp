// The hook of `malloc` in a capture that a static constructor begins: blocks from before it are not recorded, and their free is
// told; what constructors, `main`, `atexit` and destructors allocate after it is there until the last destructor looks.
// expected: total 123456, 7 blocks, at the end 100000, 1 unmatched free, exact
// expected: its file says the same
#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

void* volatile from_before = nullptr;
void* volatile held = nullptr;
[[gnu::constructor(101)]] void allocate_before_all() { from_before = std::malloc(7); }

void pass(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
}

struct capture_of_the_process {
  capture_of_the_process() {
    file = (std::filesystem::temp_directory_path() / ("memprof_static_" + std::to_string(getpid()) + ".memtrace")).string();
    memprof::begin_capture({.ring_capacity = 8, .trace_file = file}).release();
  }
  ~capture_of_the_process() {
    held = std::malloc(100'000);
    memprof::end_capture();
    const memprof::profile profile = memprof::current_profile();
    const memprof::space_profile& cpu = profile.space("cpu");
    std::printf("total %lld, %lld blocks, at the end %lld, %lld unmatched free, %s\n", static_cast<long long>(cpu.allocations),
                static_cast<long long>(cpu.allocation_count), static_cast<long long>(cpu.cumulative_current),
                static_cast<long long>(cpu.anomalies.unmatched_frees.count), profile.exact ? "exact" : "not exact");
    memprof::profile read = memprof::profile_of(file);
    read.cost = profile.cost;
    std::puts(read == profile ? "its file says the same" : "its file says something else");
    std::filesystem::remove(file);
  }
  std::string file;
};
const capture_of_the_process whole_process;

struct static_object {
  static_object() { pass(6); }
  ~static_object() { pass(400); }
};
const static_object constructed_second;

}  // namespace

int main() {
  pass(50);
  std::free(from_before);
  std::atexit([] { pass(3000); });
  void* volatile grown = std::realloc(nullptr, 10'000);
  grown = std::realloc(grown, 10'000);
  std::free(grown);
}
