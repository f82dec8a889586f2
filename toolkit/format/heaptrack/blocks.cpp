#include <memprof/config.hpp>
#include <memprof/toolkit/format/heaptrack/blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void heaptrack_blocks::add_kind(std::uint64_t bytes, std::uint64_t stack) {
  const auto [size, is_new] = sizes_.try_emplace(bytes, static_cast<std::uint32_t>(free_.size()));
  if (is_new) free_.push_back(0);
  kinds_.push_back({bytes, static_cast<std::uint32_t>(stack), size->second, 0});
}

const heaptrack_blocks::kind& heaptrack_blocks::operator[](std::uint64_t index) const noexcept { return kinds_[index]; }

std::uint64_t heaptrack_blocks::allocate(std::uint64_t index) {
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

std::uint64_t heaptrack_blocks::deallocate(std::uint64_t index) noexcept {
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

}  // namespace memprof::inline MEMPROF_ABI::detail
