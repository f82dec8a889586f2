#include <memprof/config.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

void stack_fold::on_allocation(const replay_state& at, const replayed_block& block) {
  space_state& space = spaces_[block.space];
  row_state& row = row_of(block, block.category);
  const auto bytes = static_cast<std::int64_t>(block.bytes);
  row.owned.change(space.epoch, bytes, 1);
  row.total_bytes += bytes;
  ++row.total_blocks;
  row.live_since_ns += at.now_ns;
  note_max(row);
  space.live += bytes;
  space.is_used = true;
  if (space.live > space.peak) {
    space.peak = space.live;
    space.peak_time_ns = at.now_ns;
    space.peak_ordinal = block.ordinal;
    space.peak_segment = at.segment;
    ++space.epoch;
  }
  end_ns_ = at.now_ns;
}

void stack_fold::on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
  space_state& space = spaces_[block.space];
  row_state& row = row_of(block, block.category);
  const auto bytes = static_cast<std::int64_t>(block.bytes);
  row.owned.change(space.epoch, -bytes, -1);
  row.lifetime_ns += at.now_ns - block.time_ns;
  row.live_since_ns -= block.time_ns;
  space.live -= bytes;
  end_ns_ = at.now_ns;
}

void stack_fold::on_annotation(const replay_state& at, const replayed_block& block, category before) {
  if (!by_category_ || before == block.category) return;
  space_state& space = spaces_[block.space];
  const bool is_in_peak = block.ordinal <= space.peak_ordinal && space.peak_segment == at.segment;
  const auto move = is_in_peak ? &detail::owner_stats::correct : &detail::owner_stats::change;
  const auto bytes = static_cast<std::int64_t>(block.bytes);
  const auto add = [&](category which, std::int64_t sign) {
    row_state& row = row_of(block, which);
    (row.owned.*move)(space.epoch, sign * bytes, sign);
    row.total_bytes += sign * bytes;
    row.total_blocks += sign;
    row.live_since_ns += sign * wide{block.time_ns};
    note_max(row);
    row.max_bytes = std::max(row.max_bytes, row.owned.bytes_at_peak(space.epoch));  // which has just been corrected
  };
  add(before, -1);
  add(block.category, 1);
}

stack_table stack_fold::table(const replay_state& at) const {
  stack_table result;
  result.process = at.info.process;
  result.begin_unix_ns = at.info.begin_unix_ns;
  result.duration_ns = end_ns_;
  result.has_categories = by_category_;
  result.has_sizes = by_size_;
  result.has_callers = callers_.caller != nullptr;
  result.has_lifetimes = true;
  for (std::size_t node = 1; node < at.operations().size(); ++node) {
    const detail::operation_tree::node& operation = at.operations()[node];
    result.operations.push_back({operation.parent, std::string{at.names.text(operation.name)}});
  }
  std::array<std::uint32_t, extend::any_space + 1> index{};
  for (std::size_t space = 0; space < extend::any_space; ++space) {
    if (!spaces_[space].is_used) continue;
    index[space] = static_cast<std::uint32_t>(result.spaces.size());
    result.spaces.push_back({std::string{at.space_name(static_cast<std::uint8_t>(space))}, spaces_[space].peak_time_ns});
  }
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> calls;
  const auto place_of = [&](const row_state& row) {
    std::uint32_t node = row.operation;
    if (row.call_stack == 0 || !frames_) return node;
    for (std::string& name : frames_(at.names, row.call_stack)) {
      const auto [found, is_new] = calls.try_emplace({node, name}, static_cast<std::uint32_t>(result.operations.size()));
      if (is_new) result.operations.push_back({node, std::move(name)});
      node = found->second;
    }
    return node;
  };
  const auto caller_of = [&](const row_state& row) {
    return row.call_stack == 0 || !callers_.caller ? std::string{} : callers_.caller(at.names, row.call_stack);
  };
  for (const row_state& row : rows_) {
    const std::uint64_t epoch = spaces_[row.space].epoch;
    // Blocks that got another category later may have been in this one at the peak.
    if (row.total_blocks == 0 && row.owned.blocks_at_peak(epoch) == 0) continue;
    result.rows.push_back({index[row.space], place_of(row), row.of, row.total_bytes, row.total_blocks,
                           row.owned.bytes_at_peak(epoch), row.owned.blocks_at_peak(epoch), row.owned.live, row.owned.blocks,
                           row.max_bytes, row.max_blocks, lifetime_us(row), row.least_size, caller_of(row)});
  }
  return result;
}

stack_fold::row_state& stack_fold::row_of(const replayed_block& block, category of) {
  const category kept = by_category_ ? of : category::other;
  const std::uint64_t size_class = by_size_ ? static_cast<std::uint64_t>(std::bit_width(block.bytes)) : 0;
  const std::uint64_t key = std::uint64_t{block.operation} << 24 | size_class << 16 | std::uint64_t{block.space} << 8 |
                            static_cast<std::uint64_t>(kept);
  const bool has_stack = frames_ || (callers_.caller && block.bytes >= callers_.from_bytes);
  const extend::label call_stack = has_stack ? block.call_stack : 0;
  std::size_t& row = call_stack == 0 ? row_of_key_.try_emplace(key, rows_.size()).first->second
                                     : row_of_stack_.try_emplace({key, call_stack}, rows_.size()).first->second;
  if (row == rows_.size()) {
    rows_.push_back({block.space, block.operation, call_stack, kept});
    if (by_size_) rows_.back().least_size = static_cast<std::int64_t>(std::bit_floor(block.bytes));
  }
  return rows_[row];
}

std::int64_t stack_fold::lifetime_us(const row_state& row) const noexcept {
  const wide ns = row.lifetime_ns + wide{row.owned.blocks} * end_ns_ - row.live_since_ns;
  return static_cast<std::int64_t>(std::clamp<wide>(ns / 1000, 0, std::numeric_limits<std::int64_t>::max()));
}

void stack_fold::note_max(row_state& row) noexcept {
  if (row.owned.live <= row.max_bytes) return;
  row.max_bytes = row.owned.live;
  row.max_blocks = row.owned.blocks;
}

}  // namespace memprof::inline MEMPROF_ABI
