#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <property/random_requests.hpp>
#include <property/sequence_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Why so much is reserved: the division of the model's blocks against a plain search, and the division of a trace's addresses,
/// of the same requests, against that of the model.

namespace {

using namespace memprof;
using namespace memprof::extend;
using namespace memprof::property;

constexpr std::string_view space_name = "cuda:0";

/// What a request sees, found block by block: for each free one, whether blocks in use lie on both sides before its segment, or
/// the mapped part of it, ends.
[[nodiscard]] fragmentation searched(const caching_allocator& allocator, std::uint64_t stream, caching_allocator::pool_id pool) {
  std::vector<const cached_block*> blocks;
  allocator.for_each_block([&](const cached_block& block) {
    if (block.is_mapped) blocks.push_back(&block);
  });
  std::sort(blocks.begin(), blocks.end(), [](const auto* left, const auto* right) { return left->address < right->address; });
  const auto touch = [&](std::size_t left) {
    const cached_block& before = *blocks[left];
    const cached_block& after = *blocks[left + 1];
    return before.address + static_cast<std::uint64_t>(before.bytes) == after.address && before.stream == after.stream &&
           before.pool == after.pool && before.expandable_base == after.expandable_base;
  };
  fragmentation found;
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const cached_block& block = *blocks[index];
    found.reserved += block.bytes;
    if (block.is_allocated) {
      found.live += block.requested;
      found.rounding += block.bytes - block.requested;
    } else if (block.awaits_streams) {
      found.pending += block.bytes;
    } else if (!allocator.serves(block, stream, pool)) {
      found.stream += block.bytes;
    } else {
      bool has_before = false;
      for (std::size_t at = index; at > 0 && touch(at - 1); --at) has_before = has_before || blocks[at - 1]->is_active();
      bool has_after = false;
      for (std::size_t at = index; at + 1 < blocks.size() && touch(at); ++at)
        has_after = has_after || blocks[at + 1]->is_active();
      (has_before && has_after ? found.hard : found.soft) += block.bytes;
    }
  }
  return found;
}

/// The requests of a sequence as a trace, with the sizes of blocks.
class recorded_run {
 public:
  explicit recorded_run(const request_sequence& sequence)
      : sequence_(sequence),
        allocator_(sequence.options,
                   [this](segment_action action, std::uint64_t address, std::int64_t bytes) {
                     const auto kind = action == segment_action::reserve ? event_kind::reserve : event_kind::release;
                     device_events_.push_back({0, address, static_cast<std::uint64_t>(bytes), asking_, kind, 0, 0});
                   }),
        blocks_(sequence.allocations),
        pool_(allocator_.make_pool()) {}

  [[nodiscard]] std::string first_fault() {
    for (std::size_t index = 0; index < sequence_.requests.size(); ++index) {
      const request& asked = sequence_.requests[index];
      take(asked);
      const caching_allocator::pool_id pool = asked.pool == 0 ? 0 : pool_;
      const fragmentation parts = fragmentation_of(allocator_, asked.stream, pool);
      const caching_allocator_stats& stats = allocator_.stats();
      const std::string where = "request " + std::to_string(index) + ": ";
      if (parts.reserved != stats.reserved_bytes.current) return where + "reserved";
      if (parts.allocated() != stats.allocated_bytes.current) return where + "allocated";
      if (parts.unused() != parts.pending + parts.hard + parts.soft + parts.stream) return where + "the sum";
      if (!(parts == searched(allocator_, asked.stream, pool))) return where + "not what a search finds";
    }
    return fault_of_trace();
  }

  /// A `trace_source`.
  template <class Visitor>
  void visit(Visitor& visitor) const {
    visitor.name(1, space_name);
    for (label id = 0; id < 6; ++id) {
      visitor.name(2 + id, "stream " + std::to_string(id / 2) + detail::name_separator + (id % 2 == 0 ? "" : "0:1"));
    }
    visitor.space({.id = 0, .name = 1});
    visitor.events(events_.data(), events_.data() + events_.size(), 0);
  }

 private:
  void take(const request& asked) {
    const cached_block*& block = blocks_[asked.block < blocks_.size() ? asked.block : 0];
    switch (asked.kind) {
      case request_kind::allocate: allocate(asked, block); break;
      case request_kind::deallocate:
        if (block == nullptr) break;
        add(event_kind::deallocate_on_stream, *block, block->awaits_streams ? 1 : 0);
        if (block->awaits_streams) awaited_.push_back(block->address);
        allocator_.deallocate(block);
        break;
      case request_kind::record_stream:
        if (block != nullptr) allocator_.record_stream(block, asked.stream);
        break;
      case request_kind::synchronize:
        complete();
        allocator_.synchronize();
        break;
      case request_kind::empty_cache:
        complete();
        allocator_.empty_cache();
        add_device_events();
        break;
    }
  }

  void allocate(const request& asked, const cached_block*& block) {
    asking_ = static_cast<label>(2 + 2 * asked.stream + asked.pool);
    const std::int64_t peak = allocator_.stats().reserved_bytes.peak;
    const std::int64_t retries = allocator_.stats().num_alloc_retries;
    block = allocator_.allocate(asked.bytes, asked.stream, asked.pool == 0 ? 0 : pool_);
    if (allocator_.stats().num_alloc_retries != retries) complete();
    add_device_events();
    if (block != nullptr) {
      add(event_kind::allocate_on_stream, *block, 0);
    } else {
      events_.push_back({0, unknown_device_free, asked.bytes, 0, event_kind::out_of_memory, 0, 0});
    }
    const fragmentation parts = fragmentation_of(allocator_, asked.stream, asked.pool == 0 ? 0 : pool_);
    if (allocator_.stats().reserved_bytes.peak != peak) at_peak_ = block == nullptr ? std::nullopt : std::optional{parts};
  }

  void add(event_kind kind, const cached_block& block, std::uint16_t tag) {
    const auto name = static_cast<label>(2 + 2 * block.stream + (allocator_.serves(block, block.stream, 0) ? 0 : 1));
    events_.push_back({0, block.address, static_cast<std::uint64_t>(block.bytes), name, kind, 0, tag});
  }
  void add_device_events() {
    events_.insert(events_.end(), device_events_.begin(), device_events_.end());
    device_events_.clear();
  }
  void complete() {
    for (const std::uint64_t address : awaited_) events_.push_back({0, address, 0, 0, event_kind::complete_deallocation, 0, 0});
    awaited_.clear();
  }

  [[nodiscard]] std::string fault_of_trace() const {
    const std::optional<recorded_fragmentation> found =
        fragmentation_in(*this, space_name, {.expandable_segments = sequence_.options.expandable_segments});
    if (!found || !at_peak_) return {};  // nothing was reserved, or most for a request that failed
    const auto without_sizes = [](fragmentation parts) {
      parts.live += parts.rounding;
      parts.rounding = 0;
      return parts;
    };
    if (found->outside != 0) return "a block lies outside";
    return without_sizes(found->at_peak.parts) == without_sizes(*at_peak_) ? "" : "the trace says something else of the peak";
  }

  const request_sequence& sequence_;
  label asking_ = 0;
  std::vector<event> device_events_;  ///< of one request
  std::vector<event> events_;
  std::vector<std::uint64_t> awaited_;
  caching_allocator allocator_;
  std::vector<const cached_block*> blocks_;
  caching_allocator::pool_id pool_;
  std::optional<fragmentation> at_peak_;
};

}  // namespace

TEST_CASE("fragmentation: the causes add up, are what a search finds, and are the same in a trace, in random sequences") {
  const std::uint64_t count = sequence_count() / 5;
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint64_t seed = base_seed() + index;
    const request_sequence sequence = random_requests(seed, 20 + index % 180);
    const std::string fault = recorded_run{sequence}.first_fault();
    INFO("seed " << seed << ", " << to_text(sequence.options) << ": " << fault);
    REQUIRE(fault.empty());
  }
  std::printf("seed %llu: %llu sequences\n", static_cast<unsigned long long>(base_seed()),
              static_cast<unsigned long long>(count));
}
