#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/pages.hpp>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI::detail {

/// Finds small values by 64-bit keys other than 0. Entries are added, one thread at a time, and never change or go: those who
/// search take no lock. Never destroyed.
template <class Value>
class lasting_table {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  constexpr lasting_table() noexcept = default;

  /// Null if it is not there.
  [[nodiscard, gnu::always_inline]] const Value* find(std::uint64_t key) const noexcept {
    // Acquire pairs with the release in `grow`.
    const slots* const table = slots_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (std::size_t place = place_of(key);; ++place) {
      const entry& each = table->entries()[place & table->mask];
      // Acquire pairs with the release in `put`.
      const std::uint64_t seen = each.key.load(std::memory_order_acquire);
      if (seen == key) [[likely]]
        return &each.value;
      if (seen == 0) return nullptr;
    }
  }

  /// Adds one that is not there. False if the system has no memory.
  [[nodiscard]] bool add(std::uint64_t key, const Value& value) noexcept {
    if (!reserve_one()) return false;
    put(*slots_.load(std::memory_order_relaxed), key, value);
    ++size_;
    return true;
  }

  /// Makes room for one more. False if the system has no memory.
  [[nodiscard]] bool reserve_one() noexcept {
    const slots* const table = slots_.load(std::memory_order_relaxed);
    return (table != nullptr && 2 * (size_ + 1) <= table->mask + 1) || grow(table);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct entry {
    std::atomic<std::uint64_t> key;
    Value value;
  };
  struct alignas(entry) slots {
    std::size_t mask;

    [[nodiscard]] entry* entries() noexcept { return reinterpret_cast<entry*>(this + 1); }
    [[nodiscard]] const entry* entries() const noexcept { return reinterpret_cast<const entry*>(this + 1); }
    [[nodiscard]] static std::size_t bytes_for(std::size_t count) noexcept { return sizeof(slots) + count * sizeof(entry); }
  };

  [[nodiscard]] static std::size_t place_of(std::uint64_t key) noexcept { return key * 0x9E3779B97F4A7C15U >> 32; }

  static void put(slots& table, std::uint64_t key, const Value& value) noexcept {
    std::size_t place = place_of(key);
    while (table.entries()[place & table.mask].key.load(std::memory_order_relaxed) != 0) ++place;
    entry& free = table.entries()[place & table.mask];
    free.value = value;
    free.key.store(key, std::memory_order_release);
  }

  /// Threads may still be searching the smaller table, so that stays where it is; all of them together are as large as the last.
  [[nodiscard]] bool grow(const slots* before) noexcept {
    const std::size_t count = before == nullptr ? 1024 : 2 * (before->mask + 1);
    void* const pages = map_pages(slots::bytes_for(count));
    if (pages == nullptr) return false;
    auto* const table = new (pages) slots{count - 1};
    for (std::size_t place = 0; before != nullptr && place <= before->mask; ++place) {
      const entry& each = before->entries()[place];
      if (const std::uint64_t key = each.key.load(std::memory_order_relaxed); key != 0) put(*table, key, each.value);
    }
    bytes_ += slots::bytes_for(count);
    slots_.store(table, std::memory_order_release);
    return true;
  }

  std::atomic<slots*> slots_{nullptr};
  std::size_t bytes_ = 0;
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
