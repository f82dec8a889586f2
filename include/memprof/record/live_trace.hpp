#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/record/chunk_buffers.hpp>
#include <memprof/record/live_area.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/own_file.hpp>
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
#include <memprof/trace/label.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <pthread.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// A capture's trace on its way to a file.
///
/// The thread that drains the rings encodes their events into one of a few buffers. A dedicated thread appends full buffers to
/// the file, or that thread itself (`capture_options::trace_thread`). When all are full, the trace gets a gap or the drain waits;
/// when writing fails, the trace ends. Neither throws, and the capture goes on.
///
/// Used under the registry's lock, except for calls that wait for the file system: `open`, `start`, `give_up`, `wait_for_disk`,
/// `finish`, `close_file`.
class live_trace {
 public:
  live_trace() = default;
  live_trace(const live_trace&) = delete;
  live_trace& operator=(const live_trace&) = delete;

  /// Creates the file named by a pattern like `capture_options::trace_file`. On failure, a line on stderr and `problem` say why.
  [[nodiscard]] bool open(const std::string& pattern, const capture_options& options, const process_info& process);

  /// Begins the trace of capture `capture` in the created file. Fails like `open`; then call `give_up`.
  [[nodiscard]] bool start(const capture_options& options, std::uint32_t capture);
  void give_up() noexcept;

  /// The places for rings in its pages; null if it has none.
  [[nodiscard]] ring_places* places() noexcept { return is_mapped_ ? &area_.places() : nullptr; }
  /// Whether to pass it events: also once it can no longer write them, so that they are counted.
  [[nodiscard]] bool takes_events() const noexcept { return state_ != state::none && state_ != state::closed; }

  // --- input --------------------------------------------------------------------------------------------------------

  /// Out of line, so that folding costs no more where there is no file.
  [[gnu::noinline]] void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    encode(first, last, [&](const event* next, encoded_bytes& out) { return encoder_->encode(next, last, ring, out); });
  }
  [[gnu::noinline]] void events(const ordered_event* first, const ordered_event* last) noexcept {
    encode(first, last, [&](const ordered_event* next, encoded_bytes& out) { return encoder_->encode(next, last, out); });
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
    if (buffers_.error() != 0) stop();
    if (!has_thread_ && is_mapped_ && state_ == state::recording) writer_.reserve_places(area_.places());
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
  void begin_generation(const Names& names, std::uint64_t events, const page_array<unsigned char>& saved,
                        Positions&& write_positions) noexcept;

  // --- the end ------------------------------------------------------------------------------------------------------

  /// Accepts nothing more, and detaches the rings from the file; `finish` does the rest.
  void close(event_ring* rings) noexcept;

  /// Waits until everything is on disk, and completes the file. False if that has already been done or there is no file;
  /// otherwise call `settle` next.
  [[nodiscard]] bool finish() noexcept;

  /// Releases everything except the file itself and what a profile needs.
  void settle() noexcept;
  void close_file() noexcept { file_.close(); }

  // --- status -------------------------------------------------------------------------------------------------------

  [[nodiscard]] const own_file& file() const noexcept { return file_; }
  [[nodiscard]] std::string_view path() const noexcept { return message_.path(); }
  /// Why the file is incomplete or may become so; empty: no known problem.
  [[nodiscard]] std::string problem() const;
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_; }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t bytes() const noexcept;

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

  [[nodiscard]] static const char* text_of(int error) noexcept {
    return error == EFBIG ? "File too large (for RLIMIT_FSIZE: ulimit -f)" : std::strerror(error);
  }

  void refuse(const std::string& reason) noexcept;

  /// Empty, or why the file cannot hold a trace.
  [[nodiscard]] std::string start_writing(const capture_options& options, std::uint32_t capture);

  [[nodiscard]] bool start_thread() noexcept;

  // --- the open chunk -----------------------------------------------------------------------------------------------

  /// `encode_into(first, out)` encodes what has room and returns the first event that has none.
  template <class Event>
  [[gnu::always_inline]] void encode(const Event* first, const Event* last, auto&& encode_into) noexcept {
    while (state_ == state::recording) {
      encoded_bytes out = buffers_.room();
      const Event* const next = encode_into(first, out);
      buffers_.keep(out, static_cast<std::size_t>(next - first));
      first = next;
      if (first == last) return;
      next_chunk();
    }
    missing_ += static_cast<std::uint64_t>(last - first);
  }

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
    if (!has_thread_) write_here();
    open_chunk();
  }

  /// Writing has failed: counts what is in no chunk of the file, unless it is in the file's own pages, where it can be read.
  [[gnu::cold]] void stop() noexcept {
    state_ = state::stopped;
    count_unwritten();
  }
  [[gnu::cold]] void count_unwritten() noexcept {
    if (!is_mapped_ && !std::exchange(has_counted_unwritten_, true)) missing_ += buffers_.events_from(writer_.written());
  }

  /// Opens a chunk in a free buffer; if there is none, waits or begins a gap.
  void open_chunk() noexcept;

  [[nodiscard]] bool end_gap() noexcept;

  // --- the thread ---------------------------------------------------------------------------------------------------

  static void* run(void* self);

  void write_until_end() noexcept;

  /// Writes what is full, on the thread that drains, where no thread does.
  void write_here() noexcept;

  void fail(int error) noexcept;

  /// Releases the pages.
  void release() noexcept;

  state state_ = state::none;
  bool waits_ = false;
  bool is_new_ = false;  ///< no file had its name before
  bool is_mapped_ = false;
  bool is_unmapped_ = false;  ///< the file could not be mapped
  bool is_deleted_ = false;
  bool keeps_area_ = false;  ///< a ring could not be detached from the file
  bool has_thread_ = true;
  bool is_unfinished_ = false;
  bool has_counted_unwritten_ = false;
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

#include <memprof/record/live_trace_file.hpp>
