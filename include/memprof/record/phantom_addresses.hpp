#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// Hands out addresses without memory behind them: unique among those in use, aligned, never readable or writable.
///
/// They come from one range of address space, reserved without access rights, so that touching one faults and the range costs no
/// memory. A freed address serves the next request of the same size and alignment. Constant time; thread-safe; its own memory
/// grows with the greatest number of blocks that were free at once.
class phantom_addresses {
 public:
  /// Every address is a multiple of this, as with device allocators, and of the requested alignment.
  static constexpr std::size_t least_alignment = 64;

  /// Reserves as much address space as the system allows, up to 64 TiB. If it allows none, `take` fails.
  phantom_addresses() noexcept {
#if defined(__unix__) || defined(__APPLE__)
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (unsigned bits = 46; bits >= 36; --bits) {
      const std::size_t bytes = std::size_t{1} << bits;
      void* const range = ::mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
      if (range == MAP_FAILED) continue;
      first_ = next_ = reinterpret_cast<std::uintptr_t>(range);
      last_ = first_ + bytes;
      break;
    }
#endif
  }
  phantom_addresses(const phantom_addresses&) = delete;
  phantom_addresses& operator=(const phantom_addresses&) = delete;
  ~phantom_addresses() {
#if defined(__unix__) || defined(__APPLE__)
    if (first_ != 0) ::munmap(reinterpret_cast<void*>(first_), last_ - first_);
#endif
  }

  /// False if the system had no room to reserve.
  [[nodiscard]] bool is_usable() const noexcept { return first_ != 0; }

  /// Whether an address lies in the reserved range. Safe in a signal handler.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value >= first_ && value < last_;
  }

  /// An address for `bytes` bytes; null if the range or the profiler's memory is exhausted. `alignment` is a power of two.
  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > last_ - first_ || alignment > last_ - first_) return nullptr;
    const shape wanted = shape_of(bytes, alignment);
    const detail::lock_guard guard{lock_};
    const std::size_t list = find_list(wanted);
    if (list != no_list && lists_[list].head != 0) {
      const std::uint32_t node = lists_[list].head;
      lists_[list].head = nodes_[node].next;
      nodes_[node].next = unused_;
      unused_ = node;
      return reinterpret_cast<void*>(nodes_[node].address);
    }
    const std::uintptr_t aligned = (next_ + wanted.alignment - 1) & ~(wanted.alignment - 1);
    if (aligned < next_ || aligned > last_ || wanted.bytes > last_ - aligned) return nullptr;
    next_ = aligned + wanted.bytes;
    return reinterpret_cast<void*>(aligned);
  }

  /// Gives back an address that `take` returned for the same size and alignment.
  void give_back(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    const shape rounded = shape_of(bytes, alignment);
    const detail::lock_guard guard{lock_};
    // If there is no memory for the list, the address is never reused, which is safe: the range is far larger than what is live.
    const std::size_t list = make_list(rounded);
    if (list == no_list) return;
    std::uint32_t node = unused_;
    if (node != 0) {
      unused_ = nodes_[node].next;
    } else {
      if (nodes_.empty() && !nodes_.push_back({})) return;  // entry 0 ends lists
      if (!nodes_.push_back({})) return;
      node = static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    nodes_[node] = {reinterpret_cast<std::uintptr_t>(address), lists_[list].head};
    lists_[list].head = node;
  }

  /// Bytes taken from the system for lists; the reserved range takes none.
  [[nodiscard]] std::size_t bytes() const noexcept { return lists_.bytes() + nodes_.bytes(); }

  /// Unlocks the lock whatever its state. Only for a child after `fork`.
  void reset_lock() noexcept { lock_.reset(); }

 private:
  struct shape {
    std::size_t bytes;
    std::size_t alignment;
  };
  /// Freed addresses of one size and alignment.
  struct free_list {
    std::size_t bytes;  // 0: this slot of the table is empty
    std::size_t alignment;
    std::uint32_t head;
  };
  struct free_node {
    std::uintptr_t address;
    std::uint32_t next;
  };
  static constexpr std::size_t no_list = ~std::size_t{0};

  [[nodiscard]] static shape shape_of(std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t rounded = (bytes + least_alignment - 1) & ~(least_alignment - 1);
    return {rounded == 0 ? least_alignment : rounded, alignment < least_alignment ? least_alignment : alignment};
  }

  [[nodiscard]] std::size_t first_slot(const shape& wanted) const noexcept {
    const std::uint64_t key = wanted.bytes * 64 + static_cast<unsigned>(std::countr_zero(wanted.alignment));
    return std::size_t{(key * 0x9E3779B97F4A7C15U) >> 20} & (lists_.size() - 1);
  }

  /// The slot of the shape's list, or the empty slot where it would be; `no_list` if there is no table.
  [[nodiscard]] std::size_t slot_of(const shape& wanted) const noexcept {
    if (lists_.empty()) return no_list;
    std::size_t slot = first_slot(wanted);
    while (lists_[slot].bytes != 0 && (lists_[slot].bytes != wanted.bytes || lists_[slot].alignment != wanted.alignment)) {
      slot = (slot + 1) & (lists_.size() - 1);
    }
    return slot;
  }

  [[nodiscard]] std::size_t find_list(const shape& wanted) const noexcept {
    const std::size_t slot = slot_of(wanted);
    return slot != no_list && lists_[slot].bytes != 0 ? slot : no_list;
  }

  [[nodiscard]] std::size_t make_list(const shape& wanted) noexcept {
    const std::size_t known = find_list(wanted);
    if (known != no_list) return known;
    if (2 * (list_count_ + 1) > lists_.size() && !grow_lists()) return no_list;
    const std::size_t slot = slot_of(wanted);
    lists_[slot] = {wanted.bytes, wanted.alignment, 0};
    ++list_count_;
    return slot;
  }

  [[nodiscard]] bool grow_lists() noexcept {
    detail::page_array<free_list> larger;
    if (!larger.resize(lists_.empty() ? 256 : 2 * lists_.size())) return false;
    const detail::page_array<free_list> old{std::exchange(lists_, std::move(larger))};
    for (const free_list& list : old) {
      if (list.bytes != 0) lists_[slot_of({list.bytes, list.alignment})] = list;
    }
    return true;
  }

  std::uintptr_t first_ = 0;
  std::uintptr_t last_ = 0;
  std::uintptr_t next_ = 0;
  detail::futex_lock lock_;
  detail::page_array<free_list> lists_;
  std::size_t list_count_ = 0;
  detail::page_array<free_node> nodes_;
  std::uint32_t unused_ = 0;  ///< head of the list of nodes whose address was taken again
};

}  // namespace memprof::inline MEMPROF_ABI::detail
