#pragma once

#include <memprof/core/label.hpp>
#include <memprof/detail/pages.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace memprof {

/// What the ledger keeps of a live allocation, in half a cache line.
struct block {
  static constexpr unsigned thread_bits = 20;
  static constexpr std::uint32_t max_thread = (std::uint32_t{1} << thread_bits) - 1;
  static constexpr unsigned category_bits = 8;
  static constexpr label max_annotation = (label{1} << (32 - category_bits)) - 1;

  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t born_thread;          ///< ordinal of its allocation in its space, and the allocating thread
  std::uint32_t operation;            ///< node of the operation tree
  std::uint32_t annotation_category;  ///< label of `name\x1fshape\x1fdtype` (0: none), and the category

  [[nodiscard]] std::uint64_t born() const noexcept { return born_thread >> thread_bits; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return static_cast<std::uint32_t>(born_thread) & max_thread; }
  [[nodiscard]] label annotation() const noexcept { return annotation_category >> category_bits; }
  [[nodiscard]] std::uint32_t category() const noexcept { return annotation_category & ((1U << category_bits) - 1); }
};

static_assert(sizeof(block) == 32);

/// The live blocks of one memory space by address: the table that every event asks once.
///
/// Groups of 15 blocks with a byte of hash for each: one comparison of 16 bytes finds the candidates, so that the branches of a
/// lookup are nearly always predicted, and erasing needs neither tombstones nor moves. A group counts how many blocks passed
/// it because it was full; a search goes on only past such a group (the scheme of Folly's F14). At most 10 of 15 slots are used on average.
/// About 100 bytes a block after growing, 51 before.
class live_blocks {
 public:
  live_blocks() = default;
  live_blocks(const live_blocks&) = delete;
  live_blocks& operator=(const live_blocks&) = delete;
  ~live_blocks() { detail::unmap_pages(groups_, bytes()); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return group_count() * sizeof(group); }

  /// Where a block is: what `erase` needs to take it away without looking again.
  struct place {
    block* entry = nullptr;  ///< null if the address is not live
    std::uint8_t* tag = nullptr;
    bool is_at_home = false;  ///< in the group that its hash names

    explicit operator bool() const noexcept { return entry != nullptr; }
    [[nodiscard]] block* operator->() const noexcept { return entry; }
  };

  /// The block at `address`, if there is one.
  [[nodiscard, gnu::always_inline]] place find(std::uint64_t address) noexcept {
    if (groups_ == nullptr) [[unlikely]] return {};
    const std::uint64_t hash = hash_of(address);
    group& home = groups_[hash >> shift_];
    for (std::uint32_t matches = home.matches(tag_of(hash)); matches != 0; matches &= matches - 1) {
      const int slot = std::countr_zero(matches);
      if (home.blocks[slot].address == address) [[likely]] return {&home.blocks[slot], &home.tags[slot], true};
    }
    if (home.passed_by() == 0) [[likely]] return {};
    return find_away(hash, address);
  }

  /// What `insert` found or made.
  struct insertion {
    block* entry;  ///< null if the system has no memory
    bool is_new;   ///< false: the address was in the table, and `entry` is unchanged
  };

  /// The block at `address`; if there is none, a new one of which only the address is set.
  [[nodiscard, gnu::always_inline]] insertion insert(std::uint64_t address) noexcept {
    if (size_ >= limit_) [[unlikely]] {
      if (!grow()) return {nullptr, false};
    }
    const std::uint64_t hash = hash_of(address);
    const std::uint8_t tag = tag_of(hash);
    group& home = groups_[hash >> shift_];
    for (std::uint32_t matches = home.matches(tag); matches != 0; matches &= matches - 1) {
      block& candidate = home.blocks[std::countr_zero(matches)];
      if (candidate.address == address) [[unlikely]] return {&candidate, false};
    }
    const std::uint32_t free = home.matches(0);
    if (free == 0 || home.passed_by() != 0) [[unlikely]] return insert_away(address);
    ++size_;
    return {&take(home, free, tag, address), true};
  }

  /// Removes a block that `find` returned. The slot keeps its value until the next `insert`.
  [[gnu::always_inline]] void erase(const place& found) noexcept {
    --size_;
    *found.tag = 0;
    if (!found.is_at_home) [[unlikely]] forget_passing(found);
  }

  /// Starts loading the group of an address that will be asked for soon.
  void prefetch(std::uint64_t address) const noexcept {
    if (groups_ != nullptr) __builtin_prefetch(&groups_[hash_of(address) >> shift_]);
  }

  /// Calls `visit(const block&)` for every live block. Costs a pass over the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (std::size_t index = 0; index < group_count(); ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (groups_[index].tags[slot] != 0) visit(groups_[index].blocks[slot]);
      }
    }
  }

 private:
  static constexpr std::size_t slots = 15;
  static constexpr std::size_t mean_load = 10;
  static constexpr std::uint8_t saturated = 255;

  struct alignas(64) group {
    std::uint8_t tags[slots + 1];  // 0: free; the last one counts the blocks that found this group full
    block blocks[slots];

    [[nodiscard]] std::uint32_t passed_by() const noexcept { return tags[slots]; }

    /// A bit for each slot whose tag is `tag`.
    [[nodiscard]] std::uint32_t matches(std::uint8_t tag) const noexcept {
#if defined(__SSE2__)
      const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
      const __m128i equal = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
      return static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & ((1U << slots) - 1);
#else
      std::uint32_t mask = 0;
      for (std::size_t slot = 0; slot < slots; ++slot) mask |= static_cast<std::uint32_t>(tags[slot] == tag) << slot;
      return mask;
#endif
    }
  };

  [[nodiscard]] std::size_t group_count() const noexcept { return groups_ == nullptr ? 0 : mask_ + 1; }

  /// Fibonacci hashing: the high bits of the product depend on all bits of the address.
  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t address) noexcept { return address * 0x9E3779B97F4A7C15U; }
  [[nodiscard]] std::uint8_t tag_of(std::uint64_t hash) const noexcept {
    return static_cast<std::uint8_t>(0x80U | ((hash >> (shift_ - 7)) & 0x7FU));
  }

  [[nodiscard]] static block& take(group& here, std::uint32_t free, std::uint8_t tag, std::uint64_t address) noexcept {
    const int slot = std::countr_zero(free);
    here.tags[slot] = tag;
    here.blocks[slot].address = address;
    return here.blocks[slot];
  }

  /// A search beyond a home group that was passed by.
  [[nodiscard, gnu::noinline]] place find_away(std::uint64_t hash, std::uint64_t address) noexcept {
    const std::size_t home = hash >> shift_;
    // A saturated count is never lowered, so hostile addresses may leave no group that ends the search but the home itself.
    for (std::size_t index = (home + 1) & mask_; index != home; index = (index + 1) & mask_) {
      group& here = groups_[index];
      for (std::uint32_t matches = here.matches(tag_of(hash)); matches != 0; matches &= matches - 1) {
        const int slot = std::countr_zero(matches);
        if (here.blocks[slot].address == address) return {&here.blocks[slot], &here.tags[slot], false};
      }
      if (here.passed_by() == 0) break;
    }
    return {};
  }

  /// Takes an erased block off the counts of the groups it had passed.
  [[gnu::noinline]] void forget_passing(const place& erased) noexcept {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<char*>(erased.entry) - reinterpret_cast<char*>(groups_));
    const std::size_t end = offset / sizeof(group);
    for (std::size_t index = hash_of(erased->address) >> shift_; index != end; index = (index + 1) & mask_) {
      if (groups_[index].tags[slots] != saturated) --groups_[index].tags[slots];
    }
  }

  /// The same when the home group is full or was passed by: the address may live further on.
  [[gnu::noinline]] insertion insert_away(std::uint64_t address) noexcept {
    if (const place known = find(address)) return {known.entry, false};
    ++size_;
    return {&make_room(address), true};
  }

  /// A slot for an address that is not in the table.
  [[nodiscard]] block& make_room(std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    for (std::size_t index = hash >> shift_;; index = (index + 1) & mask_) {
      group& here = groups_[index];
      const std::uint32_t free = here.matches(0);
      if (free != 0) [[likely]] return take(here, free, tag_of(hash), address);
      if (here.tags[slots] != saturated) ++here.tags[slots];
    }
  }

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    group* const old_groups = groups_;
    const std::size_t old_count = group_count();
    const std::size_t count = old_count == 0 ? 16 : 2 * old_count;
    void* const pages = detail::map_pages(count * sizeof(group));
    if (pages == nullptr) return false;
    groups_ = static_cast<group*>(pages);
    mask_ = count - 1;
    shift_ = static_cast<unsigned>(64 - std::countr_zero(count));
    limit_ = count * mean_load;
    for (std::size_t index = 0; index < old_count; ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (old_groups[index].tags[slot] == 0) continue;
        const block& moving = old_groups[index].blocks[slot];
        make_room(moving.address) = moving;
      }
    }
    detail::unmap_pages(old_groups, old_count * sizeof(group));
    return true;
  }

  group* groups_ = nullptr;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::size_t size_ = 0;
  std::size_t limit_ = 0;
};

}  // namespace memprof
