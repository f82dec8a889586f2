#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/record/open_trace_file.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/label.hpp>

#include <atomic>
#include <cerrno>
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
#include <sys/mman.h>
#include <sys/prctl.h>
#endif

namespace memprof::detail {

/// The trace of a capture on its way into a file.
///
/// Who drains the rings encodes their events into one of a few buffers, which lie in the file's own pages where that is possible:
/// what is committed there outlives the process. A thread of its own appends full buffers to the file. When all are full the
/// trace gets a gap, or waits; when writing fails it ends. Neither throws, and the capture goes on.
///
/// Used under the registry's lock, but for `finish` and what the thread does.
class live_trace {
 public:
  live_trace() = default;
  live_trace(const live_trace&) = delete;
  live_trace& operator=(const live_trace&) = delete;

  /// Makes the file of a name like `capture_options::trace_file`, for capture `capture`. If there can be none, a line on stderr
  /// and `problem` say why.
  [[gnu::noinline]] void open(const std::string& pattern, const capture_options& options, const process_info& process,
                              std::uint32_t capture) {
    waits_ = options.on_slow_disk == slow_disk::wait;
    const std::string path = expand_trace_path(pattern, process);
    std::snprintf(path_, sizeof path_, "%s", path.c_str());
    const opened_trace_file opened = open_trace_file(path);
    std::string reason = opened.problem;
    file_ = opened.file;
    if (reason.empty()) reason = start(options.ring_capacity, capture);
    if (reason.empty()) return;
    std::snprintf(problem_, sizeof problem_, "%s", reason.c_str());
    say("memprof: no trace file '%s': %s; the capture goes on without one\n", problem_);
    release(opened.is_new);
    state_ = state::none;
  }

  /// The places for rings in its pages; null if it has none.
  [[nodiscard]] ring_places* places() noexcept { return is_mapped_ ? &places_ : nullptr; }
  /// Whether it asks for what happens: also if it can no longer write it, to count it.
  [[nodiscard]] bool takes_events() const noexcept { return state_ != state::none && state_ != state::closed; }

  // --- what comes in ------------------------------------------------------------------------------------------------

  /// Out of line, so that folding costs no more where there is no file.
  [[gnu::noinline]] void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    while (state_ == state::recording) {
      encoded_bytes out{buffer(open_) + used_, buffer(open_) + live_layout::buffer_bytes};
      first = encoder_->encode(first, last, ring, out);
      used_ = static_cast<std::uint32_t>(out.next - buffer(open_));
      if (first == last) return;
      next_chunk();
    }
    missing_ += static_cast<std::uint64_t>(last - first);
  }
  void info(const capture_info& info) { define(control::header, encode_info(info)); }
  void name(label id, std::string_view text) noexcept {
    if (define(control::name, small_payload{}.number(id).view(), text)) last_name_ = id;
  }
  void space(const space_definition& space) noexcept {
    if (define(control::space, encode_space(space).view())) spaces_ = std::uint32_t{space.id} + 1;
  }
  void facts(const fact_table& table) {
    if (!takes_events()) return;
    for_each_part(fitted(table), [&](std::string_view payload) {
      if (!define(control::facts, payload)) lacks_facts_ = true;
    });
  }
  /// After a gap: so many events of the ring come before what follows, whether they are in the trace or not.
  void position(std::uint32_t ring, std::uint64_t events) noexcept {
    define(control::position, small_payload{}.number(ring).number(events).view());
  }

  /// After a gap: what is known where it ends. Left out if it would fill more than half of the buffers that are free.
  void key_frame(const page_array<unsigned char>& frame) noexcept {
    if (frame.size() > free_buffers() * std::size_t{live_layout::buffer_bytes} / 2) return;
    for_each_key_frame_part(frame,
                            [this](std::string_view head, std::string_view bytes) { define(control::key_frame, head, bytes); });
  }

  /// Makes what came in so far a part of the file: whatever happens to the process, it will be read.
  [[gnu::noinline]] void commit() noexcept {
    if (state_ != state::recording || used_ == committed_) return;
    checksum_ = crc32c::extend(checksum_, buffer(open_) + committed_, used_ - committed_);
    committed_ = used_;
    // Release: the bytes come before what says that they are valid.
    const std::uint64_t number = std::uint64_t{next_number()} + 1;
    states_[open_].commit.store(live_buffer_state::commit_of(used_, checksum_, number), std::memory_order_release);
  }

  /// Called before each drain: notices what became of the disk. True if a gap has ended just now: then come the names after
  /// `last_name`, the spaces from `spaces` on, the position of each ring and a key frame.
  [[nodiscard]] bool resume() noexcept {
    if (!takes_events()) return false;
    if (error_.load(std::memory_order_acquire) != 0) state_ = state::stopped;
    if (state_ != state::gapped) return false;
    // Not for a single free buffer, which would be full at once: few long gaps are better than many short ones.
    return free_buffers() >= live_layout::buffers / 2 && end_gap();
  }
  /// The same, but waits for the disk. For the capture's end, whose last events must not be missing.
  [[nodiscard]] bool wait_and_resume() noexcept {
    if (state_ != state::gapped || !wait_for_buffers(live_layout::buffers / 2)) return false;
    return end_gap();
  }
  [[nodiscard]] label last_name() const noexcept { return last_name_; }
  [[nodiscard]] std::uint32_t spaces() const noexcept { return spaces_; }
  /// Whether facts came while there was a gap, once: they have to come again.
  [[nodiscard]] bool take_lacks_facts() noexcept { return std::exchange(lacks_facts_, false); }

  /// Where nothing is mapped, lets the open chunk be written although it is not full. Called once a second.
  void flush_unmapped() noexcept {
    if (!is_mapped_ && state_ == state::recording && used_ != 0) next_chunk();
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  /// Takes nothing more, and parts the rings from the file. What is left is to `finish`.
  [[gnu::noinline]] void close(event_ring* rings) noexcept {
    if (state_ == state::recording && used_ != 0) close_chunk();
    if (has_thread_) state_ = state::closed;
    if (is_mapped_) keeps_area_ = !places_.detach_all(rings);
    is_closing_.store(true, std::memory_order_release);
    wake();
  }

  /// Waits until the disk has everything, and completes the file. Without the registry's lock. False if that was done before, or
  /// there is no file; otherwise `settle` comes next.
  bool finish() noexcept {
    if (!has_thread_) return false;
    (void)::pthread_join(thread_, nullptr);
    has_thread_ = false;
    int error = error_.load(std::memory_order_acquire);
    if (error == 0) {
      error = complete();
      if (error != 0) fail(error);
    }
    if (error != 0) {
      trace_file_header header = live_header();
      header.state = trace_file_state::stopped;
      header.error = static_cast<std::uint32_t>(error);
      header.chunks = written_;
      header.bytes = end_;
      (void)write_header(header);
    }
    return true;
  }

  /// Lets go of the file.
  void settle() noexcept {
    struct stat status {};
    if (::fstat(file_, &status) == 0 && status.st_nlink == 0) {
      std::snprintf(problem_, sizeof problem_, "it was deleted while it was written");
      say("memprof: trace file '%s': %s\n", problem_);
    }
    release(false);
  }

  // --- what it says of itself ---------------------------------------------------------------------------------------

  [[nodiscard]] int file() const noexcept { return file_; }
  [[nodiscard]] std::string_view path() const noexcept { return path_; }
  /// Why it is incomplete, or may become so; empty: nothing is known against it.
  [[nodiscard]] std::string problem() const {
    if (problem_[0] != '\0') return problem_;
    if (const int error = error_.load(std::memory_order_acquire)) return std::string{"writing it failed: "} + text_of(error);
    if (missing_ != 0) return "its disk was too slow";
    if (!is_unmapped_) return {};
    return "it cannot be mapped on its file system: if the process is killed, the last second will be missing";
  }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_; }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return encoder_ == nullptr ? 0 : sizeof(trace_encoder) + (is_mapped_ ? 0 : private_bytes_);
  }

 private:
  enum class state : std::uint8_t {
    none,       ///< there is no file
    recording,  ///< a buffer is open
    gapped,     ///< all are full
    stopped,    ///< writing failed
    closed,
  };
  /// `live_buffer_state` in the file's pages.
  struct buffer_state {
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> commit;
  };
  static_assert(sizeof(buffer_state) == live_buffer_state::size);
  struct full_chunk {
    std::uint32_t buffer;
    std::uint32_t bytes;
    std::uint32_t checksum;
  };

  // --- making the file ----------------------------------------------------------------------------------------------

  /// Empty, or why there can be no trace in the file.
  [[nodiscard]] std::string start(std::uint32_t ring_capacity, std::uint32_t capture) {
    const live_layout layout{ring_capacity};
    if (keeps_reserved_blocks(file_) && may_be_as_long(layout.end())) {
      if (const int error = map(layout); error != 0) return text_of(error);
    }
    is_unmapped_ = !is_mapped_;
    if (is_unmapped_) {
      private_bytes_ = layout.first_place;
      pages_ = static_cast<unsigned char*>(map_pages(private_bytes_));
    }
    void* const encoder_pages = map_pages(sizeof(trace_encoder));
    if (pages_ == nullptr || encoder_pages == nullptr) return "the system has no memory for it";
    encoder_ = new (encoder_pages) trace_encoder;
    buffers_ = pages_ + layout.first_buffer;
    states_ = reinterpret_cast<buffer_state*>(pages_ + live_layout::area + live_area_header::buffer_states);
    first_chunk_ = is_mapped_ ? layout.end() : trace_file_header::size;
    end_ = first_chunk_;
    if (is_mapped_) describe_area(layout, ring_capacity, capture);
    if (const int error = write_header(live_header()); error != 0) return text_of(error);
    state_ = state::recording;
    open_chunk();
    if (!start_thread()) return "the system lets it have no thread";
    return {};
  }

  /// Maps the file, if it can be. 0, or why there can be no file at all.
  [[nodiscard]] int map(const live_layout& layout) noexcept {
#if defined(__linux__)
    const int error = reserve_blocks(file_, 0, layout.place(layout.spare_places));
    if (error == EOPNOTSUPP || error == ENOSYS) return 0;
    if (error != 0) return error;
    void* const pages = ::mmap(nullptr, layout.end(), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (pages == MAP_FAILED) return 0;
    is_mapped_ = true;
    pages_ = static_cast<unsigned char*>(pages);
#else
    (void)layout;
#endif
    return 0;
  }

  void describe_area(const live_layout& layout, std::uint32_t ring_capacity, std::uint32_t capture) noexcept {
    places_.mapping = pages_;
    places_.mapping_bytes = layout.end();
    places_.first = pages_ + layout.first_place;
    places_.place_bytes = layout.place_bytes;
    places_.capacity = ring_capacity;
    places_.count = layout.places;
    places_.capture = capture;
    places_.spare = layout.spare_places;
    places_.reserved.store(layout.spare_places, std::memory_order_relaxed);
    places_.wake_word = &wake_word_;
    unsigned char* const area = pages_ + live_layout::area;
    places_.given_in_file = new (area + live_area_header::given_places) std::atomic<std::uint64_t>{0};
    places_.rings_outside = new (area + live_area_header::rings_outside) std::atomic<std::uint64_t>{0};
    live_area_header header;
    header.buffers = live_layout::buffers;
    header.buffer_bytes = live_layout::buffer_bytes;
    header.places = layout.places;
    header.place_bytes = static_cast<std::uint32_t>(layout.place_bytes);
    header.first_buffer = layout.first_buffer;
    header.first_place = layout.first_place;
    const auto encoded = header.encode();
    std::memcpy(area, encoded.data(), encoded.size());
  }

  [[nodiscard]] trace_file_header live_header() const noexcept {
    trace_file_header header;
    header.first_chunk = static_cast<std::uint32_t>(first_chunk_);
    header.chunks = trace_file_header::unknown;
    header.bytes = trace_file_header::unknown;
    header.state = trace_file_state::live;
    header.live_area = is_mapped_ ? live_layout::area : 0;
    return header;
  }
  [[nodiscard]] int write_header(const trace_file_header& header) const noexcept {
    const auto encoded = header.encode();
    return write_at(file_, encoded.data(), encoded.size(), 0);
  }

  [[nodiscard]] bool start_thread() noexcept {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    // It takes no signal: not the program's, and not SIGXFSZ, which a file beyond its limit raises.
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread_ = ::pthread_create(&thread_, nullptr, run, this) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread_;
  }

  // --- the open chunk -----------------------------------------------------------------------------------------------

  [[nodiscard]] unsigned char* buffer(std::uint32_t index) const noexcept {
    return buffers_ + std::size_t{index} * live_layout::buffer_bytes;
  }
  /// The number of the open chunk.
  [[nodiscard]] std::uint32_t next_number() const noexcept { return closed_.load(std::memory_order_relaxed); }

  bool define(control kind, std::string_view payload, std::string_view more = {}) noexcept {
    const std::size_t size = trace_encoder::control_bytes(payload.size() + more.size());
    if (state_ != state::recording || size > live_layout::buffer_bytes) return false;
    if (live_layout::buffer_bytes - used_ < size) next_chunk();
    if (state_ != state::recording) return false;
    encoded_bytes out{buffer(open_) + used_, buffer(open_) + live_layout::buffer_bytes};
    trace_encoder::put_control(kind, payload, more, out);
    used_ = static_cast<std::uint32_t>(out.next - buffer(open_));
    return true;
  }

  void next_chunk() noexcept {
    close_chunk();
    open_chunk();
  }

  /// Hands the open chunk to the thread.
  [[gnu::noinline]] void close_chunk() noexcept {
    commit();
    const std::uint32_t number = next_number();
    queue_[number % live_layout::buffers] = {open_, used_, checksum_};
    closed_.store(number + 1, std::memory_order_release);  // pairs with the thread's acquire load
    wake();
  }

  /// Opens a chunk in a free buffer; without one it waits, or a gap begins.
  [[gnu::noinline]] void open_chunk() noexcept {
    if (error_.load(std::memory_order_acquire) != 0) {
      state_ = state::stopped;
      return;
    }
    std::uint32_t index = free_buffer();
    if (index == live_layout::buffers && waits_ && wait_for_buffers(1)) index = free_buffer();
    if (index == live_layout::buffers) {
      state_ = error_.load(std::memory_order_acquire) != 0 ? state::stopped : state::gapped;
      if (state_ == state::gapped && missing_ == 0) {
        say("memprof: trace file '%s': %s; the capture's own numbers stay exact\n",
            "its disk is too slow, so events are left out");
      }
      missing_at_gap_ = missing_;
      return;
    }
    open_ = index;
    used_ = committed_ = 0;
    checksum_ = 0;
    in_use_[index].store(true, std::memory_order_relaxed);
    // In this order: whenever the process ends, number and commit are those of one chunk, or nothing is committed.
    states_[index].commit.store(0, std::memory_order_release);
    states_[index].number.store(std::uint64_t{next_number()} + 1, std::memory_order_release);
    encoder_->restart();
  }

  /// The first, so that a disk that is fast enough sees few of the pages change.
  [[nodiscard]] std::uint32_t free_buffer() const noexcept {
    std::uint32_t index = 0;
    // Acquire pairs with the thread's release: it has read what was there.
    while (index != live_layout::buffers && in_use_[index].load(std::memory_order_acquire)) ++index;
    return index;
  }

  [[nodiscard]] std::uint32_t free_buffers() const noexcept {
    std::uint32_t free = 0;
    for (const std::atomic<bool>& each : in_use_) free += each.load(std::memory_order_relaxed) ? 0U : 1U;
    return free;
  }

  /// False if writing failed meanwhile.
  [[nodiscard]] bool wait_for_buffers(std::uint32_t count) const noexcept {
    for (;;) {
      const std::uint32_t seen = progress_.load(std::memory_order_acquire);
      if (error_.load(std::memory_order_acquire) != 0) return false;
      if (free_buffers() >= count) return true;
      progress_.wait(seen, std::memory_order_acquire);
    }
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

  void wake() noexcept {
    wake_word_.fetch_add(1, std::memory_order_release);
    wake_word_.notify_one();
  }

  static void* run(void* self) {
    const activity_guard hidden{activity::internal};
#if defined(__linux__)
    ::prctl(PR_SET_NAME, "memprof trace", 0, 0, 0);
#endif
    static_cast<live_trace*>(self)->write_chunks();
    return nullptr;
  }

  void write_chunks() noexcept {
    for (;;) {
      const std::uint32_t seen = wake_word_.load(std::memory_order_acquire);
      if (is_mapped_) reserve_places();
      const bool is_last = is_closing_.load(std::memory_order_acquire);
      while (written_ != closed_.load(std::memory_order_acquire)) {
        const int error = write_chunk(queue_[written_ % live_layout::buffers]);
        if (error == 0) continue;
        (void)::ftruncate(file_, static_cast<::off_t>(end_));  // so that no part of a chunk is at its end
        fail(error);
        return;
      }
      if (is_last) return;
      wake_word_.wait(seen, std::memory_order_acquire);
    }
  }

  [[nodiscard]] int write_chunk(const full_chunk& full) noexcept {
    chunk_header header;
    header.bytes = full.bytes;
    header.number = written_;
    header.checksum = full.checksum;
    const auto encoded = header.encode();
    int error = write_at(file_, encoded.data(), encoded.size(), end_);
    if (error == 0) error = write_at(file_, buffer(full.buffer), full.bytes, end_ + encoded.size());
    if (error != 0) return error;
    end_ += encoded.size() + full.bytes;
    ++written_;
    in_use_[full.buffer].store(false, std::memory_order_release);
    progress_.fetch_add(1, std::memory_order_release);
    progress_.notify_all();
    return 0;
  }

  void reserve_places() noexcept {
    const std::uint32_t ready = places_.reserved.load(std::memory_order_relaxed);
    if (!places_.is_short.exchange(false, std::memory_order_relaxed) || ready == places_.count) return;
    const std::uint32_t wanted = places_.spare < places_.count - ready ? ready + places_.spare : places_.count;
    const std::size_t offset = static_cast<std::size_t>(places_.first - places_.mapping) + ready * places_.place_bytes;
    // Without room for them further rings have no place: nothing else is lost by that.
    if (reserve_blocks(file_, offset, (wanted - ready) * places_.place_bytes) == 0)
      places_.reserved.store(wanted, std::memory_order_release);
  }

  void fail(int error) noexcept {
    int none = 0;
    if (error_.compare_exchange_strong(none, error, std::memory_order_acq_rel)) {
      say("memprof: trace file '%s' ends here: %s; the capture goes on without it\n", text_of(error));
    }
    progress_.fetch_add(1, std::memory_order_release);
    progress_.notify_all();
  }

  // --- completing the file ------------------------------------------------------------------------------------------

  /// Makes the file what `write_trace` would have written. 0, or why not.
  [[nodiscard]] int complete() noexcept {
    trace_file_header header;
    header.chunks = written_;
    header.bytes = end_;
    header.first_chunk = static_cast<std::uint32_t>(first_chunk_);
    // From here on the file is complete; what follows only makes it shorter, and each step leaves it so.
    if (const int error = write_header(header); error != 0) return error;
    if (!is_mapped_ || keeps_area_) return 0;
    const std::uint64_t bytes = end_ - first_chunk_;
    if (trace_file_header::size + bytes > first_chunk_) {
      drop_blocks(file_, trace_file_header::size, first_chunk_ - trace_file_header::size);
      return 0;
    }
    if (!move_chunks(bytes)) return 0;
    header.first_chunk = trace_file_header::size;
    header.bytes = trace_file_header::size + bytes;
    if (const int error = write_header(header); error != 0) return error;
    (void)::ftruncate(file_, static_cast<::off_t>(header.bytes));
    return 0;
  }

  /// Copies so many bytes of chunks to where the live area was. False if they could not be.
  [[nodiscard]] bool move_chunks(std::uint64_t bytes) noexcept {
    constexpr std::size_t at_once = std::size_t{64} << 10;
    void* const pages = map_pages(at_once);
    if (pages == nullptr) return false;
    bool is_moved = true;
    for (std::uint64_t done = 0; is_moved && done < bytes;) {
      const std::size_t wanted = bytes - done < at_once ? std::size_t{bytes - done} : at_once;
      const ::ssize_t got = ::pread(file_, pages, wanted, static_cast<::off_t>(first_chunk_ + done));
      if (got < 0 && errno == EINTR) continue;
      is_moved = got > 0 && write_at(file_, pages, static_cast<std::size_t>(got), trace_file_header::size + done) == 0;
      if (is_moved) done += static_cast<std::uint64_t>(got);
    }
    unmap_pages(pages, at_once);
    return is_moved;
  }

  /// Gives back everything but what the profile asks for, and the file itself if it is not to stay.
  void release(bool removes_file) noexcept {
    if (is_mapped_) {
      places_.unmap();
    } else {
      unmap_pages(pages_, private_bytes_);
    }
    unmap_pages(encoder_, sizeof(trace_encoder));
    is_mapped_ = false;
    pages_ = nullptr;
    encoder_ = nullptr;
    private_bytes_ = 0;
    if (file_ < 0) return;
    if (removes_file) (void)::unlink(path_);
    ::close(file_);
    file_ = -1;
  }

  // --- saying what happened -----------------------------------------------------------------------------------------

  [[nodiscard]] static const char* text_of(int error) noexcept { return std::strerror(error); }

  /// In one piece, and without the lock of stderr, which a thread may hold that waits for us.
  [[gnu::cold, gnu::noinline]] void say(const char* format, const char* what) const noexcept {
    char line[sizeof path_ + 512];
    const int size = std::snprintf(line, sizeof line, format, path_, what);
    if (size <= 0) return;
    const auto length = static_cast<std::size_t>(size) < sizeof line ? static_cast<std::size_t>(size) : sizeof line - 1;
    [[maybe_unused]] const ::ssize_t said = ::write(STDERR_FILENO, line, length);
  }

  state state_ = state::none;
  bool waits_ = false;
  bool is_mapped_ = false;
  bool is_unmapped_ = false;  ///< nor was it ever
  bool keeps_area_ = false;   ///< a ring could not be parted from the file
  bool has_thread_ = false;
  int file_ = -1;
  unsigned char* pages_ = nullptr;
  std::size_t private_bytes_ = 0;
  unsigned char* buffers_ = nullptr;
  buffer_state* states_ = nullptr;
  trace_encoder* encoder_ = nullptr;
  ring_places places_;
  std::uint64_t first_chunk_ = 0;

  std::uint32_t open_ = 0;  ///< the open chunk's buffer
  std::uint32_t used_ = 0;
  std::uint32_t committed_ = 0;
  std::uint32_t checksum_ = 0;  ///< of what is committed
  label last_name_ = 0;
  std::uint32_t spaces_ = 0;
  bool lacks_facts_ = false;
  std::uint64_t missing_ = 0;  ///< events
  std::uint64_t missing_at_gap_ = 0;

  ::pthread_t thread_{};
  full_chunk queue_[live_layout::buffers] = {};
  std::atomic<bool> in_use_[live_layout::buffers] = {};
  std::atomic<std::uint32_t> closed_{0};     ///< chunks that were handed to the thread
  std::atomic<std::uint32_t> wake_word_{0};  ///< counts up when the thread has something to do
  std::atomic<std::uint32_t> progress_{0};   ///< counts up when it has done something
  std::atomic<bool> is_closing_{false};
  std::atomic<int> error_{0};
  std::uint32_t written_ = 0;  ///< chunks in the file; the thread's, then that of `finish`
  std::uint64_t end_ = 0;      ///< of the last of them; likewise

  char path_[4096] = {};
  char problem_[512] = {};
};

}  // namespace memprof::detail
