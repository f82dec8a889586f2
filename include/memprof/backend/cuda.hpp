#pragma once

/// @file
/// Captures of programs that call CUDA's runtime or driver themselves: `memprof::begin_capture<memprof::cuda_backend>()`.
///
/// Needs no header and no library of CUDA to build: the driver and CUPTI are loaded when a capture begins. On glibc before 2.34,
/// link with `${CMAKE_DL_LIBS}`. For tensors of libtorch, whose allocator hands out parts of what it takes from CUDA, there is
/// <memprof/backend/torch_cuda.hpp>.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/trace/annotation.hpp>

#include <cstddef>
#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/cuda/calling_library.hpp>
#include <memprof/backend/cuda/cupti_library.hpp>
#include <memprof/backend/cuda/device_readings.hpp>
#include <memprof/backend/cuda/driver_events.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/backend/cuda/driver_questions.hpp>
#include <memprof/backend/cuda/tracker.hpp>
#include <memprof/backend/nvtx/region_receiver.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/trace/fact_table.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail::cuda {

/// What of CUDA a process has; it lives as long, since callbacks may arrive while the process exits.
struct listener {
  cupti_library library;
  driver_events events;
  calling_library asking;
  device_readings readings;
  std::atomic<bool> is_recording{false};
};

[[nodiscard]] inline listener& process_listener() {
  const recording_suppressor hidden;
  static auto* const made = new listener;
  return *made;
}

/// Called by CUPTI on the thread that calls CUDA.
inline void receive(void* user, domain where, std::uint32_t id, const void* data) {
  auto& self = *static_cast<listener*>(user);
  // Relaxed: a call that overlaps the capture's begin or end may belong to it or not.
  if (data != nullptr && self.is_recording.load(std::memory_order_relaxed)) self.events(where, id, data);
}

/// A segment has ended.
inline void read_devices(std::string_view name) noexcept {
  listener& self = process_listener();
  self.readings.segment_ends(name, self.events.pools(), self.events.blocks());
}

[[nodiscard]] inline tracker& process_blocks() noexcept { return process_listener().events.blocks(); }

/// The regions that a program registers by NVTX, if `nvtx_backend` hears of them.
inline constexpr nvtx::region_receiver regions_of_blocks{
    [](std::uint64_t address, std::uint64_t bytes, const std::string* rest) noexcept {
      process_blocks().part_begins(address, bytes, {}, rest);
    },
    [](std::uint64_t address, std::uint64_t bytes) noexcept { process_blocks().part_is_resized(address, bytes); },
    [](std::uint64_t address, const std::string* name) noexcept { process_blocks().part_is_named(address, name); },
    [](std::uint64_t address) noexcept { process_blocks().part_ends(address); },
    [](std::uint64_t address, std::uint64_t bytes) noexcept { process_blocks().parts_end(address, bytes); }};

/// Begins to record. Returns why that failed; empty on success.
[[nodiscard]] inline std::string begin_listening() {
  listener& self = process_listener();
  self.events.clear({[](void* context, std::uint32_t* device) { return process_listener().library.device_of(context, device); },
                     [](void* context, std::uint32_t* found) { return process_listener().library.number_of(context, found); },
                     [](std::size_t bytes) { return process_listener().asking.find(bytes); }});
  self.is_recording.store(true, std::memory_order_relaxed);
  std::string why_not;
  {
    const internal_guard hidden;  // what CUPTI allocates meanwhile, it frees at any time
    self.asking.prepare();
    why_not = self.library.subscribe(receive, &self);
  }
  if (!why_not.empty()) return why_not;
  driver_questions driver;
  driver.find(self.library);
  self.readings.begin(driver, self.events.pools(), self.events.blocks());
  // Release pairs with the acquire in `record_segment_end`, and in `with_receiver`.
  segment_listener.store(read_devices, std::memory_order_release);
  nvtx::process_region_receiver.store(&regions_of_blocks, std::memory_order_release);
  return {};
}

inline void end_listening() noexcept {
  listener& self = process_listener();
  nvtx::process_region_receiver.store(nullptr, std::memory_order_relaxed);
  // Null if that failed to begin.
  if (segment_listener.exchange(nullptr, std::memory_order_relaxed) != nullptr)
    self.readings.end(self.events.pools(), self.events.blocks());
  self.is_recording.store(false, std::memory_order_relaxed);
  self.library.unsubscribe();
}

/// Once in a process, however many captures it makes.
[[gnu::cold, gnu::noinline]] inline void say_not_captured(const std::string& why_not) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (is_said.exchange(true, std::memory_order_relaxed)) return;
  std::fprintf(stderr, "memprof: CUDA is not captured: %s\n", why_not.c_str());
}

}  // namespace detail::cuda

inline namespace enabled {

/// Counts what the process takes from CUDA, in every thread and library, linked statically or not: by `cudaMalloc`, pitched,
/// array, managed and pinned host allocations, the stream-ordered allocator and its pools, and `cuMemCreate`. The spaces are
/// "cuda:0" and so on, "cuda:0 managed", and "pinned". Blocks of the stream-ordered allocator count by stream and pool
/// (`space_profile::streams`); freed on a stream, they stay active until the host has waited for it, or the driver gives their
/// memory out again (`space_profile::active`).
///
/// At snapshots it asks the driver for the high-water marks of the pools, which it resets (the table `cuda_pools` of the facts),
/// and, for at most a thousandth of the run's time, for what of each device is in use (`cuda_devices`).
///
/// By CUPTI's callbacks, of which a process has one receiver: if a profiler or debugger of NVIDIA's is there, if CUPTI is not, or
/// no CUDA, the capture goes on without CUDA, and says why once on stderr and in the table of missing sources
/// (`missing_source`). Not seen: what the driver takes for itself (contexts, modules, local memory), memory of graphs'
/// allocation nodes, and what other processes share.
///
/// A block that a library asks for outside every operation is that library's: an operation of its file's name, "libcublas.so.13".
/// A library that is linked statically is the program itself. Where libunwind is not installed, only for blocks from 64 KiB on.
///
/// Blocks from before the capture are not in it, and freeing them counts as an unmatched free. Attach at a quiet point, when no
/// other thread calls CUDA. Cost: a callback at the begin and end of each of these calls, and an event.
class cuda_backend {
 public:
  static constexpr std::string_view name = "cuda";

  void attach(extend::event_sink&, const capture_options&) {
    why_not_ = detail::cuda::begin_listening();
    if (!why_not_.empty()) detail::cuda::say_not_captured(why_not_);
  }
  void detach(extend::event_sink&) noexcept { detail::cuda::end_listening(); }

  void report_facts(extend::event_sink& writer) const {
    if (!why_not_.empty()) return writer.add_facts(extend::to_table<missing_source>({{"CUDA", why_not_}}));
    detail::cuda::process_listener().readings.report(writer);
  }

 private:
  std::string why_not_;  ///< empty: CUDA is captured
};

/// Says, in its scope, how the program divides the next block that this thread gets from CUDA, such as a buffer for all
/// activations: its `parts`, in the order of their offsets, and what lies between them are recorded as a block each, until the
/// block is freed (`event_sink::allocate_parts`). They are on no stream, and not pending when the block is freed on one. The
/// parts must outlive the scope. Not for memory of `cuMemCreate`.
///
/// @code
/// const memprof::block_part parts[] = {{0, bytes_of_encoded, {.name = "encoded", .category = memprof::category::activation}}};
/// const memprof::cuda_block_parts divided{parts};
/// cudaMalloc(&activations, bytes);
/// @endcode
///
/// Costs two events for each part, and a pass over the live blocks of the space when the block is freed.
class [[nodiscard]] cuda_block_parts {
 public:
  template <class Parts>
  explicit cuda_block_parts(const Parts& parts) noexcept {
    detail::cuda::parts_of_next_block = {std::data(parts), std::size(parts)};
  }
  cuda_block_parts(const cuda_block_parts&) = delete;
  cuda_block_parts& operator=(const cuda_block_parts&) = delete;
  ~cuda_block_parts() { detail::cuda::parts_of_next_block = {}; }
};

/// Says that the program uses [address, address + bytes) of a block that it got from CUDA in this capture for something of its
/// own, as its own allocator does, until `end_cuda_part` or the end of the block: it is recorded as a block, and so is what is
/// left between such parts, as the "rest of the block". A part outside CUDA's blocks, over another one, or in a block with
/// `cuda_block_parts` does not count. Parts are on no stream, and not pending when their block is freed on one. Costs some
/// hundred nanoseconds, up to six events, and for the first part of a block a pass over all blocks; a change of the rest counts
/// as a free and an allocation.
inline void begin_cuda_part(const void* address, std::size_t bytes, const annotation& description = {}) noexcept {
  if (detail::cuda::process_listener().is_recording.load(std::memory_order_relaxed))
    detail::cuda::process_blocks().part_begins(reinterpret_cast<std::uintptr_t>(address), bytes, description, nullptr);
}
/// Ends the part that begins at `address`, if there is one.
inline void end_cuda_part(const void* address) noexcept {
  if (detail::cuda::process_listener().is_recording.load(std::memory_order_relaxed))
    detail::cuda::process_blocks().part_ends(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace enabled
#else
inline namespace disabled {

inline void begin_cuda_part(const void*, std::size_t, const annotation& = {}) noexcept {}
inline void end_cuda_part(const void*) noexcept {}

class cuda_backend {
 public:
  static constexpr std::string_view name = "cuda";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

class [[nodiscard]] cuda_block_parts {
 public:
  template <class Parts>
  explicit cuda_block_parts(const Parts&) noexcept {}
  ~cuda_block_parts() {}
};

}  // namespace disabled
#endif

static_assert(extend::backend<cuda_backend>);

}  // namespace memprof::inline MEMPROF_ABI
