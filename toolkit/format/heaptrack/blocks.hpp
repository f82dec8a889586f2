#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Assigns addresses to the blocks of a recording that has none, so that no two live blocks overlap. Among blocks of the same
/// size and stack, the newest is freed first. Takes memory for the maximum number of live blocks, by size.
class heaptrack_blocks {
 public:
  struct kind {
    std::uint64_t bytes = 0;
    std::uint32_t stack = 0;
    std::uint32_t size = 0;    ///< index into `free_`
    std::uint32_t newest = 0;  ///< index of its newest live block plus one; 0: none is live
  };

  void add_kind(std::uint64_t bytes, std::uint64_t stack) {
    const auto [size, is_new] = sizes_.try_emplace(bytes, static_cast<std::uint32_t>(free_.size()));
    if (is_new) free_.push_back(0);
    kinds_.push_back({bytes, static_cast<std::uint32_t>(stack), size->second, 0});
  }
  [[nodiscard]] std::size_t kinds() const noexcept { return kinds_.size(); }
  [[nodiscard]] const kind& operator[](std::uint64_t index) const noexcept { return kinds_[index]; }

  /// The address of a new block; 0 if the addresses are exhausted.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t index) {
    kind& of = kinds_[index];
    std::uint32_t& unused = free_[of.size];
    std::uint32_t taken = unused;
    if (taken == 0) {
      if (next_address_ > max_address || blocks_.size() == ~std::uint32_t{0}) return 0;
      blocks_.push_back({next_address_, 0});
      next_address_ += of.bytes / alignment * alignment + alignment;
      taken = static_cast<std::uint32_t>(blocks_.size());
    } else {
      unused = blocks_[taken - 1].next;
    }
    blocks_[taken - 1].next = of.newest;
    of.newest = taken;
    return blocks_[taken - 1].address;
  }
  /// The address of the freed block; 0 if none is live.
  [[nodiscard]] std::uint64_t deallocate(std::uint64_t index) noexcept {
    kind& of = kinds_[index];
    if (of.newest == 0) return 0;
    block& freed = blocks_[of.newest - 1];
    std::uint32_t& unused = free_[of.size];
    const std::uint32_t taken = of.newest;
    of.newest = freed.next;
    freed.next = unused;
    unused = taken;
    return freed.address;
  }

 private:
  static constexpr std::uint64_t alignment = 16;
  static constexpr std::uint64_t max_address = std::uint64_t{1} << 62;

  struct block {
    std::uint64_t address;
    std::uint32_t next;  ///< index plus one of the next older block of its kind, or the next unused one of its size
  };

  std::vector<kind> kinds_;
  std::deque<block> blocks_;         ///< a deque, so that growing copies nothing
  std::vector<std::uint32_t> free_;  ///< by size: the first unused block's index plus one
  std::unordered_map<std::uint64_t, std::uint32_t> sizes_;
  std::uint64_t next_address_ = 0x10000;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
