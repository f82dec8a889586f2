#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/profile/folded_head.hpp>
#include <memprof/record/backend_guard.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/capture_calls.hpp>
#include <memprof/record/capture_drain.hpp>
#include <memprof/record/capture_stacks.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/record/container_limit.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/find_run_listener.hpp>
#include <memprof/record/growth_watch.hpp>
#include <memprof/record/last_capture.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/no_dispatch_fault.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/process_life.hpp>
#include <memprof/record/process_memory.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/record/start_recording.hpp>
#include <memprof/record/this_process.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/run_mode.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

/// @file
/// How a capture begins: the part of the control path behind `begin_capture`.

namespace memprof::inline MEMPROF_ABI::detail {

inline void check(const capture_options& options) {
  const auto refuse = [](const char* field, std::uint32_t value, const char* allowed) {
    raise("begin_capture: capture_options::" + std::string{field} + " is " + std::to_string(value) + "; use " + allowed);
  };
  if (options.ring_capacity < 2 || options.ring_capacity > (1U << 24)) {
    refuse("ring_capacity", options.ring_capacity, "2 to 16777216 events (the default is 1024)");
  }
  if (options.timeline_points < 2) refuse("timeline_points", options.timeline_points, "2 or more (the default is 4096)");
  if (options.largest_blocks > max_largest_blocks)
    refuse("largest_blocks", options.largest_blocks, "0 to 4096 (the default is 10)");
  if (options.full_segments < 4 || options.full_segments > segment_history::max_kept) {
    refuse("full_segments", options.full_segments, "4 to 65536 (the default is 64)");
  }
  if (options.segment_names < 1 || options.segment_names > segment_history::max_kept) {
    refuse("segment_names", options.segment_names, "1 to 65536 (the default is 64)");
  }
  if (options.operations < 1) refuse("operations", options.operations, "1 or more (the default is 4096)");
  if (options.trace != nullptr && !options.trace->empty()) {
    raise("begin_capture: capture_options::trace holds a trace already; give each capture one of its own");
  }
  if (options.trace_limit != 0 && options.trace_limit < least_trace_limit) {
    raise("begin_capture: capture_options::trace_limit is " + std::to_string(options.trace_limit) +
          "; use 65536 bytes or more, or 0 for no limit (the default)");
  }
  for (const device_space& space : options.device.spaces) {
    if (space.capacity >= 0) continue;
    raise("begin_capture: the capacity of '" + std::string{space.name.view()} + "' of device '" +
          std::string{options.device.name.view()} + "' is " + std::to_string(space.capacity) + "; use bytes, or 0 for no limit");
  }
}

/// Creates the memory spaces that the device limits. Throws `memprof::error` if the process has too many.
inline void make_limited_spaces(registry& shared, const device_description& device) {
  for (std::size_t index = 0; index < device.space_count; ++index) {
    const device_space& space = device.spaces[index];
    if (space.capacity != 0 && id_of_space(shared, space.name.view()) == any_space) raise_too_many_spaces(space.name.view());
  }
}

/// Creates the trace file of a new capture. Without the registry's lock, because the file system may hang.
inline void open_file(registry& shared, live_trace& file, const capture_options& options, const process_info& process,
                      std::uint32_t capture) {
  {
    const internal_guard hidden;
    const bool is_watched = watcher != nullptr && options.trace_file.empty();
    const std::string pattern = is_watched ? watcher->file_for_capture() : options.trace_file;
    if (pattern.empty() || !file.open(pattern, options, process)) return;
  }
  {
    const registry_guard lock{shared};
    shared.trace_file = file.file();
  }
  {
    const internal_guard hidden;
    if (file.start(options, capture)) return;
  }
  {
    const registry_guard lock{shared};
    shared.trace_file = {};
  }
  const internal_guard hidden;
  file.give_up();
}

/// Throws `memprof::error` if no capture can begin in this process now.
inline void check_is_free(const registry& shared) {
  if (shared.layout_version != registry::current_layout_version) {
    raise("begin_capture: another version of memprof is active in this process (layout " + std::to_string(shared.layout_version) +
          ", this one has " + std::to_string(registry::current_layout_version) + "); build all parts with the same version");
  }
  if (shared.active_capture.load(std::memory_order_relaxed) != 0) {
    raise("begin_capture: a capture is already active in this process; end it first (end_capture, or its guard's end)");
  }
}

/// Prepares the process for a capture. Throws `memprof::error` if none is possible. Under the lock.
inline void prepare_capture(registry& shared, const capture_options& options) {
  if (options.mode == run_mode::no_dispatch && !prepare_no_dispatch(shared)) {
    raise(
        "begin_capture: the system cannot reserve an address range for run_mode::no_dispatch; raise the limit on address space "
        "(`ulimit -v unlimited`), or capture with run_mode::normal");
  }
  (void)detail::intern(shared, "cpu");  // makes the table of names, with the space "cpu" in it
  make_limited_spaces(shared, options.device);
  watch_forks(shared);
  prepare_order(shared);
  if (++shared.capture_count == 0) ++shared.capture_count;
}

struct capture_state_deleter {
  void operator()(capture_state* state) const noexcept {
    state->~capture_state();
    unmap_pages(state, sizeof(capture_state));
  }
};

/// Makes the capture, not yet visible to anyone else. Throws `memprof::error` if the system has no memory for it.
[[nodiscard]] inline std::unique_ptr<capture_state, capture_state_deleter> make_capture(registry& shared,
                                                                                        const capture_options& options) {
  // In its own pages, because `operator new` may be the very thing under observation.
  void* const pages = map_pages(sizeof(capture_state));
  if (pages == nullptr) raise("begin_capture: the system has no memory for the capture");
  const internal_guard hidden;
  std::unique_ptr<capture_state, capture_state_deleter> state{new (pages) capture_state(options, shared)};
  if (watcher != nullptr && state->memory_trace == nullptr) state->memory_trace = watcher->trace_for_capture();
  if (options.trace_limit != 0 && state->memory_trace != nullptr && !limit_trace(*state->memory_trace, options.trace_limit)) {
    raise("begin_capture: the system has no memory to apply capture_options::trace_limit");
  }
  return state;
}

/// The options are a temporary in most programs, whose memory is freed in the capture that they began.
inline void ignore_free_of(registry& shared, const capture_options& options) noexcept {
  profiler_blocks* const own = shared.profiler_blocks.load(std::memory_order_relaxed);
  const auto text = reinterpret_cast<std::uintptr_t>(options.trace_file.data());
  const bool is_in_place = text - reinterpret_cast<std::uintptr_t>(&options.trace_file) < sizeof(std::string);
  if (own != nullptr && !is_in_place) own->add(text);
}

MEMPROF_SEPARABLE std::uint32_t start_capture(const capture_options& options, run_mode mode) {
  {
    const internal_guard hidden;
    check(options);
  }
  registry& shared = abi_1::process_registry;
  if (!may_take_lock(shared, abi_1::this_thread)) {
    raise(
        "begin_capture: this thread is inside another call of memprof: a signal handler interrupted that and calls "
        "begin_capture, or left it by siglongjmp; begin the capture elsewhere");
  }
  pin_module();
  find_run_listener();
  const backend_guard serial{shared};
  {
    const internal_guard hidden;
    if (!serial) {
      raise(
          "begin_capture: another call of memprof has not ended: it waits for a backend or the disk, or a signal handler "
          "interrupted it, or left it by siglongjmp");
    }
    check_is_free(shared);  // no other capture can begin meanwhile: that takes the backends' lock
  }
  finish_file(shared);
  capture_backends of_last_capture;  // destroyed after the lock is released
  process_schedule.restart(monotonic_ns());
  process_handlers.restart();
  open_status_guard status;
  const process_reading first_reading = read_process(reading_by::allocating_call);
  prepare_stacks(shared, options.stacks);
  process_info described;
  std::int64_t limit = -1;
  {
    const internal_guard hidden;
    described = describe_process();
    limit = container_limit();
  }
  std::uint32_t number = 0;
  {
    const internal_control_guard lock{shared};
    prepare_capture(shared, options);
    of_last_capture = forget_capture(shared);
    number = shared.capture_count;
  }
  auto made = make_capture(shared, options);
  open_file(shared, made->file, options, described, number);
  {
    const internal_control_guard lock{shared};
    const process_info process = std::move(described);  // so that no hook sees its memory released, now that they record
    capture_state* const state = made.release();
    shared.capture = state;
    shared.capture_version = part_version;
    shared.places = state->file.places();
    shared.ring_capacity = options.ring_capacity;
    shared.drop_when_full.store(options.overflow_policy == overflow::drop, std::memory_order_relaxed);
    begin_trace(shared, *state, options, mode, process);
    put_incomplete_file(*state);
    state->process.set_container_limit(limit);
    keep_reading(shared, *state, first_reading, this_moment(shared, *state));
    put_process_memory(*state);  // the later ones replace it in its place, which is thus the same in the file as in the profile
    begin_stacks(shared, *state, options.stacks);
    shared.uses.store(options.uses ? 1 : 0, std::memory_order_relaxed);  // seen like `heap_stacks`
    state->record_ns = measure_record_cost(shared);
    shared.dropped_events.store(0, std::memory_order_relaxed);
    shared.reentrant_events.store(0, std::memory_order_relaxed);
    shared.no_dispatch.store(options.mode == run_mode::no_dispatch ? shared.capture_count : 0, std::memory_order_relaxed);
    if (auto* const own = shared.profiler_blocks.load(std::memory_order_relaxed); own != nullptr) own->clear();
    start_recording<no_pauses>(shared);
    connect_capture(shared);
    show_block_to_hooks(shared, *state);
    ignore_free_of(shared, options);
    status.keep();
    // Release pairs with the acquire in `record_segment_end`.
    process_growth_schedule.restart(options.warn_growth_after);
    snapshot_reader.store(options.warn_growth_after != 0 ? read_and_watch_at_snapshot : read_process_at_snapshot,
                          std::memory_order_release);
  }
  settle_heap_before(shared, first_reading);
  return number;
}

MEMPROF_SEPARABLE capture_backends keep_backends(std::uint32_t number, capture_backends backends) noexcept {
  const control_guard control;
  capture_state* const state = state_of_active(number);
  if (state == nullptr) return backends;
  reachable_backends = backends.get();
  state->backends = std::move(backends);
  return {};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
