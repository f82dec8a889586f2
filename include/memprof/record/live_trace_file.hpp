#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/live_area.hpp>
#include <memprof/record/live_trace.hpp>
#include <memprof/record/open_trace_file.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/own_file.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/record/trace_generation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

/// @file
/// The file of a `live_trace`: how it is made, continued by gaps and generations, written by its thread, and completed.

namespace memprof::inline MEMPROF_ABI::detail {

[[gnu::noinline]] inline bool live_trace::open(const std::string& pattern, const capture_options& options,
                                               const process_info& process) {
  waits_ = options.on_slow_disk == slow_disk::wait;
  has_thread_ = options.trace_thread;
  const std::string path = expand_trace_path(pattern, process);
  message_.set_path(path);
  const opened_trace_file opened = open_trace_file(path);
  file_ = own_file::of(opened.file);
  is_new_ = opened.is_new;
  if (opened.problem.empty()) return true;
  refuse(opened.problem);
  return false;
}

[[gnu::noinline]] inline bool live_trace::start(const capture_options& options, std::uint32_t capture) {
  const std::string reason = start_writing(options, capture);
  if (reason.empty()) return true;
  refuse(reason);
  return false;
}

inline void live_trace::give_up() noexcept {
  state_ = state::none;
  release();
  if (is_new_) (void)::unlink(message_.path());
  close_file();
}

template <class Names, class Positions>
[[gnu::noinline]] void live_trace::begin_generation(const Names& names, std::uint64_t events,
                                                    const page_array<unsigned char>& saved,
                                                    Positions&& write_positions) noexcept {
  if (buffers_.used() != 0) next_chunk();
  trace_generation* const next = state_ == state::recording ? trace_generation::make() : nullptr;
  if (next == nullptr) return;
  next->first_chunk = buffers_.number();
  trace moment;
  const event gap{0, 0, events, 0, event_kind::gap, any_space, 0};
  moment.events(&gap, &gap + 1, no_ring_id);
  write_positions(moment);
  moment.saved_state(saved);
  if (moment.left_out() != 0 || !definitions_->write(*next, names, last_name_) || !next->add(moment)) return next->destroy();
  // At least as long as its beginning, so that starting generations stays cheap.
  generation_bytes_ = std::max<std::uint64_t>(limit_ / 2, next->beginning.size());
  // Plus what one drain may add.
  next->expected_bytes = generation_bytes_ + generation_bytes_ / 4 + live_layout::buffer_bytes;
  closed_bytes_ = 0;
  writer_.begin_generation(next);
}

[[gnu::noinline]] inline void live_trace::close(event_ring* rings) noexcept {
  if (state_ == state::recording && buffers_.used() != 0) buffers_.close();
  if (is_unfinished_) state_ = state::closed;
  if (is_mapped_) keeps_area_ = !area_.places().detach_all(rings);
  buffers_.end();
}

inline bool live_trace::finish() noexcept {
  if (!is_unfinished_) return false;
  is_unfinished_ = false;
  if (has_thread_) {
    (void)::pthread_join(thread_, nullptr);
  } else {
    write_here();
  }
  int error = buffers_.error();
  if (error == 0) {
    error = writer_.complete(keeps_area_);
    if (error != 0) fail(error);
  }
  if (error != 0) {
    count_unwritten();
    writer_.stop(error);
  }
  struct stat status {};
  if (file_.is_there() && ::fstat(file_.number, &status) == 0 && status.st_nlink == 0) {
    is_deleted_ = true;
    message_.say("memprof: trace file '%s': %s\n", deleted);
  }
  return true;
}

inline void live_trace::settle() noexcept {
  if (is_deleted_) std::snprintf(problem_, sizeof problem_, "%s", deleted);
  release();
}

inline std::string live_trace::problem() const {
  if (problem_[0] != '\0') return problem_;
  if (const int error = buffers_.error()) return std::string{"writing it failed: "} + text_of(error);
  if (missing_ != 0) return "its disk was too slow";
  if (!is_unmapped_) return {};
  return std::string{"it cannot be mapped "} +
         (area_.is_limited() ? "within the limit on the size of files (ulimit -f)" : "on its file system") +
         ": if the process is killed, the last second will be missing";
}

inline std::size_t live_trace::bytes() const noexcept {
  return encoder_ == nullptr ? 0
                             : sizeof(trace_encoder) + area_.own_bytes() +
                                   (definitions_ == nullptr ? 0 : sizeof(generation_definitions) + definitions_->bytes());
}

inline void live_trace::refuse(const std::string& reason) noexcept {
  std::snprintf(problem_, sizeof problem_, "%s", reason.c_str());
  message_.say("memprof: no trace file '%s': %s; the capture goes on without one\n", problem_);
}

inline std::string live_trace::start_writing(const capture_options& options, std::uint32_t capture) {
  // Generations replace each other, after the area.
  const bool wants_room_before = options.trace_limit == 0;
  const int unmade = area_.make(file_.number, options.ring_capacity, capture, buffers_.wake_word(), wants_room_before);
  if (unmade != 0) return text_of(unmade);
  is_mapped_ = area_.is_mapped();
  is_unmapped_ = !is_mapped_;
  void* const encoder_pages = map_pages(sizeof(trace_encoder));
  if (encoder_pages != nullptr) encoder_ = new (encoder_pages) trace_encoder;
  if (options.trace_limit != 0) {
    void* const definition_pages = map_pages(sizeof(generation_definitions));
    if (definition_pages != nullptr) definitions_ = new (definition_pages) generation_definitions;
    limit_ = options.trace_limit;
    generation_bytes_ = limit_ / 2;
  }
  if (encoder_ == nullptr || (limit_ != 0 && definitions_ == nullptr)) {
    return "the system has no memory for it";
  }
  buffers_.use(area_.buffers(), area_.buffer_states());
  if (const int error = writer_.start(file_, area_.position()); error != 0) return text_of(error);
  state_ = state::recording;
  open_chunk();
  if (has_thread_ && !start_thread()) return "the system cannot start a thread for it";
  is_unfinished_ = true;
  return {};
}

inline bool live_trace::start_thread() noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // The thread takes no signals of the program's.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool is_started = ::pthread_create(&thread_, nullptr, run, this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started;
}

inline void live_trace::open_chunk() noexcept {
  if (buffers_.error() != 0) return stop();
  if (buffers_.open() || (waits_ && buffers_.wait_for_free(1) && buffers_.open())) return encoder_->restart();
  if (buffers_.error() != 0) return stop();
  state_ = state::gapped;
  if (missing_ == 0) {
    message_.say("memprof: trace file '%s': %s; the capture's own numbers stay exact\n",
                 "its disk is too slow, so events are left out");
  }
  missing_at_gap_ = missing_;
}

inline bool live_trace::end_gap() noexcept {
  state_ = state::recording;
  open_chunk();
  if (state_ != state::recording) return false;
  const std::uint64_t left_out = missing_ - missing_at_gap_;
  const event gap{0, 0, left_out == 0 ? 1 : left_out, 0, event_kind::gap, any_space, 0};
  events(&gap, &gap + 1, no_ring_id);
  return true;
}

inline void* live_trace::run(void* self) {
  const activity_guard hidden{activity::internal};
#if defined(__linux__)
  ::prctl(PR_SET_NAME, "memprof trace", 0, 0, 0);
#endif
  static_cast<live_trace*>(self)->write_until_end();
  return nullptr;
}

inline void live_trace::write_until_end() noexcept {
  for (;;) {
    const std::uint32_t seen = buffers_.wake_word().load(std::memory_order_acquire);
    if (is_mapped_) writer_.reserve_places(area_.places());
    const bool is_last = buffers_.has_ended();
    if (const int error = writer_.write_chunks(buffers_); error != 0) return fail(error);
    if (is_last) return;
    buffers_.wake_word().wait(seen, std::memory_order_acquire);
  }
}

[[gnu::noinline]] inline void live_trace::write_here() noexcept {
  const errno_guard kept;
  // The program may have closed the file, as daemons do with every descriptor.
  if (!file_.is_there() && file_.reopen(message_.path())) writer_.use(file_);
  const int error = buffers_.error() != 0 ? 0 : writer_.write_chunks(buffers_);
  if (error != 0) fail(error);
}

inline void live_trace::fail(int error) noexcept {
  if (buffers_.fail(error)) {
    message_.say("memprof: trace file '%s' ends here: %s; the capture goes on without it\n", text_of(error));
  }
}

inline void live_trace::release() noexcept {
  area_.release();
  unmap_pages(encoder_, sizeof(trace_encoder));
  if (definitions_ != nullptr) {
    definitions_->~generation_definitions();
    unmap_pages(definitions_, sizeof(generation_definitions));
  }
  is_mapped_ = false;
  encoder_ = nullptr;
  definitions_ = nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
