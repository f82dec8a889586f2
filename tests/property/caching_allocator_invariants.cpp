#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <property/random_requests.hpp>
#include <property/sequence_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace memprof;
using namespace memprof::extend;
using namespace memprof::property;

/// Which addresses the device backs with memory: from, to, none of them touching.
class backed_memory {
 public:
  void change(segment_action action, std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
    if (action == segment_action::reserve) {
      add(address, end);
    } else {
      take(address, end);
    }
  }
  [[nodiscard]] bool was_impossible() const { return was_impossible_; }
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& ranges() const { return ranges_; }

 private:
  void add(std::uint64_t begin, std::uint64_t end) {
    auto after = ranges_.lower_bound(begin);
    was_impossible_ = was_impossible_ || (after != ranges_.end() && after->first < end);
    if (after != ranges_.end() && after->first == end) {
      end = after->second;
      after = ranges_.erase(after);
    }
    if (after != ranges_.begin()) {
      const auto before = std::prev(after);
      was_impossible_ = was_impossible_ || before->second > begin;
      if (before->second == begin) {
        before->second = end;
        return;
      }
    }
    ranges_[begin] = end;
  }
  void take(std::uint64_t begin, std::uint64_t end) {
    const auto after = ranges_.upper_bound(begin);
    if (after == ranges_.begin() || std::prev(after)->second < end) {
      was_impossible_ = true;
      return;
    }
    const auto holder = std::prev(after);
    const std::uint64_t holder_end = holder->second;
    holder->second = begin;
    if (holder->first == begin) ranges_.erase(holder);
    if (end < holder_end) ranges_[end] = holder_end;
  }

  bool was_impossible_ = false;
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

/// The blocks in the order of their addresses.
[[nodiscard]] std::vector<const cached_block*> sorted_blocks(const caching_allocator& allocator) {
  std::vector<const cached_block*> blocks;
  allocator.for_each_block([&](const cached_block& block) { blocks.push_back(&block); });
  std::sort(blocks.begin(), blocks.end(), [](const auto* left, const auto* right) { return left->address < right->address; });
  return blocks;
}

[[nodiscard]] std::uint64_t end_of(const cached_block& block) { return block.address + static_cast<std::uint64_t>(block.bytes); }

/// What is wrong with how blocks divide segments; empty if nothing is.
[[nodiscard]] std::string fault_of_division(const std::vector<const cached_block*>& blocks) {
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const cached_block& block = *blocks[index];
    if (block.bytes <= 0) return "a block is empty";
    if (index + 1 < blocks.size() && end_of(block) > blocks[index + 1]->address) return "blocks overlap";
    if (block.next == nullptr) continue;
    if (index + 1 == blocks.size() || block.next != blocks[index + 1]) return "the next block is not the next by address";
    if (block.next->previous != &block) return "the links of two neighbours differ";
    if (end_of(block) != block.next->address) return "there is a gap inside a segment";
    if (block.next->pool != block.pool || block.next->stream != block.stream ||
        block.next->expandable_base != block.expandable_base) {
      return "neighbours are of different segments";
    }
    if (!block.is_active() && !block.next->is_active() && block.is_mapped == block.next->is_mapped) {
      return "free neighbours were not joined";
    }
  }
  return {};
}

/// What of the statistics differs from a recount of the blocks; empty if nothing does.
[[nodiscard]] std::string fault_of_counters(const std::vector<const cached_block*>& blocks,
                                            const caching_allocator_stats& stats) {
  std::int64_t requested = 0, allocated = 0, active = 0, reserved = 0, inactive_split = 0;
  for (const cached_block* const block : blocks) {
    if (block->is_mapped) reserved += block->bytes;
    if (block->is_allocated) allocated += block->bytes;
    if (block->is_active()) active += block->bytes;
    if (block->is_active()) requested += block->requested;
    if (!block->is_active() && !block->is_expandable() && block->is_split()) inactive_split += block->bytes;
    if (block->is_active() && (!block->is_mapped || block->requested > block->bytes)) return "a block is too small";
  }
  if (requested != stats.requested_bytes.current) return "requested_bytes";
  if (allocated != stats.allocated_bytes.current) return "allocated_bytes";
  if (active != stats.active_bytes.current) return "active_bytes";
  if (reserved != stats.reserved_bytes.current) return "reserved_bytes";
  if (inactive_split != stats.inactive_split_bytes.current) return "inactive_split_bytes";
  return {};
}

/// Whether pools have just the free blocks.
[[nodiscard]] std::string fault_of_pools(const std::vector<const cached_block*>& blocks) {
  std::map<const block_pool*, std::size_t> counts;
  for (const cached_block* const block : blocks) {
    const free_block_map& members = block->is_mapped ? block->pool->free() : block->pool->unmapped();
    const auto found = members.find({block->stream, block->is_mapped ? block->bytes : 0, block->address});
    if (block->is_active() != (found == members.end())) return "a pool has a block in use, or lacks a free one";
    if (!block->is_active() && found->second != block) return "a pool has another block under a free one's key";
    if (!block->is_active()) ++counts[block->pool];
  }
  for (const auto& [pool, count] : counts) {
    if (pool->free().size() + pool->unmapped().size() != count) return "a pool has blocks that are none";
  }
  return {};
}

[[nodiscard]] std::string fault_of_backed_memory(const std::vector<const cached_block*>& blocks, const backed_memory& backed) {
  if (backed.was_impossible()) return "memory was reserved twice, or released that was not reserved";
  backed_memory mapped;
  for (const cached_block* const block : blocks) {
    if (block->is_mapped) mapped.change(segment_action::reserve, block->address, block->bytes);
  }
  return mapped.ranges() == backed.ranges() ? "" : "what was reserved is not what blocks are mapped to";
}

/// Runs a sequence and says what goes wrong first.
class checked_run {
 public:
  explicit checked_run(const request_sequence& sequence)
      : sequence_(sequence),
        allocator_(sequence.options, [this](segment_action action, std::uint64_t address,
                                            std::int64_t bytes) { backed_.change(action, address, bytes); }),
        blocks_(sequence.allocations) {
    pool_ = allocator_.make_pool();
  }

  [[nodiscard]] std::string first_fault() {
    for (std::size_t index = 0; index < sequence_.requests.size(); ++index) {
      std::string fault = take(sequence_.requests[index]);
      peak_reserved_ = std::max(peak_reserved_, stats().reserved_bytes.current);
      peak_allocated_ = std::max(peak_allocated_, stats().allocated_bytes.current);
      // A recount of many blocks takes long.
      if (fault.empty() && (sequence_.requests.size() < 100 || index % 8 == 7)) fault = fault_of_state();
      if (!fault.empty()) return "request " + std::to_string(index) + ": " + fault;
    }
    return {};
  }

  [[nodiscard]] const caching_allocator_stats& stats() const { return allocator_.stats(); }

 private:
  [[nodiscard]] std::string take(const request& asked) {
    const cached_block*& block = blocks_[asked.block < blocks_.size() ? asked.block : 0];
    switch (asked.kind) {
      case request_kind::allocate: return allocate(asked, block);
      case request_kind::deallocate:
        if (block != nullptr) allocator_.deallocate(block);
        break;
      case request_kind::record_stream:
        if (block != nullptr) allocator_.record_stream(block, asked.stream);
        break;
      case request_kind::synchronize: allocator_.synchronize(); break;
      case request_kind::empty_cache: allocator_.empty_cache(); break;
    }
    return {};
  }

  [[nodiscard]] std::string allocate(const request& asked, const cached_block*& block) {
    const std::size_t pool = asked.pool == 0 ? 0 : pool_;
    const std::int64_t size = detail::block_size(sequence_.options, static_cast<std::int64_t>(asked.bytes));
    const cached_block* const expected = sequence_.options.expandable_segments ? nullptr : best_fit(asked, size);
    const std::uint64_t expected_address = expected == nullptr ? 0 : expected->address;
    block = allocator_.allocate(asked.bytes, asked.stream, pool);
    if (block == nullptr) return fault_of_refusal(asked, size);
    if (pools_.size() < 2 || pools_.count(block->pool) == 0) pools_[block->pool] = asked.pool;
    if (pools_[block->pool] != asked.pool) return "a pool served another one's request";
    if (block->stream != asked.stream || block->requested != static_cast<std::int64_t>(asked.bytes)) return "the wrong block";
    if (block->bytes < size) return "the block is too small";
    if (expected_address != 0 && block->address != expected_address) return "another block would have fitted best";
    return {};
  }

  /// The free block that a scan of all finds to fit best.
  [[nodiscard]] const cached_block* best_fit(const request& asked, std::int64_t size) const {
    const cached_block* best = nullptr;
    allocator_.for_each_block([&](const cached_block& block) {
      const auto known = pools_.find(block.pool);
      if (block.is_active() || block.stream != asked.stream || block.bytes < size) return;
      if (block.pool->is_small() != (size <= 1 << 20) || known == pools_.end() || known->second != asked.pool) return;
      if (best == nullptr || block.bytes < best->bytes || (block.bytes == best->bytes && block.address < best->address)) {
        best = &block;
      }
    });
    if (best == nullptr) return nullptr;
    const std::int64_t max_split_size = sequence_.options.max_split_size;
    if (size < max_split_size && best->bytes >= max_split_size) return nullptr;
    if (size >= max_split_size && best->bytes >= size + sequence_.options.max_non_split_rounding) return nullptr;
    return best;
  }

  /// A refused request must leave no whole segment cached, and must be too large for what is left.
  [[nodiscard]] std::string fault_of_refusal(const request& asked, std::int64_t size) const {
    const std::int64_t left = sequence_.options.allowed() - allocator_.stats().reserved_bytes.current;
    if (sequence_.options.capacity == 0) return "a device without limit refused";
    // In a pool of its own a request may fail although what was given back for it, and found too little, suffices.
    if (asked.pool != 0) return {};
    if (!sequence_.options.expandable_segments && detail::segment_size(sequence_.options, size) <= left) {
      return "there was room for a segment";
    }
    std::string fault;
    allocator_.for_each_block([&](const cached_block& block) {
      const auto known = pools_.find(block.pool);
      if (known != pools_.end() && known->second != 0) return;
      if (!block.is_active() && !block.is_split() && !block.is_expandable()) fault = "a whole segment was still cached";
    });
    return fault;
  }

  [[nodiscard]] std::string fault_of_state() {
    const std::vector<const cached_block*> blocks = sorted_blocks(allocator_);
    const caching_allocator_stats& stats = allocator_.stats();
    std::string fault = fault_of_division(blocks);
    if (fault.empty()) fault = fault_of_counters(blocks, stats);
    if (fault.empty()) fault = fault_of_pools(blocks);
    if (fault.empty()) fault = fault_of_backed_memory(blocks, backed_);
    if (!fault.empty()) return fault;
    const caching_allocator_options& options = sequence_.options;
    if (options.capacity != 0 && stats.reserved_bytes.peak > options.capacity) return "more was reserved than the device has";
    if (!options.expandable_segments && stats.reserved_bytes.peak > options.allowed()) return "more was reserved than is allowed";
    // Within one request more may be reserved for a moment, as when an expandable segment grew before the request failed.
    if (stats.reserved_bytes.peak < peak_reserved_ || stats.allocated_bytes.peak != peak_allocated_) return "a peak is wrong";
    return {};
  }

  const request_sequence& sequence_;
  backed_memory backed_;
  caching_allocator allocator_;
  std::vector<const cached_block*> blocks_;
  std::map<const block_pool*, std::size_t> pools_;  // to which of the two pools of requests it belongs
  std::size_t pool_ = 0;
  std::int64_t peak_reserved_ = 0;
  std::int64_t peak_allocated_ = 0;
};

/// One in 41 sequences is long.
[[nodiscard]] request_sequence sequence_number(std::uint64_t index) {
  return random_requests(base_seed() + index, index % 41 == 40 ? 400 : 40);
}

}  // namespace

TEST_CASE("caching allocator property: blocks divide segments without gaps, and all counters are what a recount finds") {
  std::printf("caching allocator: %llu sequences, MEMPROF_TEST_SEED=%llu\n", static_cast<unsigned long long>(sequence_count()),
              static_cast<unsigned long long>(base_seed()));
  for (std::uint64_t index = 0; index < sequence_count(); ++index) {
    const request_sequence sequence = sequence_number(index);
    const std::string fault = checked_run{sequence}.first_fault();
    if (fault.empty()) continue;
    FAIL("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index << " with " << to_text(sequence.options) << "\n  "
                              << fault);
  }
  SUCCEED();
}

TEST_CASE("caching allocator property: the random sequences reach every path of the allocator") {
  std::int64_t refused = 0, retried = 0, served_after_retry = 0, collected = 0, oversize = 0, unmapped = 0, unlimited = 0;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const request_sequence sequence = sequence_number(index);
    checked_run run{sequence};
    (void)run.first_fault();
    const caching_allocator_stats& stats = run.stats();
    refused += stats.num_ooms > 0;
    retried += stats.num_alloc_retries > 0;
    served_after_retry += stats.num_alloc_retries > stats.num_ooms;
    collected += sequence.options.collects_garbage() && stats.num_device_free > 0;
    oversize += sequence.options.max_split_size < sequence.options.capacity && stats.num_device_free > 0;
    unmapped += sequence.options.expandable_segments && stats.num_device_free > 0;
    unlimited += sequence.options.capacity == 0;
  }
  for (const std::int64_t reached : {refused, retried, served_after_retry, collected, oversize, unmapped, unlimited}) {
    CHECK(reached > 10);
  }
}
