#pragma once

#include <memprof/record/live_pages.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/file_layout.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// A chunk in one of the buffers.
struct full_chunk {
  std::uint32_t buffer;
  std::uint32_t bytes;
  std::uint32_t checksum;
  std::uint32_t events;
};

/// The buffers of a trace file: the encoder fills them one after the other, and the file's thread empties them. Where possible
/// they lie in the file's own pages, so that whatever is committed there outlives the process.
///
/// The first part is used under the registry's lock, the second by the thread.
class chunk_buffers {
 public:
  chunk_buffers() = default;
  chunk_buffers(const chunk_buffers&) = delete;
  chunk_buffers& operator=(const chunk_buffers&) = delete;

  /// Sets the buffers, and their states in the live area.
  void use(unsigned char* buffers, unsigned char* states) noexcept {
    buffers_ = buffers;
    states_ = reinterpret_cast<buffer_state*>(states);
  }

  // --- filling ------------------------------------------------------------------------------------------------------

  /// The free part of the open buffer; `keep` accepts what was written there, and how many events that is.
  [[nodiscard]] encoded_bytes room() const noexcept { return {buffer(open_) + used_, buffer(open_) + live_layout::buffer_bytes}; }
  void keep(const encoded_bytes& written, std::size_t events = 0) noexcept {
    used_ = static_cast<std::uint32_t>(written.next - buffer(open_));
    events_ += static_cast<std::uint32_t>(events);
  }
  /// Bytes used in the open buffer.
  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
  /// Number of the open chunk.
  [[nodiscard]] std::uint32_t number() const noexcept { return closed_.load(std::memory_order_relaxed); }

  /// Opens a free buffer; false if there is none.
  [[nodiscard]] bool open() noexcept {
    // The lowest free one: a fast disk then touches few pages.
    std::uint32_t index = 0;
    // Acquire pairs with the release in `give_back`: the thread has finished reading the buffer.
    while (index != live_layout::buffers && in_use_[index].load(std::memory_order_acquire)) ++index;
    if (index == live_layout::buffers) return false;
    open_ = index;
    used_ = committed_ = events_ = 0;
    checksum_ = 0;
    in_use_[index].store(true, std::memory_order_relaxed);
    // In this order: whenever the process ends, either number and commit belong to the same chunk or nothing is committed.
    states_[index].commit.store(0, std::memory_order_release);
    states_[index].number.store(std::uint64_t{number()} + 1, std::memory_order_release);
    return true;
  }

  /// Commits the open buffer to the file: it will be readable even if the process is killed.
  void commit() noexcept {
    if (used_ == committed_) return;
    checksum_ = crc32c::extend(checksum_, buffer(open_) + committed_, used_ - committed_);
    committed_ = used_;
    // Release: the bytes become visible before the commit that declares them valid.
    const std::uint64_t chunk = std::uint64_t{number()} + 1;
    states_[open_].commit.store(live_buffer_state::commit_of(used_, checksum_, chunk), std::memory_order_release);
  }

  /// Hands the open chunk to the thread.
  void close() noexcept {
    commit();
    const std::uint32_t chunk = number();
    queue_[chunk % live_layout::buffers] = {open_, used_, checksum_, events_};
    used_ = committed_ = events_ = 0;
    closed_.store(chunk + 1, std::memory_order_release);  // pairs with the acquire load in `closed`
    wake();
  }

  /// Of the chunks from `first` on, the open one among them. Once writing has failed, so that no buffer is given back.
  [[nodiscard]] std::uint64_t events_from(std::uint32_t first) const noexcept {
    std::uint64_t events = events_;
    for (std::uint32_t chunk = first; chunk != number(); ++chunk) events += queue_[chunk % live_layout::buffers].events;
    return events;
  }

  [[nodiscard]] std::uint32_t free() const noexcept {
    std::uint32_t count = 0;
    for (const std::atomic<bool>& each : in_use_) count += each.load(std::memory_order_relaxed) ? 0U : 1U;
    return count;
  }
  /// Waits until that many buffers are free. False if writing failed meanwhile.
  [[nodiscard]] bool wait_for_free(std::uint32_t count) const noexcept {
    for (;;) {
      const std::uint32_t seen = progress_.load(std::memory_order_acquire);
      if (error() != 0) return false;
      if (free() >= count) return true;
      progress_.wait(seen, std::memory_order_acquire);
    }
  }

  /// `errno` of the failed write; 0: none.
  [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_acquire); }

  void wake() noexcept {
    wake_word_.fetch_add(1, std::memory_order_release);
    wake_word_.notify_one();
  }
  [[nodiscard]] std::atomic<std::uint32_t>& wake_word() noexcept { return wake_word_; }
  /// Signals that no more chunks follow.
  void end() noexcept {
    has_ended_.store(true, std::memory_order_release);
    wake();
  }

  // --- emptying -----------------------------------------------------------------------------------------------------

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  /// Number of chunks handed over.
  [[nodiscard]] std::uint32_t closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  [[nodiscard]] const full_chunk& chunk(std::uint32_t number) const noexcept { return queue_[number % live_layout::buffers]; }
  [[nodiscard]] const unsigned char* bytes_of(const full_chunk& chunk) const noexcept { return buffer(chunk.buffer); }
  /// Frees the buffer after its chunk was written.
  void give_back(const full_chunk& chunk) noexcept {
    in_use_[chunk.buffer].store(false, std::memory_order_release);
    tell_progress();
  }
  /// Stops writing. True for the first error.
  bool fail(int error) noexcept {
    int none = 0;
    const bool is_first = error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
    tell_progress();
    return is_first;
  }

 private:
  /// `live_buffer_state` in the file's pages.
  struct buffer_state {
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> commit;
  };
  static_assert(sizeof(buffer_state) == live_buffer_state::size);

  [[nodiscard]] unsigned char* buffer(std::uint32_t index) const noexcept {
    return buffers_ + std::size_t{index} * live_layout::buffer_bytes;
  }
  void tell_progress() noexcept {
    progress_.fetch_add(1, std::memory_order_release);
    progress_.notify_all();
  }

  unsigned char* buffers_ = nullptr;
  buffer_state* states_ = nullptr;
  std::uint32_t open_ = 0;  ///< the open chunk's buffer
  std::uint32_t used_ = 0;
  std::uint32_t committed_ = 0;
  std::uint32_t checksum_ = 0;  ///< of the committed bytes
  std::uint32_t events_ = 0;    ///< in the open buffer

  full_chunk queue_[live_layout::buffers] = {};
  std::atomic<bool> in_use_[live_layout::buffers] = {};
  std::atomic<std::uint32_t> closed_{0};
  std::atomic<std::uint32_t> wake_word_{0};  ///< counts up when the thread has something to do
  std::atomic<std::uint32_t> progress_{0};   ///< counts up when it has done something
  std::atomic<bool> has_ended_{false};
  std::atomic<int> error_{0};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
