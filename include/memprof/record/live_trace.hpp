#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/chunk_buffers.hpp>
#include <memprof/record/live_area.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/record/open_trace_file.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/own_file.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/record/trace_file_message.hpp>
#include <memprof/record/trace_file_writer.hpp>
#include <memprof/record/trace_generation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/fitted_facts.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// A capture's trace on its way to a file.
///
/// The thread that drains the rings encodes their events into one of a few buffers. A dedicated thread appends full buffers to
/// the file. When all are full, the trace gets a gap or the drain waits; when writing fails, the trace ends. Neither throws, and
/// the capture goes on.
///
/// Used under the registry's lock, except for calls that wait for the file system: `open`, `start`, `give_up`, `wait_for_disk`,
/// `finish`, `close_file`.
class live_trace {
 public:
  live_trace() = default;
  live_trace(const live_trace&) = delete;
  live_trace& operator=(const live_trace&) = delete;

  /// Creates the file named by a pattern like `capture_options::trace_file`. On failure, a line on stderr and `problem` say why.
  [[nodiscard, gnu::noinline]] bool open(const std::string& pattern, const capture_options& options,
                                         const process_info& process) {
    waits_ = options.on_slow_disk == slow_disk::wait;
    const std::string path = expand_trace_path(pattern, process);
    message_.set_path(path);
    const opened_trace_file opened = open_trace_file(path);
    file_ = own_file::of(opened.file);
    is_new_ = opened.is_new;
    if (opened.problem.empty()) return true;
    refuse(opened.problem);
    return false;
  }

  /// Begins the trace of capture `capture` in the created file. Fails like `open`; then call `give_up`.
  [[nodiscard, gnu::noinline]] bool start(const capture_options& options, std::uint32_t capture) {
    const std::string reason = start_writing(options, capture);
    if (reason.empty()) return true;
    refuse(reason);
    return false;
  }
  void give_up() noexcept {
    state_ = state::none;
    release();
    if (is_new_) (void)::unlink(message_.path());
    close_file();
  }

  /// The places for rings in its pages; null if it has none.
  [[nodiscard]] ring_places* places() noexcept { return is_mapped_ ? &area_.places() : nullptr; }
  /// Whether to pass it events: also once it can no longer write them, so that they are counted.
  [[nodiscard]] bool takes_events() const noexcept { return state_ != state::none && state_ != state::closed; }

  // --- input --------------------------------------------------------------------------------------------------------

  /// Out of line, so that folding costs no more where there is no file.
  [[gnu::noinline]] void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    while (state_ == state::recording) {
      encoded_bytes out = buffers_.room();
      first = encoder_->encode(first, last, ring, out);
      buffers_.keep(out);
      if (first == last) return;
      next_chunk();
    }
    missing_ += static_cast<std::uint64_t>(last - first);
  }
  void info(const capture_info& info) {
    define(control::header, encode_info(info));
    if (definitions_ != nullptr) definitions_->info(info);
  }
  void name(label id, std::string_view text) noexcept {
    if (define(control::name, small_payload{}.number(id).view(), text)) last_name_ = id;
  }
  void space(const space_definition& space) noexcept {
    if (define(control::space, encode_space(space).view())) spaces_ = std::uint32_t{space.id} + 1;
    if (definitions_ != nullptr) definitions_->space(space);
  }
  void facts(const fact_table& table) {
    if (!takes_events()) return;
    for_each_part(fitted(table), [&](std::string_view payload) {
      if (!define(control::facts, payload)) lacks_facts_ = true;
    });
    if (definitions_ != nullptr) definitions_->facts(table);
  }
  /// A whole table that is encoded already. Allocates nothing.
  void encoded_facts(std::string_view payload) noexcept {
    if (!define(control::facts, payload)) lacks_facts_ = true;
  }
  /// After a gap: the number of events of the ring that precede what follows, whether or not the trace has them.
  void position(std::uint32_t ring, std::uint64_t events) noexcept {
    define(control::position, small_payload{}.number(ring).number(events).view());
  }

  /// After a gap: the state at its end. Left out if it would fill more than half of the free buffers.
  void saved_state(const page_array<unsigned char>& saved) noexcept {
    if (saved.size() > buffers_.free() * std::size_t{live_layout::buffer_bytes} / 2) return;
    for_each_saved_state_part(
        saved, [this](std::string_view head, std::string_view bytes) { define(control::saved_state, head, bytes); });
  }

  /// Commits what has come in so far to the file: it will be readable even if the process is killed.
  [[gnu::noinline]] void commit() noexcept {
    if (state_ == state::recording) buffers_.commit();
  }

  // --- gaps ---------------------------------------------------------------------------------------------------------

  /// Called before each drain: reacts to the state of the disk. True if a gap has just ended; then pass in the names after
  /// `last_name`, the spaces from `spaces` on, the position of each ring and a saved state.
  [[nodiscard]] bool resume() noexcept {
    if (!takes_events()) return false;
    if (buffers_.error() != 0) state_ = state::stopped;
    if (state_ != state::gapped) return false;
    // Not for a single free buffer, which would fill up at once: few long gaps are better than many short ones.
    return buffers_.free() >= live_layout::buffers / 2 && end_gap();
  }
  /// As above, but waits for the disk. For the end of the capture, whose last events must not be missing.
  [[nodiscard]] bool wait_and_resume() noexcept {
    if (state_ != state::gapped || !buffers_.wait_for_free(live_layout::buffers / 2)) return false;
    return end_gap();
  }
  [[nodiscard]] bool is_gapped() const noexcept { return state_ == state::gapped; }
  /// Waits until a gap can end or writing has failed. Without the registry's lock.
  void wait_for_disk() const noexcept { (void)buffers_.wait_for_free(live_layout::buffers / 2); }
  [[nodiscard]] label last_name() const noexcept { return last_name_; }
  [[nodiscard]] std::uint32_t spaces() const noexcept { return spaces_; }
  /// True once if facts arrived during a gap; they have to be passed again.
  [[nodiscard]] bool take_lacks_facts() noexcept { return std::exchange(lacks_facts_, false); }

  /// If nothing is mapped, has the open chunk written although it is not full. Called once a second.
  void flush_unmapped() noexcept {
    if (!is_mapped_ && state_ == state::recording && buffers_.used() != 0) next_chunk();
  }

  // --- the limit ----------------------------------------------------------------------------------------------------

  /// Whether the newest generation has reached its maximum length. Called after each drain.
  [[nodiscard]] bool wants_generation() const noexcept {
    return definitions_ != nullptr && state_ == state::recording && closed_bytes_ + buffers_.used() >= generation_bytes_ &&
           writer_.takes_generation();
  }

  /// Begins a generation with the current state: a `gap` for all events so far, the position of each ring (written to a trace by
  /// `write_positions`) and a saved state. If that fails, the newest generation grows instead. Takes nothing from `operator new`.
  template <class Names, class Positions>
  [[gnu::noinline]] void begin_generation(const Names& names, std::uint64_t events, const page_array<unsigned char>& saved,
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

  // --- the end ------------------------------------------------------------------------------------------------------

  /// Accepts nothing more, and detaches the rings from the file; `finish` does the rest.
  [[gnu::noinline]] void close(event_ring* rings) noexcept {
    if (state_ == state::recording && buffers_.used() != 0) buffers_.close();
    if (has_thread_) state_ = state::closed;
    if (is_mapped_) keeps_area_ = !area_.places().detach_all(rings);
    buffers_.end();
  }

  /// Waits until everything is on disk, and completes the file. False if that has already been done or there is no file;
  /// otherwise call `settle` next.
  [[nodiscard]] bool finish() noexcept {
    if (!has_thread_) return false;
    (void)::pthread_join(thread_, nullptr);
    has_thread_ = false;
    int error = buffers_.error();
    if (error == 0) {
      error = writer_.complete(keeps_area_);
      if (error != 0) fail(error);
    }
    if (error != 0) writer_.stop(error);
    struct stat status {};
    if (file_.is_there() && ::fstat(file_.number, &status) == 0 && status.st_nlink == 0) {
      is_deleted_ = true;
      message_.say("memprof: trace file '%s': %s\n", deleted);
    }
    return true;
  }

  /// Releases everything except the file itself and what a profile needs.
  void settle() noexcept {
    if (is_deleted_) std::snprintf(problem_, sizeof problem_, "%s", deleted);
    release();
  }
  void close_file() noexcept { file_.close(); }

  // --- status -------------------------------------------------------------------------------------------------------

  [[nodiscard]] const own_file& file() const noexcept { return file_; }
  [[nodiscard]] std::string_view path() const noexcept { return message_.path(); }
  /// Why the file is incomplete or may become so; empty: no known problem.
  [[nodiscard]] std::string problem() const {
    if (problem_[0] != '\0') return problem_;
    if (const int error = buffers_.error()) return std::string{"writing it failed: "} + text_of(error);
    if (missing_ != 0) return "its disk was too slow";
    if (!is_unmapped_) return {};
    return "it cannot be mapped on its file system: if the process is killed, the last second will be missing";
  }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_; }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return encoder_ == nullptr ? 0
                               : sizeof(trace_encoder) + area_.own_bytes() +
                                     (definitions_ == nullptr ? 0 : sizeof(generation_definitions) + definitions_->bytes());
  }

 private:
  enum class state : std::uint8_t {
    none,       ///< there is no file
    recording,  ///< a buffer is open
    gapped,     ///< all buffers are full
    stopped,    ///< writing failed
    closed,
  };
  static constexpr const char* deleted = "it was deleted while it was written";

  // --- making the file ----------------------------------------------------------------------------------------------

  [[nodiscard]] static const char* text_of(int error) noexcept { return std::strerror(error); }

  void refuse(const std::string& reason) noexcept {
    std::snprintf(problem_, sizeof problem_, "%s", reason.c_str());
    message_.say("memprof: no trace file '%s': %s; the capture goes on without one\n", problem_);
  }

  /// Empty, or why the file cannot hold a trace.
  [[nodiscard]] std::string start_writing(const capture_options& options, std::uint32_t capture) {
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
    if (!start_thread()) return "the system cannot start a thread for it";
    return {};
  }

  [[nodiscard]] bool start_thread() noexcept {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    // The thread takes no signals: neither the program's, nor SIGXFSZ, which a file beyond its size limit raises.
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread_ = ::pthread_create(&thread_, nullptr, run, this) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread_;
  }

  // --- the open chunk -----------------------------------------------------------------------------------------------

  bool define(control kind, std::string_view payload, std::string_view more = {}) noexcept {
    const std::size_t size = trace_encoder::control_bytes(payload.size() + more.size());
    if (state_ != state::recording || size > live_layout::buffer_bytes) return false;
    if (buffers_.room().room() < size) next_chunk();
    if (state_ != state::recording) return false;
    encoded_bytes out = buffers_.room();
    trace_encoder::put_control(kind, payload, more, out);
    buffers_.keep(out);
    return true;
  }

  [[gnu::noinline]] void next_chunk() noexcept {
    closed_bytes_ += buffers_.used();
    buffers_.close();
    open_chunk();
  }

  /// Opens a chunk in a free buffer; if there is none, waits or begins a gap.
  void open_chunk() noexcept {
    if (buffers_.error() != 0) {
      state_ = state::stopped;
      return;
    }
    if (buffers_.open() || (waits_ && buffers_.wait_for_free(1) && buffers_.open())) return encoder_->restart();
    state_ = buffers_.error() != 0 ? state::stopped : state::gapped;
    if (state_ == state::gapped && missing_ == 0) {
      message_.say("memprof: trace file '%s': %s; the capture's own numbers stay exact\n",
                   "its disk is too slow, so events are left out");
    }
    missing_at_gap_ = missing_;
  }

  [[nodiscard]] bool end_gap() noexcept {
    state_ = state::recording;
    open_chunk();
    if (state_ != state::recording) return false;
    const std::uint64_t left_out = missing_ - missing_at_gap_;
    const event gap{0, 0, left_out == 0 ? 1 : left_out, 0, event_kind::gap, any_space, 0};
    events(&gap, &gap + 1, no_ring_id);
    return true;
  }

  // --- the thread ---------------------------------------------------------------------------------------------------

  static void* run(void* self) {
    const activity_guard hidden{activity::internal};
#if defined(__linux__)
    ::prctl(PR_SET_NAME, "memprof trace", 0, 0, 0);
#endif
    static_cast<live_trace*>(self)->write_until_end();
    return nullptr;
  }

  void write_until_end() noexcept {
    for (;;) {
      const std::uint32_t seen = buffers_.wake_word().load(std::memory_order_acquire);
      if (is_mapped_) writer_.reserve_places(area_.places());
      const bool is_last = buffers_.has_ended();
      if (const int error = writer_.write_chunks(buffers_); error != 0) return fail(error);
      if (is_last) return;
      buffers_.wake_word().wait(seen, std::memory_order_acquire);
    }
  }

  void fail(int error) noexcept {
    if (buffers_.fail(error)) {
      message_.say("memprof: trace file '%s' ends here: %s; the capture goes on without it\n", text_of(error));
    }
  }

  /// Releases the pages.
  void release() noexcept {
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

  state state_ = state::none;
  bool waits_ = false;
  bool is_new_ = false;  ///< no file had its name before
  bool is_mapped_ = false;
  bool is_unmapped_ = false;  ///< the file could not be mapped
  bool is_deleted_ = false;
  bool keeps_area_ = false;  ///< a ring could not be detached from the file
  bool has_thread_ = false;
  own_file file_;
  trace_encoder* encoder_ = nullptr;
  live_area area_;
  chunk_buffers buffers_;
  trace_file_writer writer_;
  ::pthread_t thread_{};

  label last_name_ = 0;
  std::uint32_t spaces_ = 0;
  bool lacks_facts_ = false;
  std::uint64_t missing_ = 0;  ///< events
  std::uint64_t missing_at_gap_ = 0;

  generation_definitions* definitions_ = nullptr;  ///< null: there is no limit
  std::uint64_t limit_ = 0;
  std::uint64_t generation_bytes_ = 0;  ///< length at which the next generation begins
  std::uint64_t closed_bytes_ = 0;      ///< of its closed chunks

  trace_file_message message_;
  char problem_[512] = {};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
