#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>

#include <utility>

namespace memprof::inline MEMPROF_ABI {

void block_pool::add(cached_block& block) {
  free_block_map& blocks = block.is_mapped ? free_ : unmapped_;
  block.free_since = searches_;
  if (spare_.empty()) {
    block.position = blocks.emplace(key_of(block), &block).first;
    return;
  }
  spare_.key() = key_of(block);
  spare_.mapped() = &block;
  block.position = blocks.insert(std::move(spare_)).position;
}

free_block_key block_pool::key_of(const cached_block& block) noexcept {
  return {block.stream, block.is_mapped ? block.bytes : 0, block.address};
}

cached_block& block_store::take() {
  if (unused_ == nullptr) return blocks_.emplace_back();
  cached_block& taken = *unused_;
  unused_ = taken.next;
  taken = {};
  return taken;
}

void block_store::give_back(cached_block& block) noexcept {
  block.pool = nullptr;
  block.next = unused_;
  unused_ = &block;
}

}  // namespace memprof::inline MEMPROF_ABI
