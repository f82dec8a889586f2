// The library that `memprof run` preloads into a program: it records malloc's family from the program's first call to its last,
// and writes a trace; all else is done by `memprof run` when the program has ended. It exports functions of C alone and has a
// C++ library of its own inside, so that a C program gets none and a C++ program keeps its own. It starts no thread.
//
// What it does is in the environment:
//   RUN_BY_MEMPROF_FOLDER    where the traces go: PROCESS.NUMBER.memtrace, a new number after each exec in place
//   RUN_BY_MEMPROF_PROCESS   the process to record
//   RUN_BY_MEMPROF_STACKS    "sampled" or "all": the blocks that get a stack
//   RUN_BY_MEMPROF_CHILDREN  if it is there, all processes are recorded
//   RUN_BY_MEMPROF_MMAP      if it is there, the program's anonymous mappings are recorded, too
//   CUDA_INJECTION64_PATH    if it is this library, what the program takes from CUDA is recorded, too: the driver calls
//                            `InitializeInjection` when the program initialises it
//   NVTX_INJECTION64_PATH    the same for NVTX's ranges, with `InitializeInjectionNvtx2`
// The names do not begin with MEMPROF_, as a session in the program would complain of variables that it does not know.
#include "mapped_memory.hpp"
#include "next_heap.hpp"
#include "next_map.hpp"
#include "own_allocators.hpp"
#include "program_operations.hpp"
#include "start.hpp"
#include "unmap_watch.hpp"
#include "unseen.hpp"
#include "unseen_python.hpp"

#include <run_socket.hpp>

#include <memprof/backend/cuda.hpp>
#include <memprof/backend/malloc_family.hpp>
#include <memprof/backend/nvtx/nvtx_injection.hpp>
#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/backend/nvtx/nvtx_memory.hpp>
#include <memprof/backend/nvtx/nvtx_ranges.hpp>
#include <memprof/detail/errno_guard.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/record/capture.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/keep_trace_only.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/record/session_files.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

extern "C" {
extern char** environ;
int __cxa_atexit(void (*)(void*), void*, void*) noexcept;
}

namespace memprof_preload {
namespace {

[[nodiscard]] const char* own_path() noexcept {
  Dl_info own{};
  return ::dladdr(&own_place, &own) != 0 && own.dli_fname != nullptr ? own.dli_fname : "";
}

constexpr char cuda_variable[] = "CUDA_INJECTION64_PATH";
constexpr char nvtx_variable[] = "NVTX_INJECTION64_PATH";

/// Whether CUDA's driver, or NVTX, is to load this library.
[[nodiscard]] bool is_named_by(const char* variable) noexcept {
  const char* const injected = std::getenv(variable);
  return injected != nullptr && std::strcmp(injected, own_path()) == 0;
}

/// Removes this library from LD_PRELOAD, in place and without `malloc`, so that programs which this one starts do not get it, and
/// from the variables of CUDA's driver and NVTX.
void leave_environment() noexcept {
  const char* const path = own_path();
  const std::size_t length = std::strlen(path);
  for (const char* const variable : {cuda_variable, nvtx_variable}) {
    if (is_named_by(variable)) ::unsetenv(variable);
  }
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

[[nodiscard]] memprof::stack_capture asked_stacks() noexcept {
  const char* const asked = std::getenv("RUN_BY_MEMPROF_STACKS");
  if (asked == nullptr) return memprof::stack_capture::off;
  return std::strcmp(asked, "all") == 0 ? memprof::stack_capture::all : memprof::stack_capture::sampled;
}

/// The table of what is not captured, which outlives the program's last call.
[[nodiscard]] std::vector<memprof::missing_source>& missing_sources() {
  static auto* const rows = new std::vector<memprof::missing_source>;
  return *rows;
}

/// Adds to the table of what is not captured, unless it has that source. Throws `std::bad_alloc`.
void report_missing(std::string_view source, std::string why_not) {
  std::vector<memprof::missing_source>& rows = missing_sources();
  if (std::any_of(rows.begin(), rows.end(), [&](const memprof::missing_source& row) { return row.source == source; })) return;
  rows.push_back({std::string{source}, std::move(why_not)});
  memprof::extend::event_sink{}.add_facts(memprof::extend::to_table(rows));
}

/// Null unless mappings are recorded. It outlives the program's last call.
constinit mapped_memory* mappings = nullptr;

/// Null where mappings are recorded. It outlives the program's last call.
constinit const unmap_watch* unmaps = nullptr;

/// Whether the program's options have a Python interpreter ignore its variables.
constinit bool is_environment_ignored = false;

/// Null where this process is not recorded. It outlives the program's last call.
constinit program_operations* operations = nullptr;

/// Adds the small objects of a Python interpreter, unless `malloc` or the pages that it maps have them. Throws `std::bad_alloc`.
void report_python() {
  if (mappings != nullptr) return;
  const python_objects found = find_python_objects(is_environment_ignored);
  if (found == python_objects::in_arenas)
    report_missing("Python's small objects", "they are in memory from mmap; with PYTHONMALLOC=malloc they are recorded");
  if (found == python_objects::in_arenas_whatever_is_asked) {
    report_missing("Python's small objects",
                   "they are in memory from mmap, which --mmap records: Python ignored PYTHONMALLOC (-E or -I)");
  }
}

/// Adds allocators that the program calls by other names than `malloc`. Throws `std::bad_alloc`.
void report_own_allocators(bool is_first) {
  if (is_first && mappings == nullptr && is_called()) {
    find_linked_allocators([](const char* function) {
      report_missing(function, "it is an allocator of the program's own, linked into it; --mmap records the pages that it maps");
    });
  }
  find_exported_allocators([](const char* function, std::string_view library, bool is_recorded_heap) {
    if (mappings != nullptr && !is_recorded_heap) return;
    const std::string owner = library.empty() ? "the program" : std::string{library};
    report_missing(function, "that of " + owner + " does not call malloc" +
                                 (is_recorded_heap ? "" : "; --mmap records the pages that it maps"));
  });
}

/// Adds the libraries that call another `malloc` than this library's. Throws `std::bad_alloc`.
void report_bypassing_libraries() {
  std::array<bypassing_library, 16> found{};
  const std::size_t count = find_bypassing_libraries(found);
  for (const bypassing_library& library : std::span{found}.first(count)) {
    report_missing(file_name_of(library.path), "it was opened with RTLD_DEEPBIND, by which it calls the malloc of " +
                                                   std::string{file_name_of(library.called)});
  }
}

/// Adds what the program allocates past this library, as far as its libraries have been loaded. Throws `std::bad_alloc`.
void report_other_heaps(bool is_first) {
  report_python();
  report_own_allocators(is_first);
  if (!is_called()) return report_missing("malloc", "the program has a malloc of its own, linked into it");
  if (const std::string library = library_with_operator_new(); !library.empty())
    report_missing("operator new", "that of " + library + " does not call malloc");
  report_bypassing_libraries();
}

/// Tells `memprof run` that this process has no trace.
void say_unrecorded(const char* folder) noexcept {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const timeval longest{1, 0};  // should nobody listen
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  const memprof_tool::run_socket_address address{folder};
  (void)::sendto(socket, "", 1, MSG_NOSIGNAL, address.get(), address.bytes);
  ::close(socket);
}

/// Begins the capture of this process; the first one of this program, or that of a child.
void begin(bool is_first) noexcept {
  const memprof::detail::errno_guard kept;
  const memprof::detail::recording_suppressor hidden;
  const char* const folder = std::getenv("RUN_BY_MEMPROF_FOLDER");
  if (folder == nullptr) return;
  try {
    const std::string stem = std::string{folder} + "/" + std::to_string(::getpid()) + ".";
    int number = 1;
    while (::access((stem + std::to_string(number) + ".memtrace").c_str(), F_OK) == 0) ++number;
    memprof::capture_options options;
    const std::string file = stem + std::to_string(number) + ".memtrace";
    options.trace_file = memprof::detail::literal_trace_path(file);
    options.trace_thread = false;
    options.stacks = asked_stacks();
    options.on_slow_disk = memprof::slow_disk::wait;
    memprof::begin_capture(options).release();
    memprof::detail::keep_trace_only();
    if (is_named_by(nvtx_variable)) memprof::detail::nvtx::are_ranges_recorded.store(true, std::memory_order_relaxed);
    if (is_first && std::getenv("RUN_BY_MEMPROF_MMAP") != nullptr) mappings = new mapped_memory;
    if (is_first && mappings == nullptr) unmaps = new unmap_watch;
    if (!is_first && mappings != nullptr) mappings->begin_in_child();
    if (!is_first && operations != nullptr) operations->begin_in_child();
    if (is_first) {
      operations = new program_operations;
    }
    if (::access(file.c_str(), F_OK) != 0) say_unrecorded(folder);
    if (is_first) return report_other_heaps(true);
    if (!missing_sources().empty()) memprof::extend::event_sink{}.add_facts(memprof::extend::to_table(missing_sources()));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "memprof run: %s\n", failure.what());
  }
}

constinit bool has_cuda = false;  ///< the program has initialised it

/// The driver is about to end, after which it must not be asked.
void finish_cuda(void*) noexcept {
  const memprof::detail::errno_guard kept;
  const memprof::detail::recording_suppressor hidden;
  memprof::detail::cuda::read_devices(memprof::detail::end_segment_name);
  memprof::detail::cuda::end_listening();
  try {
    memprof::extend::event_sink writer;
    memprof::detail::cuda::process_listener().readings.report(writer);
  } catch (const std::bad_alloc&) {
    memprof::extend::event_sink{}.count_dropped_event();
  }
}

/// The driver has been initialised, on a thread of the program.
void begin_cuda() noexcept {
  const memprof::detail::errno_guard kept;
  const memprof::detail::recording_suppressor hidden;
  if (memprof::detail::active_capture() == 0 || std::exchange(has_cuda, true)) return;
  try {
    std::string why_not = memprof::detail::cuda::begin_listening();
    if (!why_not.empty()) return report_missing("CUDA", std::move(why_not));
    __cxa_atexit(finish_cuda, nullptr, nullptr);  // registered after the driver's own, so it runs before
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "memprof run: %s\n", failure.what());
  }
}

constinit bool is_finishing = false;  ///< every library's destructors have run

void finish(void*) noexcept {
  is_finishing = true;
  if (memprof::detail::active_capture() == 0) return;
  try {
    const memprof::detail::recording_suppressor hidden;
    report_other_heaps(false);
    if (!operations->is_listening() && uses_memprof())
      report_missing("operations and segments", "the program records them by another version of memprof, in its own capture");
    if (is_named_by(cuda_variable) && !has_cuda) report_missing("CUDA", "the program did not initialise it");
  } catch (const std::bad_alloc&) {
    memprof::extend::event_sink{}.count_dropped_event();
  }
  memprof::end_capture();
}

/// A part of the program has begun a capture of its own, and can tell of its operations at `place`.
void listen(std::uint32_t layout, program_operations::listener_place* place) noexcept {
  if (operations == nullptr) return;
  if (layout == memprof::registry::current_layout_version) return operations->listen(*place);
  try {
    const memprof::detail::recording_suppressor hidden;
    report_missing("operations and segments", "the program records them by another version of memprof, in its own capture");
  } catch (const std::bad_alloc&) {
    memprof::extend::event_sink{}.count_dropped_event();
  }
}

/// In the child of a `fork` that is to be recorded. The library's own handler, registered before, has ended the parent's capture.
void begin_in_child() noexcept { begin(false); }

}  // namespace

void start(int count, char** words, char** environment) noexcept {
  is_environment_ignored = ignores_environment(count, words);
  if (environ == nullptr) environ = environment;  // the C library has not set it yet
  next_map::find();
  const char* const process = std::getenv("RUN_BY_MEMPROF_PROCESS");
  if (process == nullptr) return;
  const bool records_children = std::getenv("RUN_BY_MEMPROF_CHILDREN") != nullptr;
  if (!records_children && std::strtol(process, nullptr, 10) != ::getpid()) return leave_environment();
  begin(true);
  if (records_children) ::pthread_atfork(nullptr, nullptr, begin_in_child);
  // Of no library, and registered before all others, so that it runs after every destructor.
  __cxa_atexit(finish, nullptr, nullptr);
}

using family = memprof::detail::malloc_family<next_heap>;

void* map(void* address, std::size_t bytes, int protection, int flags, int file, ::off_t offset, const void* caller) noexcept {
  if (mappings == nullptr) return next_map::map(address, bytes, protection, flags, file, offset);
  return mappings->map(address, bytes, protection, flags, file, offset, caller);
}

int unmap(void* address, std::size_t bytes, const void* caller) noexcept {
  if (mappings != nullptr) return mappings->unmap(address, bytes, caller);
  if (unmaps != nullptr) unmaps->before_unmap(bytes, caller);
  return next_map::unmap(address, bytes);
}

void* remap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted, const void* caller) noexcept {
  if (mappings == nullptr) return next_map::remap(address, old_bytes, bytes, flags, wanted);
  return mappings->remap(address, old_bytes, bytes, flags, wanted, caller);
}

}  // namespace memprof_preload

// The end of a capture looks into the loaded libraries, and `dlopen` would run the constructors again of those that have been
// finalised: libgomp's abort then. The linker has this library's calls of `dlopen` come here.
extern "C" void* __real_dlopen(const char* path, int mode) noexcept;   // NOLINT(bugprone-reserved-identifier)
extern "C" void* __wrap_dlopen(const char* path, int mode) noexcept {  // NOLINT(bugprone-reserved-identifier)
  return memprof_preload::is_finishing ? nullptr : __real_dlopen(path, mode);
}

// Called by `find_run_listener` in the parts of the program that use memprof.
extern "C" [[gnu::visibility("default")]] void memprof_run_listen(  // NOLINT(readability-identifier-naming)
    std::uint32_t layout, memprof_preload::program_operations::listener_place* place) noexcept {
  memprof_preload::listen(layout, place);
}

// Called by CUDA's driver in the library that CUDA_INJECTION64_PATH names.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {  // NOLINT(readability-identifier-naming)
  memprof_preload::begin_cuda();
  return 1;
}

// Called by NVTX in the library that NVTX_INJECTION64_PATH names, once in each module that has NVTX's functions.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(  // NOLINT(readability-identifier-naming)
    memprof::detail::nvtx::get_export_table tables) {
  return memprof::detail::nvtx::initialize(tables);
}
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(  // NOLINT(readability-identifier-naming)
    memprof::detail::nvtx::extension_module* module) {
  return memprof::detail::nvtx::initialize_extension(module);
}

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

PRELOAD_FUNCTION void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, ::off_t offset) noexcept {
  return memprof_preload::map(address, bytes, protection, flags, file, offset, __builtin_return_address(0));
}
PRELOAD_FUNCTION void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file, ::off64_t offset) noexcept {
  return memprof_preload::map(address, bytes, protection, flags, file, offset, __builtin_return_address(0));
}
PRELOAD_FUNCTION int munmap(void* address, std::size_t bytes) noexcept {
  return memprof_preload::unmap(address, bytes, __builtin_return_address(0));
}
PRELOAD_FUNCTION void* mremap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  void* wanted = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    std::va_list more;
    va_start(more, flags);
    wanted = va_arg(more, void*);
    va_end(more);
  }
  return memprof_preload::remap(address, old_bytes, bytes, flags, wanted, __builtin_return_address(0));
}
