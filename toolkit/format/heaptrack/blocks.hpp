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

  void add_kind(std::uint64_t bytes, std::uint64_t stack);
  [[nodiscard]] std::size_t kinds() const noexcept { return kinds_.size(); }
  [[nodiscard]] const kind& operator[](std::uint64_t index) const noexcept;

  /// The address of a new block; 0 if the addresses are exhausted.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t index);
  /// The address of the freed block; 0 if none is live.
  [[nodiscard]] std::uint64_t deallocate(std::uint64_t index) noexcept;

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
