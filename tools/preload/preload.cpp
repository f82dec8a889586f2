// The library that `memprof run` preloads into a program: it records malloc's family from the program's first call to its last,
// and writes a trace; all else is done by `memprof run` when the program has ended. It exports the functions of C alone and has a
// C++ library of its own inside, so that a C program gets none and a C++ program keeps its own. It starts no thread.
//
// What it does is in the environment:
//   RUN_BY_MEMPROF_FOLDER    where the traces go: PROCESS.NUMBER.memtrace, a new number after each exec in place
//   RUN_BY_MEMPROF_PROCESS   the process to record
//   RUN_BY_MEMPROF_CHILDREN  if it is there, all processes are recorded
// The names do not begin with MEMPROF_, as a session in the program would complain of variables that it does not know.
#include "next_heap.hpp"
#include "start.hpp"

#include <memprof/backend/malloc_family.hpp>
#include <memprof/detail/errno_guard.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/record/capture.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/session_files.hpp>
#include <memprof/trace/fact_table.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

extern "C" {
extern char** environ;
int __cxa_atexit(void (*)(void*), void*, void*) noexcept;
}

namespace memprof_preload {
namespace {

/// Names an object of this library, by its address.
constinit char own_place = 0;

[[nodiscard]] const char* own_path() noexcept {
  Dl_info own{};
  return ::dladdr(&own_place, &own) != 0 && own.dli_fname != nullptr ? own.dli_fname : "";
}

/// Removes this library from LD_PRELOAD, in place and without `malloc`, so that programs which this one starts do not get it.
void leave_environment() noexcept {
  const char* const path = own_path();
  const std::size_t length = std::strlen(path);
  for (char** each = environ; length != 0 && each != nullptr && *each != nullptr; ++each) {
    if (std::strncmp(*each, "LD_PRELOAD=", 11) != 0) continue;
    char* const found = std::strstr(*each, path);
    if (found == nullptr) return;
    char* end = found + length;
    if (*end == ':' || *end == ' ') ++end;
    std::memmove(found, end, std::strlen(end) + 1);
    return;
  }
}

/// Whether the program's calls of `malloc` come here: an executable with one of its own comes first.
[[nodiscard]] bool is_called() noexcept {
  Dl_info own{};
  Dl_info called{};
  void* const symbol = ::dlsym(RTLD_DEFAULT, "malloc");
  return symbol == nullptr || ::dladdr(&own_place, &own) == 0 || ::dladdr(symbol, &called) == 0 ||
         own.dli_fbase == called.dli_fbase;
}

void begin() noexcept {
  const memprof::detail::errno_guard kept;
  const memprof::detail::recording_suppressor hidden;
  const char* const folder = std::getenv("RUN_BY_MEMPROF_FOLDER");
  if (folder == nullptr) return;
  try {
    const std::string stem = std::string{folder} + "/" + std::to_string(::getpid()) + ".";
    int number = 1;
    while (::access((stem + std::to_string(number) + ".memtrace").c_str(), F_OK) == 0) ++number;
    memprof::capture_options options;
    options.trace_file = memprof::detail::literal_trace_path(stem + std::to_string(number) + ".memtrace");
    options.trace_thread = false;
    options.on_slow_disk = memprof::slow_disk::wait;
    memprof::begin_capture(options).release();
    if (is_called()) return;
    const memprof::missing_source other{"malloc", "the program has a malloc of its own, linked into it"};
    memprof::event_sink{}.add_facts(memprof::to_table(std::vector{other}));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "memprof run: %s\n", failure.what());
  }
}

void finish(void*) noexcept {
  if (memprof::detail::active_capture() != 0) memprof::end_capture();
}

/// In the child of a `fork` that is to be recorded. The library's own handler, registered before, has ended the parent's capture.
void begin_in_child() noexcept { begin(); }

}  // namespace

void start(char** environment) noexcept {
  if (environ == nullptr) environ = environment;  // the C library has not set it yet
  const char* const process = std::getenv("RUN_BY_MEMPROF_PROCESS");
  if (process == nullptr) return;
  const bool records_children = std::getenv("RUN_BY_MEMPROF_CHILDREN") != nullptr;
  if (!records_children && std::strtol(process, nullptr, 10) != ::getpid()) return leave_environment();
  begin();
  if (records_children) ::pthread_atfork(nullptr, nullptr, begin_in_child);
  // Of no library, and registered before all others, so that it runs after every destructor.
  __cxa_atexit(finish, nullptr, nullptr);
}

using family = memprof::detail::malloc_family<next_heap>;

}  // namespace memprof_preload

// The compiler must not see through these: see <memprof/backend/new_delete.hpp>.
#define PRELOAD_FUNCTION extern "C" [[gnu::visibility("default"), gnu::noinline]]
using memprof_preload::family;

PRELOAD_FUNCTION void* malloc(std::size_t bytes) noexcept { return family::allocate(bytes); }
PRELOAD_FUNCTION void* calloc(std::size_t count, std::size_t each) noexcept { return family::allocate_zeroed(count, each); }
PRELOAD_FUNCTION void* realloc(void* address, std::size_t bytes) noexcept { return family::reallocate(address, bytes); }
PRELOAD_FUNCTION void* reallocarray(void* address, std::size_t count, std::size_t each) noexcept {
  return family::reallocate_array(address, count, each);
}
PRELOAD_FUNCTION int posix_memalign(void** address, std::size_t alignment, std::size_t bytes) noexcept {
  return family::allocate_aligned(address, alignment, bytes);
}
PRELOAD_FUNCTION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return family::allocate_aligned(alignment, bytes);
}
PRELOAD_FUNCTION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return family::allocate_aligned(alignment, bytes);
}
PRELOAD_FUNCTION void* valloc(std::size_t bytes) noexcept { return family::allocate_on_page(bytes); }
PRELOAD_FUNCTION void* pvalloc(std::size_t bytes) noexcept { return family::allocate_pages(bytes); }
PRELOAD_FUNCTION void free(void* address) noexcept { family::release(address); }
PRELOAD_FUNCTION void free_sized(void* address, std::size_t) noexcept { family::release(address); }
PRELOAD_FUNCTION void free_aligned_sized(void* address, std::size_t, std::size_t) noexcept { family::release(address); }
