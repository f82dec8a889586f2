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
#include "copy_watch.hpp"
#include "environment.hpp"
#include "mapped_memory.hpp"
#include "missing_sources.hpp"
#include "next_heap.hpp"
#include "next_map.hpp"
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
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/capture.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/keep_trace_only.hpp>
#include <memprof/record/process_life.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/record/session_files.hpp>
#include <memprof/trace/fact_table.hpp>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept;

namespace memprof_preload {
namespace {

/// Null unless mappings are recorded. It outlives the program's last call.
constinit mapped_memory* mappings = nullptr;

/// Null where mappings are recorded. It outlives the program's last call.
constinit const unmap_watch* unmaps = nullptr;

/// Whether the program's options have a Python interpreter ignore its variables.
constinit bool is_environment_ignored = false;

/// Null where this process is not recorded. It outlives the program's last call.
constinit program_operations* operations = nullptr;

[[nodiscard]] recorded_parts parts() noexcept { return {mappings != nullptr, is_environment_ignored}; }

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
    if (is_first) return report_other_heaps(parts(), true);
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
  if (copies.is_copy() || memprof::detail::active_capture() == 0) return;
  try {
    const memprof::detail::recording_suppressor hidden;
    report_other_heaps(parts(), false);
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

constinit bool records_children = false;

/// In the child of a `fork`. The library's own handler, registered before, has ended the parent's capture.
void begin_in_child() noexcept {
  copies.accept();
  if (records_children) begin(false);
}

}  // namespace

void leave_to_parent() noexcept {
  if (memprof::detail::registry_guard::is_forking(memprof::abi_1::process_registry)) return;  // the fork handlers are to come
  const memprof::detail::errno_guard kept;
  const memprof::detail::signal_guard no_signals;
  memprof::detail::leave_capture_to_parent();
  if (is_finishing) return copies.accept();
  begin_in_child();
}

void start(int count, char** words, char** environment) noexcept {
  is_environment_ignored = ignores_environment(count, words);
  if (environ == nullptr) environ = environment;  // the C library has not set it yet
  next_map::find();
  const char* const process = std::getenv("RUN_BY_MEMPROF_PROCESS");
  if (process == nullptr) return;
  records_children = std::getenv("RUN_BY_MEMPROF_CHILDREN") != nullptr;
  if (!records_children && std::strtol(process, nullptr, 10) != ::getpid()) return leave_environment();
  copies.begin();
  begin(true);
  ::pthread_atfork(nullptr, nullptr, begin_in_child);
  // Of no library, and registered before all others, so that it runs after every destructor.
  __cxa_atexit(finish, nullptr, nullptr);
}

/// Of the program's calls. A copy of the process must not get as far as to record them.
[[gnu::always_inline]] inline bool records_mappings() noexcept { return mappings != nullptr && !copies.is_copy(); }

using family = memprof::detail::malloc_family<next_heap>;

/// The family, once a copy of the process has left its parent's capture.
[[gnu::always_inline]] inline family recorded() noexcept {
  leave_if_copy();
  return {};
}

void* map(void* address, std::size_t bytes, int protection, int flags, int file, ::off_t offset, const void* caller) noexcept {
  if (!records_mappings()) return next_map::map(address, bytes, protection, flags, file, offset);
  return mappings->map(address, bytes, protection, flags, file, offset, caller);
}

int unmap(void* address, std::size_t bytes, const void* caller) noexcept {
  if (records_mappings()) return mappings->unmap(address, bytes, caller);
  if (unmaps != nullptr && !copies.is_copy()) unmaps->before_unmap(bytes, caller);
  return next_map::unmap(address, bytes);
}

void* remap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted, const void* caller) noexcept {
  if (!records_mappings()) return next_map::remap(address, old_bytes, bytes, flags, wanted);
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
using memprof_preload::recorded;

PRELOAD_FUNCTION void* malloc(std::size_t bytes) noexcept { return recorded().allocate(bytes); }
PRELOAD_FUNCTION void* calloc(std::size_t count, std::size_t each) noexcept { return recorded().allocate_zeroed(count, each); }
PRELOAD_FUNCTION void* realloc(void* address, std::size_t bytes) noexcept { return recorded().reallocate(address, bytes); }
PRELOAD_FUNCTION void* reallocarray(void* address, std::size_t count, std::size_t each) noexcept {
  return recorded().reallocate_array(address, count, each);
}
PRELOAD_FUNCTION int posix_memalign(void** address, std::size_t alignment, std::size_t bytes) noexcept {
  return recorded().allocate_aligned(address, alignment, bytes);
}
PRELOAD_FUNCTION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return recorded().allocate_aligned(alignment, bytes);
}
PRELOAD_FUNCTION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return recorded().allocate_aligned(alignment, bytes);
}
PRELOAD_FUNCTION void* valloc(std::size_t bytes) noexcept { return recorded().allocate_on_page(bytes); }
PRELOAD_FUNCTION void* pvalloc(std::size_t bytes) noexcept { return recorded().allocate_pages(bytes); }
PRELOAD_FUNCTION void free(void* address) noexcept { recorded().release(address); }
PRELOAD_FUNCTION void free_sized(void* address, std::size_t) noexcept { recorded().release(address); }
PRELOAD_FUNCTION void free_aligned_sized(void* address, std::size_t, std::size_t) noexcept { recorded().release(address); }

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
