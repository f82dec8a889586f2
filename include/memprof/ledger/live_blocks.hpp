#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/trace/label.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// A live allocation in the ledger, in half a cache line.
struct block {
  static constexpr unsigned thread_bits = 20;
  static constexpr std::uint32_t max_thread = (std::uint32_t{1} << thread_bits) - 1;
  static constexpr unsigned category_bits = 8;
  static constexpr label max_annotation = (label{1} << (32 - category_bits)) - 1;

  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t born_thread;  ///< ordinal of its allocation in its space, and the allocating thread
  std::uint64_t owner;        ///< operation, category and annotation: see `owner_word`

  [[nodiscard]] std::uint64_t born() const noexcept { return born_thread >> thread_bits; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return static_cast<std::uint32_t>(born_thread) & max_thread; }
  /// Node of the operation tree.
  [[nodiscard]] std::uint32_t operation() const noexcept { return static_cast<std::uint32_t>(owner); }
  [[nodiscard]] std::uint32_t category() const noexcept {
    return static_cast<std::uint32_t>(owner >> 32) & ((1U << category_bits) - 1);
  }
  /// Label of `name\x1fshape\x1fdtype`, plus `\x1frequires_grad` if known; 0 if there is none.
  [[nodiscard]] label annotation() const noexcept { return static_cast<label>(owner >> (32 + category_bits)); }

  [[nodiscard]] static constexpr std::uint64_t owner_word(std::uint32_t operation, std::uint32_t category,
                                                          label annotation) noexcept {
    return std::uint64_t{annotation} << (32 + category_bits) | std::uint64_t{category} << 32 | operation;
  }
};

static_assert(sizeof(block) == 32);

/// The live blocks of one memory space by address: the table that every event looks up once.
///
/// Groups of 7 blocks, each block with one byte of hash, all packed in one word: a few operations on the word find the
/// candidates, so that the branches of a lookup are nearly always predicted, and erasing needs neither tombstones nor moves. A
/// group counts the blocks that passed it because it was full; a search continues only past such a group (the scheme of Folly's
/// F14). A word instead of a vector: an event that follows another in the same group reads the word just written, and processors
/// only forward that to loads of the same width. At most 3 of 7 slots are used on average, so hardly any group is full: 85 bytes
/// per block before the table grows, 171 after.
class live_blocks {
 public:
  live_blocks() = default;
  live_blocks(const live_blocks&) = delete;
  live_blocks& operator=(const live_blocks&) = delete;
  ~live_blocks() { unmap_pages(groups_, bytes()); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return group_count() * sizeof(group); }

  /// Total number of full groups that the live blocks had to pass, and lookups may have to follow. Costs a pass over the table.
  [[nodiscard]] std::uint64_t passed_groups() const noexcept {
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < group_count(); ++index) total += groups_[index].passed_by;
    return total;
  }

  /// A block's position, with which `erase` can remove it without another lookup.
  struct place {
    block* entry = nullptr;         ///< null if the address is not live
    std::uint64_t* tags = nullptr;  ///< the tags of its group
    unsigned tag_shift = 0;         ///< position of its tag in them
    bool is_at_home = false;        ///< in the group that its hash selects

    explicit operator bool() const noexcept { return entry != nullptr; }
    [[nodiscard]] block* operator->() const noexcept { return entry; }
  };

  /// The block at `address`, if there is one.
  [[nodiscard, gnu::always_inline]] place find(std::uint64_t address) noexcept {
    if (groups_ == nullptr) [[unlikely]]
      return {};
    const std::uint64_t hash = hash_of(address);
    group& home = groups_[hash >> shift_];
    for (std::uint64_t matches = home.matches(hash); matches != 0; matches &= matches - 1) {
      block& candidate = home.block_at(matches);
      if (candidate.address == address) [[likely]]
        return {&candidate, &home.tags, tag_shift_of(matches), true};
    }
    if (home.passed_by == 0) [[likely]]
      return {};
    return find_away(hash, address);
  }

  /// Read-only lookup; null if there is none.
  [[nodiscard]] const block* at(std::uint64_t address) const noexcept {
    return const_cast<live_blocks*>(this)->find(address).entry;  // `find` changes nothing
  }

  /// The result of `insert`.
  struct insertion {
    block* entry;  ///< null if the system has no memory
    bool is_new;   ///< false: the address was in the table, and `entry` is unchanged
  };

  /// The block at `address`; if there is none, a new one with only its address set.
  [[nodiscard, gnu::always_inline]] insertion insert(std::uint64_t address) noexcept {
    if (size_ >= limit_) [[unlikely]] {
      if (!grow()) return {nullptr, false};
    }
    const std::uint64_t hash = hash_of(address);
    group& home = groups_[hash >> shift_];
    for (std::uint64_t matches = home.matches(hash); matches != 0; matches &= matches - 1) {
      block& candidate = home.block_at(matches);
      if (candidate.address == address) [[unlikely]]
        return {&candidate, false};
    }
    const std::uint64_t free = home.free();
    if (free == 0 || home.passed_by != 0) [[unlikely]]
      return insert_away(hash, address);
    ++size_;
    return {&home.take(free, hash, address), true};
  }

  /// Removes a block returned by `find`. The slot keeps its value until the next `insert`.
  [[gnu::always_inline]] void erase(const place& found) noexcept {
    --size_;
    *found.tags &= ~(std::uint64_t{0xFF} << found.tag_shift);
    if (!found.is_at_home) [[unlikely]]
      forget_passing(found);
  }

  /// Prefetches the group of an address that will be looked up soon.
  void prefetch(std::uint64_t address) const noexcept {
    if (groups_ != nullptr) __builtin_prefetch(&groups_[hash_of(address) >> shift_]);
  }

  /// Calls `visit(const block&)` for every live block. Costs a pass over the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (std::size_t index = 0; index < group_count(); ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (groups_[index].is_used(slot)) visit(groups_[index].blocks[slot]);
      }
    }
  }

 private:
  static constexpr std::size_t slots = 7;
  static constexpr std::size_t mean_load = 3;
  static constexpr std::uint64_t each_byte = 0x0101010101010101U;
  static constexpr std::uint64_t used_bits = 0x0080808080808080U;  // the highest bit of each of the 7 tags

  /// Position of the tag for the lowest set bit of `matches`.
  [[nodiscard]] static unsigned tag_shift_of(std::uint64_t matches) noexcept {
    return static_cast<unsigned>(std::countr_zero(matches)) & ~7U;
  }

  /// A used tag: 7 bits of the hash that do not select the group in tables of up to 2^25 groups.
  [[nodiscard]] static std::uint64_t tag_of(std::uint64_t hash) noexcept { return 0x80U | ((hash >> 32) & 0x7FU); }

  struct alignas(64) group {
    std::uint64_t tags;       // 7 bytes; 0: free
    std::uint32_t passed_by;  // number of blocks that found this group full
    alignas(32) block blocks[slots];

    /// The highest bit of each tag that may match the hash. A false match is possible above a true one; the address decides.
    [[nodiscard]] std::uint64_t matches(std::uint64_t hash) const noexcept {
      const std::uint64_t difference = tags ^ tag_of(hash) * each_byte;
      return (difference - each_byte) & ~difference & used_bits;
    }
    [[nodiscard]] std::uint64_t free() const noexcept { return ~tags & used_bits; }
    [[nodiscard]] bool is_used(std::size_t slot) const noexcept { return (tags >> (8 * slot) & 0x80U) != 0; }
    [[nodiscard]] block& block_at(std::uint64_t match) noexcept { return blocks[tag_shift_of(match) / 8]; }

    [[gnu::always_inline]] block& take(std::uint64_t free_slots, std::uint64_t hash, std::uint64_t address) noexcept {
      tags |= tag_of(hash) << tag_shift_of(free_slots);
      block& taken = block_at(free_slots);
      taken.address = address;
      return taken;
    }
  };
  static_assert(sizeof(group) == 256);

  [[nodiscard]] std::size_t group_count() const noexcept { return groups_ == nullptr ? 0 : mask_ + 1; }

  /// Fibonacci hashing: the high bits of the product depend on all bits of the address.
  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t address) noexcept { return address * 0x9E3779B97F4A7C15U; }

  /// Continues a search past a home group that was passed.
  [[nodiscard, gnu::noinline]] place find_away(std::uint64_t hash, std::uint64_t address) noexcept {
    const std::size_t home = hash >> shift_;
    for (std::size_t index = (home + 1) & mask_; index != home; index = (index + 1) & mask_) {
      group& here = groups_[index];
      for (std::uint64_t matches = here.matches(hash); matches != 0; matches &= matches - 1) {
        block& candidate = here.block_at(matches);
        if (candidate.address == address) return {&candidate, &here.tags, tag_shift_of(matches), false};
      }
      if (here.passed_by == 0) break;
    }
    return {};
  }

  /// Removes an erased block from the counts of the groups it had passed.
  [[gnu::noinline]] void forget_passing(const place& erased) noexcept {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<char*>(erased.entry) - reinterpret_cast<char*>(groups_));
    const std::size_t end = offset / sizeof(group);
    for (std::size_t index = hash_of(erased->address) >> shift_; index != end; index = (index + 1) & mask_)
      --groups_[index].passed_by;
  }

  /// Inserts if the home group is full or was passed: the address may be further on.
  [[gnu::noinline]] insertion insert_away(std::uint64_t hash, std::uint64_t address) noexcept {
    if (const place known = find_away(hash, address)) return {known.entry, false};
    ++size_;
    return {&make_room(address), true};
  }

  /// A slot for an address that is not in the table.
  [[nodiscard]] block& make_room(std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    for (std::size_t index = hash >> shift_;; index = (index + 1) & mask_) {
      group& here = groups_[index];
      if (const std::uint64_t free = here.free(); free != 0) [[likely]]
        return here.take(free, hash, address);
      ++here.passed_by;
    }
  }

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    group* const old_groups = groups_;
    const std::size_t old_count = group_count();
    const std::size_t count = old_count == 0 ? 32 : 2 * old_count;
    void* const pages = map_pages(count * sizeof(group));
    if (pages == nullptr) return false;
    groups_ = static_cast<group*>(pages);
    mask_ = count - 1;
    shift_ = static_cast<unsigned>(64 - std::countr_zero(count));
    limit_ = count * mean_load;
    for (std::size_t index = 0; index < old_count; ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (!old_groups[index].is_used(slot)) continue;
        const block& moving = old_groups[index].blocks[slot];
        make_room(moving.address) = moving;
      }
    }
    unmap_pages(old_groups, old_count * sizeof(group));
    return true;
  }

  group* groups_ = nullptr;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::size_t size_ = 0;
  std::size_t limit_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
