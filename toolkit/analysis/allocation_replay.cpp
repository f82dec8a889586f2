#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/allocation_replay.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

allocation_replay::allocation_replay(const allocation_sequence& sequence, const caching_allocator_options& options)
    : sequence_(sequence), allocator_(options), blocks_(sequence.block_count()) {
  std::map<std::string_view, std::uint64_t> streams;
  std::map<std::string_view, caching_allocator::pool_id> pools{{"", 0}, {"unknown", 0}};
  for (const label name : sequence.streams()) {
    const std::string_view text = sequence.names().text(name);
    const std::size_t end = text.find(name_separator);
    const std::string_view pool = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (!pools.contains(pool)) pools[pool] = allocator_.make_pool();
    const std::uint64_t stream = streams.try_emplace(text.substr(0, end), streams.size()).first->second;
    places_.push_back({stream, pools[pool]});
  }
}

std::size_t allocation_replay::run_to(std::size_t end) {
  const std::vector<allocation_step>& steps = sequence_.steps();
  for (; done_ < end; ++done_) {
    const allocation_step& step = steps[done_];
    if (step.kind == step_kind::empty_cache) {
      empty_cache(places_[step.stream].pool);
      continue;
    }
    if (step.kind != step_kind::allocate) {
      free(step);
      continue;
    }
    const cached_block* const block = request(step.bytes, static_cast<std::uint16_t>(step.stream));
    if (block == nullptr) return done_;
    blocks_[step.block] = block;
    if (allocator_.stats().reserved_bytes.peak == peak_) continue;
    peak_ = allocator_.stats().reserved_bytes.peak;
    peak_step_ = done_;
  }
  return end;
}

const cached_block* allocation_replay::request(std::uint64_t bytes, std::uint16_t stream) {
  const cached_block* const block = allocator_.allocate(bytes, places_[stream].stream, places_[stream].pool);
  if (allocator_.stats().num_alloc_retries != retries_) forget_awaited();
  return block;
}

void allocation_replay::free(const allocation_step& step) {
  const cached_block*& block = blocks_[step.block];
  if (step.kind == step_kind::complete_deallocation) {
    if (block != nullptr) allocator_.complete(block);
    std::erase(awaited_, step.block);
    return;
  }
  if (step.kind == step_kind::request_deallocation) {
    allocator_.record_stream(block, ~std::uint64_t{0});
    awaited_.push_back(step.block);
  }
  allocator_.deallocate(block);
}

void allocation_replay::empty_cache(caching_allocator::pool_id pool) {
  if (pool != 0) return allocator_.empty_pool(pool);
  allocator_.empty_cache();
  forget_awaited();
}

void allocation_replay::forget_awaited() {
  retries_ = allocator_.stats().num_alloc_retries;
  for (const std::uint32_t number : awaited_) blocks_[number] = nullptr;
  awaited_.clear();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
