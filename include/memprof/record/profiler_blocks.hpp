#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The profiler's own heap blocks that the program may free, because they belong to a profile that was returned to it. Neither
/// their allocation nor their free is an event of the program.
///
/// Thread-safe. While the set is empty, as it nearly always is, a lookup costs one load. A thread must not be interrupted in
/// `add` or `remove` by a signal handler that calls either: the handler would wait for its own thread's lock.
class profiler_blocks {
 public:
  profiler_blocks() noexcept = default;
  profiler_blocks(const profiler_blocks&) = delete;
  profiler_blocks& operator=(const profiler_blocks&) = delete;

  /// Adds a block. If there is no memory for the entry, the block's free will count as unmatched.
  void add(std::uintptr_t address) noexcept {
    const detail::lock_guard guard{lock_};
    if (2 * (count_ + 1) > slots_.size() && !grow()) return;
    slots_[free_slot(slots_, address)] = address;
    ++count_;
    const std::uint64_t hash = hash_of(address);
    // Relaxed, here and below: a thread can only free a block that the adding thread has passed to it.
    filter_[word_of(hash)].fetch_or(bit_of(hash), std::memory_order_relaxed);
  }

  /// Whether the block may be in the set. Costs one load and takes no lock.
  [[nodiscard]] bool may_hold(std::uintptr_t address) const noexcept {
    const std::uint64_t hash = hash_of(address);
    return (filter_[word_of(hash)].load(std::memory_order_relaxed) & bit_of(hash)) != 0;
  }

  /// Removes a block; false if it is not in the set.
  [[nodiscard]] bool remove(std::uintptr_t address) noexcept {
    if (!may_hold(address)) [[likely]]
      return false;
    return remove_found(address);
  }

  /// Discards all entries: a block freed while nothing was recorded would leave an entry that later matches a block of the
  /// program.
  void clear() noexcept {
    const detail::lock_guard guard{lock_};
    slots_ = {};
    count_ = 0;
    clear_filter();
  }

  /// Unlocks the lock whatever its state. Only for a child after `fork`.
  void reset_lock() noexcept { lock_.reset(); }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.bytes(); }

 private:
  static constexpr std::size_t filter_words = 32;

  [[nodiscard]] static std::uint64_t hash_of(std::uintptr_t address) noexcept { return address * 0x9E3779B97F4A7C15U; }
  [[nodiscard]] static std::size_t word_of(std::uint64_t hash) noexcept { return (hash >> 40) % filter_words; }
  [[nodiscard]] static std::uint64_t bit_of(std::uint64_t hash) noexcept { return std::uint64_t{1} << (hash >> 58); }
  [[nodiscard]] static std::size_t home_of(const detail::page_array<std::uintptr_t>& slots, std::uintptr_t address) noexcept {
    return std::size_t{hash_of(address) >> 20} & (slots.size() - 1);
  }
  [[nodiscard]] static std::size_t free_slot(const detail::page_array<std::uintptr_t>& slots, std::uintptr_t address) noexcept {
    std::size_t slot = home_of(slots, address);
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  [[nodiscard]] bool grow() noexcept {
    detail::page_array<std::uintptr_t> larger;
    if (!larger.resize(slots_.empty() ? 512 : 2 * slots_.size())) return false;
    for (const std::uintptr_t address : slots_) {
      if (address != 0) larger[free_slot(larger, address)] = address;
    }
    slots_ = std::move(larger);
    return true;
  }

  [[gnu::cold, gnu::noinline]] bool remove_found(std::uintptr_t address) noexcept {
    const detail::lock_guard guard{lock_};
    if (slots_.empty()) return false;
    std::size_t slot = home_of(slots_, address);
    while (slots_[slot] != address) {
      if (slots_[slot] == 0) return false;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    close_gap(slot);
    if (--count_ == 0) clear_filter();
    return true;
  }

  void clear_filter() noexcept {
    for (auto& word : filter_) word.store(0, std::memory_order_relaxed);
  }

  /// Empties a slot and moves those behind it that a search would no longer find.
  void close_gap(std::size_t gap) noexcept {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = (gap + 1) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
      const std::size_t home = home_of(slots_, slots_[slot]);
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = 0;
  }

  std::atomic<std::uint64_t> filter_[filter_words] = {};
  detail::futex_lock lock_;
  detail::page_array<std::uintptr_t> slots_;  ///< open addressing; 0: free
  std::size_t count_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
