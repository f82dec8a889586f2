#pragma once

#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/freed_categories.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/saved_state/facets.hpp>
#include <memprof/ledger/saved_state/segments.hpp>
#include <memprof/ledger/saved_state/values.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// Memory spaces, and memories that several of them share.
struct saved_spaces : saved_values {
  template <class State, class Space>
  static void space(State& state, Space& part, std::size_t operation_count, const segment_history& history) noexcept {
    const std::size_t segment_count = history.marks().size();
    totals(state, part);
    owner_statistics(state, part, operation_count);
    state.rows(part.owners_, [&](auto& row) {
      operation(state, row.operation, operation_count);
      state.amounts(row.bytes, row.blocks);
    });
    state.rows(part.segments_, [&](auto& record) {
      segment(state, record, operation_count);
      state.require(record.first_owner <= part.owners_.size() && record.owner_count <= part.owners_.size() - record.first_owner);
    });
    state.require(part.segments_.size() <= segment_count);
    state.amounts(part.overall_peak_, part.overall_segment_);
    summaries(state, part.by_name_, history.rows().size());
    fits(state, part.lines_, history.rows().size());
    owners(state, part.overall_owners_, operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.options_.largest_blocks);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_since_peak_[index], operation_count);
    largest_of_finished(state, part.largest_of_finished_, operation_count, segment_count);
    shortfall(state, part, operation_count);
    saved_segments::line(state, part.line_);
    for (auto* unusual : {&part.unmatched_frees, &part.replaced_allocations, &part.mismatched_sizes, &part.cross_thread_frees,
                          &part.unknown_annotations, &part.untracked_allocations, &part.null_allocations}) {
      counted(state, *unusual);
    }
    saved_facets::cores(state, part.cores_, history);
    saved_facets::reserved(state, part.reserved_, history);
    saved_facets::streams(state, part.streams_);
    saved_facets::active(state, part.active_, history);
    saved_facets::out_of_memory(state, part.out_of_memory_, operation_count);
  }

  template <class State, class Space>
  static void totals(State& state, Space& part) noexcept {
    std::int64_t allocated = part.allocated();
    std::int64_t start_allocated = part.room_at_begin_ - part.start_room_;
    state.totals(allocated);
    state.totals(start_allocated);
    state.require(start_allocated <= allocated);
    if constexpr (State::reads) {
      part.room_ = std::min(std::numeric_limits<std::int64_t>::max() - allocated, state_reader::greatest);
      part.room_at_begin_ = part.room_ + allocated;
      part.start_room_ = part.room_at_begin_ - start_allocated;
    }
    state.amounts(part.ordinal_, part.start_ordinal_, part.peak_ordinal_);
    state.require(part.ordinal_ < std::uint64_t{1} << 43U && part.start_ordinal_ <= part.ordinal_);
    state.amounts(part.peak_live_, part.peak_blocks_, part.start_live_, part.start_blocks_);
    if constexpr (State::reads) {
      part.watch_above_ = part.peak_live_;
      part.watched_ordinal_ = part.peak_ordinal_;
    }
    state.numbers(part.peak_stamp_, part.peak_operation_);
  }

  /// What operations and categories had at the open segment's peak, and the statistics of operations. Their current values come
  /// with the blocks.
  template <class State, class Space>
  static void owner_statistics(State& state, Space& part, std::size_t operation_count) noexcept {
    state.require(part.peak_operation_ < operation_count);
    state_sum at_peak;
    const auto owned = [&](auto& stats) {
      std::int64_t live = stats.bytes_at_peak(part.epoch_);
      std::int64_t blocks = stats.blocks_at_peak(part.epoch_);
      state.amounts(live, blocks);
      at_peak.add(state, live);
      if constexpr (State::reads) stats = {0, live, part.epoch_, 0, blocks};
    };
    for (auto& category : part.categories_) owned(category);
    at_peak = {};
    state_sum allocated;
    state_sum freed;
    state.rows(part.operations_, [&](auto& stats) {
      owned(stats.owned);
      state.totals(stats.allocated);
      state.totals(stats.freed);
      allocated.add(state, stats.allocated);
      freed.add(state, stats.freed);
      state.amounts(stats.allocation_count, stats.deallocation_count, stats.finished, stats.peak, stats.self_peak);
      state.changes(stats.max_delta);
      state.amounts(stats.changing);
      if (stats.changing == 0) return;
      for (auto* run : {&stats.first, &stats.last, &stats.largest}) {
        state.numbers(run->begin_stamp, run->end_stamp, run->thread);
        state.changes(run->delta);
        state.amounts(run->peak);
      }
    });
    state.require(!part.operations_.empty() && part.operations_.size() <= operation_count);
  }

  /// What was live at the peaks of the open segment and of the finished ones, and is freed.
  template <class State, class Space>
  static void freed_since_peaks(State& state, Space& part) noexcept {
    state.amounts(part.overall_ordinal_);
    state.require(part.overall_ordinal_ <= part.ordinal_);
    freed(state, part.freed_of_open_, part.epoch_, part.operations_.size());
    freed(state, part.freed_of_overall_, part.overall_epoch_, part.operations_.size());
  }

  template <class State, class Freed>
  static void freed(State& state, Freed& part, std::uint64_t epoch, std::size_t operation_count) noexcept {
    std::size_t count = 0;
    if constexpr (!State::reads) {
      for (std::size_t each = 0; each < part.operation_count(); ++each) {
        if (part.of(epoch, each) != category_sums{}) ++count;
      }
    }
    state.number(count);
    for (std::size_t operation = 0; count != 0 && !state.has_failed(); ++operation) {
      category_sums sums{};
      if constexpr (!State::reads) {
        sums = part.of(epoch, operation);
        if (sums == category_sums{}) continue;
      }
      state.number(operation);
      state.require(operation < operation_count);
      for (std::int64_t& bytes : sums) state.amounts(bytes);
      if constexpr (State::reads) {
        if (state.has_failed()) return;
        category_sums* const known = part.find_or_make(epoch, operation);
        state.require(known != nullptr);
        if (known != nullptr) *known = sums;
      }
      --count;
    }
  }

  /// What operations have allocated by inference.
  template <class State, class Space>
  static void inferred(State& state, Space& part) noexcept {
    std::size_t count = 0;
    if constexpr (!State::reads) {
      for (const operation_stats& stats : part.operations_) count += stats.inferred != 0 ? 1 : 0;
    }
    state.number(count);
    for (std::uint32_t operation = 0; count != 0 && !state.has_failed(); ++operation) {
      if constexpr (!State::reads) {
        if (part.operations_[operation].inferred == 0) continue;
      }
      state.number(operation);
      state.require(operation < part.operations_.size());
      if (state.has_failed()) return;
      auto& stats = part.operations_[operation];
      state.totals(stats.inferred);
      state.require(stats.inferred <= stats.allocated);
      --count;
    }
  }

  template <class State, class Largest>
  static void largest_of_finished(State& state, Largest& part, std::size_t operation_count, std::size_t segment_count) noexcept {
    std::size_t level = 0;
    for (auto& counts : part.counts_) {
      auto& blocks = part.blocks_[level];
      std::size_t count = counts.size();
      state.number(count);
      state.require(count <= (segment_count >> level) + 1);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(blocks.resize(count * part.limit_) && counts.resize(count));
        if (state.has_failed()) return;
      }
      for (std::size_t index = 0; index < count; ++index) {
        state.number(counts[index]);
        state.require(counts[index] <= part.limit_);
        if (state.has_failed()) return;
        for (std::size_t row = 0; row < counts[index]; ++row)
          known_block(state, blocks[index * part.limit_ + row], operation_count);
      }
      ++level;
    }
  }

  template <class State, class Space>
  static void shortfall(State& state, Space& part, std::size_t operation_count) noexcept {
    auto& first = part.shortfall_;
    known_block(state, first.asked, operation_count);
    if (!first.has_happened()) return;
    if constexpr (State::reads) {
      part.shortfall_above_ = part.core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();
      state.require(part.capacity_ != 0);
    }
    state.amounts(first.segment);
    state.number(first.stamp);
    segment(state, first.moment, operation_count);
    state.numbers(first.is_on_core, first.core.x0, first.core.y0, first.core.x1, first.core.y1, first.has_holders);
    owners(state, first.owners, operation_count);
    state.rows(first.largest, [&](auto& held) { known_block(state, held, operation_count); });
  }

  /// A space's live blocks, each with its address, bytes, allocation number, thread, operation, category and annotation.
  template <class State, class Space>
  static void blocks(State& state, Space& part) noexcept {
    std::uint64_t last_born = 0;
    std::uint64_t live = 0;
    table_of_blocks(state, part.live_blocks_, [&](auto& held) {
      std::uint64_t born = held.born();
      auto distance = static_cast<std::int64_t>(born - last_born);
      std::uint32_t thread = held.thread();
      std::uint32_t node = held.operation();
      std::uint32_t category = held.category();
      label annotation = held.annotation();
      state.amounts(held.bytes);
      state.numbers(distance, thread, node, category, annotation);
      if constexpr (State::reads) {
        born = last_born + static_cast<std::uint64_t>(distance);
        state.require(born <= part.ordinal_ && thread <= block::max_thread && node < part.operations_.size() &&
                      category < category_names.size() && annotation <= block::max_annotation);
        if (state.has_failed()) return;
        live += held.bytes;
        state.require(live <= static_cast<std::uint64_t>(state_reader::greatest));
        if (state.has_failed()) return;
        held.born_thread = born << block::thread_bits | thread;
        held.owner = block::owner_word(node, category, annotation);
        for (owner_stats* owner : {&part.operations_[node].owned, &part.categories_[category]}) {
          owner->live += static_cast<std::int64_t>(held.bytes);
          ++owner->blocks;
        }
      }
      last_born = born;
    });
    if constexpr (State::reads) {
      part.live_ = static_cast<std::int64_t>(live);
      state.require(part.live_ <= part.allocated());
    }
  }

  template <class State, class Space>
  static void ends_of_steps(State& state, Space& part, std::size_t operation_count, const segment_history& history) noexcept {
    saved_segments::ends_of_steps(state, part.ends_of_steps_, operation_count, history);
  }

  template <class State, class Memory>
  static void memory(State& state, Memory& part, std::size_t operation_count, const segment_history& history) noexcept {
    wide_sum(state, part.peak, 72);
    state.numbers(part.is_known, part.sole_space, part.peak_space, part.peak_stamp, part.peak_segment, part.is_pinned,
                  part.pinned_segment);
    state.require(part.peak >= 0 && part.peak_segment <= history.count() && part.pinned_segment <= history.count());
    operation(state, part.peak_operation, operation_count);
    if constexpr (State::reads) part.peaks = 1;
  }

  template <class State, class Share>
  static void share(State& state, Share& part, std::uint64_t last_born, std::size_t operation_count) noexcept {
    std::uint8_t is_unchanged = part.is_unchanged_since_peak() ? 1 : 0;
    state.number(is_unchanged);
    if constexpr (State::reads) {
      part.seen_ = is_unchanged != 0 ? 0 : part.memory().peaks;
      part.epoch_ = 1;
    }
    if (is_unchanged != 0) return;
    state.amounts(part.ordinal_, part.live_, part.blocks_);
    state.require(part.ordinal_ <= last_born);
    state_sum bytes;
    const auto freed = [&](auto& row) {
      category_at_peak sum = part.current(row);
      state.amounts(sum.bytes, sum.blocks);
      bytes.add(state, sum.bytes);
      if constexpr (State::reads) row = {sum.bytes, sum.blocks, part.epoch_};
    };
    for (auto& row : part.by_category_) freed(row);
    bytes = {};
    state.rows(part.by_operation_, freed);
    state.require(part.by_operation_.size() <= operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.limit_);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_largest_[index], operation_count);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
