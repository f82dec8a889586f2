#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/profile/live_sets.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

/// @file
/// Joint peaks, as a profile reports them, of memories that hold several spaces.

namespace memprof::inline MEMPROF_ABI::detail {

/// Sums what the spaces of one memory held at its joint peak. Costs a pass over the live blocks of each.
template <class Ledger>
class joint_peak_builder {
 public:
  joint_peak_builder(const Ledger& events, const shared_memory& memory)
      : events_(events), memory_(memory), by_operation_(events.operations().size()), largest_(events.options().largest_blocks) {}

  /// Calls `visit(id, space)` for each space in the memory.
  template <class Visitor>
  [[gnu::cold]] void for_each_space(Visitor&& visit) const {
    for (std::size_t id = 0; id < Ledger::max_spaces; ++id) {
      const auto* const space = events_.space(id);
      if (space != nullptr && space->shared() != nullptr && &space->shared()->memory() == &memory_) visit(id, *space);
    }
  }

  /// What one space held; its owners are added to those of the other spaces.
  [[nodiscard, gnu::cold]] category_at_peak add(std::size_t id, const space_ledger& space) {
    const memory_share& share = *space.shared();
    const bool is_unchanged = share.is_unchanged_since_peak();
    const std::uint64_t last_born = is_unchanged ? space.allocation_count() : share.ordinal();
    const auto offer = [&](block held) {
      // Blocks of equal size are ordered by space, then by time of allocation.
      held.born_thread = std::uint64_t{id} << 48U | held.born();
      top_blocks_view{largest_.data(), largest_count_, static_cast<std::uint32_t>(largest_.size())}.offer(held);
    };
    space.blocks().for_each([&](const block& live) {
      if (live.born() > last_born) return;
      const category_at_peak held{static_cast<std::int64_t>(live.bytes), 1};
      add_to(by_operation_[live.operation()], held);
      add_to(by_category_[live.category()], held);
      offer(live);
    });
    if (!is_unchanged) {
      for (std::size_t node = 0; node < share.operation_count(); ++node)
        add_to(by_operation_[node], share.freed_of_operation(node));
      for (std::size_t index = 0; index < by_category_.size(); ++index)
        add_to(by_category_[index], share.freed_of_category(index));
      share.for_each_large_freed(offer);
    }
    const category_at_peak held = is_unchanged ? category_at_peak{space.live(), static_cast<std::int64_t>(space.blocks().size())}
                                               : category_at_peak{share.live(), share.blocks()};
    add_to(total_, held);
    return held;
  }

  [[nodiscard, gnu::cold]] live_set build(const vector<std::string>& paths, name_view labels) {
    live_set set;
    set.bytes = set.remaining_bytes = total_.bytes;
    set.blocks = total_.blocks;
    vector<owner_at_peak> owners(by_operation_.size());
    std::size_t count = 0;
    for (std::size_t node = 0; node < by_operation_.size(); ++node) {
      const category_at_peak& held = by_operation_[node];
      if (held.blocks != 0) owners[count++] = {static_cast<std::uint32_t>(node), held.bytes, held.blocks};
      set.remaining_bytes = std::max(subtract_saturating(set.remaining_bytes, held.bytes), std::int64_t{0});
    }
    sort_rows(owners.data(), count, holds_more);
    set.by_operation = vector<owned_bytes>(count);
    for (std::size_t row = 0; row < count; ++row)
      set.by_operation[row] = {paths[owners[row].operation], owners[row].bytes, owners[row].blocks};
    set.by_category = rows_of_categories(by_category_);
    sort_rows(largest_.data(), largest_count_, is_larger);
    set.largest_blocks = vector<live_block>(largest_count_);
    for (std::uint32_t index = 0; index < largest_count_; ++index)
      set.largest_blocks[index] = describe_block(largest_[index], paths, labels);
    return set;
  }

 private:
  [[gnu::cold]] static void add_to(category_at_peak& sum, const category_at_peak& more) noexcept {
    sum.bytes = add_saturating(sum.bytes, more.bytes);
    sum.blocks += more.blocks;
  }

  const Ledger& events_;
  const shared_memory& memory_;
  category_at_peak total_{};
  vector<category_at_peak> by_operation_;
  std::array<category_at_peak, category_names.size()> by_category_{};
  vector<block> largest_;
  std::uint32_t largest_count_ = 0;
};

/// One memory; `spaces` are the profile's, and `index_of[id]` is the index of each.
template <class Ledger, class Rows>
[[nodiscard, gnu::cold]] memory_profile build_memory(const Ledger& events, const shared_memory& memory, name_view labels,
                                                     const clock_readings& time, const vector<std::string>& paths,
                                                     const Rows& rows, const vector<space_profile>& spaces,
                                                     const std::array<std::size_t, Ledger::max_spaces>& index_of) {
  joint_peak_builder<Ledger> parts{events, memory};
  memory_profile result;
  result.name = memory.name == host_memory ? host_memory_name : labels.text(memory.name);
  std::size_t count = 0;
  parts.for_each_space([&](std::size_t, const space_ledger&) { ++count; });
  result.spaces = vector<owned_bytes>(count);
  const bool is_sole = memory.sole_space != any_space;
  std::size_t row = 0;
  parts.for_each_space([&](std::size_t id, const space_ledger& space) {
    const space_profile& known = spaces[index_of[id]];
    result.cumulative_current = add_saturating(result.cumulative_current, space.live());
    owned_bytes& part = result.spaces[row++];
    part.owner = known.name;
    if (is_sole) {
      if (id == memory.sole_space) part = {known.name, known.live_at_peak.bytes, known.live_at_peak.blocks};
    } else if (memory.peak != 0) {
      const category_at_peak held = parts.add(id, space);
      part = {known.name, held.bytes, held.blocks};
    }
  });
  // Not std::stable_sort, whose helpers cause clang warnings in users' translation units.
  vector<std::size_t> order(result.spaces.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  sort_rows(order.data(), order.size(), [&](std::size_t left, std::size_t right) {
    const std::int64_t more = result.spaces[left].bytes - result.spaces[right].bytes;
    return more != 0 ? more > 0 : left < right;
  });
  vector<owned_bytes> sorted;
  sorted.reserve(order.size());
  for (const std::size_t index : order) sorted.push_back(std::move(result.spaces[index]));
  result.spaces = std::move(sorted);
  result.cumulative_peak = shared_memory::saturated(memory.peak);
  if (memory.peak == 0) return result;
  if (is_sole) {
    const space_profile& lone = spaces[index_of[memory.sole_space]];
    result.peak_segment = lone.peak_segment;
    result.peak_time_ns = lone.peak_time_ns;
    result.peak_space = lone.name;
    result.peak_operation = lone.peak_operation;
    result.live_at_peak = lone.live_at_peak;
    return result;
  }
  result.peak_segment = rows.index_of(memory.peak_segment);
  result.peak_time_ns = time.to_ns(memory.peak_stamp);
  result.peak_space = spaces[index_of[memory.peak_space]].name;
  if (memory.peak_operation != 0) result.peak_operation = paths[memory.peak_operation];
  result.live_at_peak = parts.build(paths, labels);
  return result;
}

template <class Ledger, class Rows>
[[nodiscard, gnu::cold]] vector<memory_profile> build_memories(const Ledger& events, name_view labels, const clock_readings& time,
                                                               const vector<std::string>& paths, const Rows& rows,
                                                               const vector<space_profile>& spaces) {
  vector<memory_profile> result;
  if (events.memories().empty()) return result;
  std::array<std::size_t, Ledger::max_spaces> index_of{};
  for (std::size_t id = 0, index = 0; id < Ledger::max_spaces; ++id) {
    if (events.space(id) != nullptr) index_of[id] = index++;
  }
  for (const shared_memory* memory : events.memories()) {
    if (memory->is_known) result.push_back(build_memory(events, *memory, labels, time, paths, rows, spaces, index_of));
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
