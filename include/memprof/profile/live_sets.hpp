#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/freed_categories.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard, gnu::cold]] inline live_block describe_block(const block& live, const vector<std::string>& paths, name_view labels) {
  live_block result;
  result.address = live.address;
  result.bytes = static_cast<std::int64_t>(live.bytes);
  result.operation = paths[live.operation()];
  result.category = static_cast<memprof::category>(live.category());
  std::string_view annotation = labels.text(live.annotation());
  const auto next_field = [&] {
    const std::size_t end = std::min(annotation.find('\x1f'), annotation.size());
    const std::string_view field = annotation.substr(0, end);
    annotation.remove_prefix(std::min(end + 1, annotation.size()));
    return std::string{field};
  };
  result.name = next_field();
  result.shape = next_field();
  result.dtype = next_field();
  result.requires_grad = requires_grad_from_string(next_field());
  return result;
}

/// Rows for the categories that had blocks, greatest first.
[[nodiscard, gnu::cold]] inline vector<owned_bytes> rows_of_categories(
    const std::array<category_at_peak, category_names.size()>& categories) {
  std::size_t order[category_names.size()];
  std::size_t count = 0;
  for (std::size_t index = 0; index < category_names.size(); ++index) {
    if (categories[index].blocks != 0) order[count++] = index;
  }
  sort_rows(order, count, [&](std::size_t left, std::size_t right) {
    const std::int64_t more = categories[left].bytes - categories[right].bytes;
    return more != 0 ? more > 0 : left < right;
  });
  vector<owned_bytes> rows(count);
  for (std::size_t row = 0; row < count; ++row) {
    const category_at_peak& held = categories[order[row]];
    rows[row] = {std::string{category_names[order[row]]}, held.bytes, held.blocks, {}};
  }
  return rows;
}

/// Assembles what was live at the peak of each segment of one space.
///
/// The ledger kept the owners, and the largest of the blocks freed since. Blocks that are still live are found here in one pass:
/// a block was live at the peaks of all segments, starting with the first whose peak came after its allocation.
///
/// A template, like everything that builds profiles, so that only translation units that read one pay to compile it.
template <class Space>
class live_set_builder {
 public:
  live_set_builder(const Space& space, const vector<std::string>& operation_paths, name_view labels)
      : space_(space), paths_(operation_paths), labels_(labels), still_live_(space.options().largest_blocks) {
    peak_ordinals_ = vector<std::uint64_t>(space.segments().size() + 1, space.open_segment().peak_ordinal);
    for (std::size_t index = 0; index < space.segments().size(); ++index)
      peak_ordinals_[index] = space.segments()[index].peak_ordinal;
    space.blocks().for_each([&](const block& live) {
      const std::size_t first =
          partition_point(peak_ordinals_.size(), [&](std::size_t index) { return peak_ordinals_[index] < live.born(); });
      still_live_.offer(first, peak_ordinals_.size(), live);
    });
  }

  /// The live set at the peak of finished segment `index` (within `space.segments()`).
  [[nodiscard, gnu::cold]] live_set at_finished(std::size_t index) const {
    const segment_record& record = space_.segments()[index];
    live_set set = totals_of(record);
    set.by_operation = named(space_.owners(record), record.owner_count);
    set.remaining_bytes = record.remaining_bytes;
    set.remaining_operations = record.remaining_operations;
    set.largest_blocks = largest([&](top_blocks_view best) {
      space_.largest_of_finished().collect(index, best);
      still_live_.collect(index, best);
    });
    return set;
  }

  /// The live set at the peak of the open segment, with all its owners.
  [[nodiscard, gnu::cold]] live_set at_open() const {
    live_set set = totals_of(space_.open_segment());
    detail::page_array<owner_at_peak> owners;
    if (!space_.collect_owners(owners)) set.remaining_bytes = set.bytes;
    set.by_operation = named(owners.data(), owners.size());
    set.largest_blocks = largest([&](top_blocks_view best) {
      space_.offer_freed_since_peak(best);
      still_live_.collect(peak_ordinals_.size() - 1, best);
    });
    return set;
  }

  /// What was live when the capacity was first exceeded, without the block then requested.
  [[nodiscard, gnu::cold]] live_set at_first_shortfall() const {
    const shortfall_record& shortfall = space_.first_shortfall();
    live_set set = totals_of(shortfall.moment);
    if (!shortfall.has_holders) set.remaining_bytes = set.bytes;
    set.by_operation = named(shortfall.owners.data(), shortfall.owners.size());
    set.largest_blocks = largest([&](top_blocks_view best) {
      for (const block& held : shortfall.largest) best.offer(held);
    });
    return set;
  }

  /// The overall peak's live set, if that is of finished segment `index`: with all owners instead of those that were kept.
  [[nodiscard, gnu::cold]] live_set at_overall(live_set set, std::size_t index) const {
    set.remaining_bytes = set.remaining_operations = 0;
    set.by_operation = with_categories(space_.overall_owners(), space_.segments()[index].peak_ordinal,
                                       [&](std::size_t node) { return space_.freed_since_peak(node, false); });
    return set;
  }

  /// The same, if it is of the open segment.
  [[nodiscard, gnu::cold]] live_set at_overall(live_set set) const {
    detail::page_array<owner_at_peak> owners;
    if (space_.collect_owners(owners))
      set.by_operation = with_categories(owners, space_.open_segment().peak_ordinal,
                                         [&](std::size_t node) { return space_.freed_since_peak(node, true); });
    return set;
  }

 private:
  /// The rows of all owners at the overall peak, each with the category of most of its bytes. `freed_of` has the blocks that are
  /// freed.
  template <class Owners, class Freed>
  [[nodiscard, gnu::cold]] vector<owned_bytes> with_categories(const Owners& owners, std::uint64_t peak_ordinal,
                                                               Freed&& freed_of) const {
    vector<category_sums> held(paths_.size());
    for (std::size_t node = 0; node < held.size(); ++node) held[node] = freed_of(node);
    const auto add = [](std::int64_t& sum, std::uint64_t bytes) { sum = add_saturating(sum, static_cast<std::int64_t>(bytes)); };
    space_.blocks().for_each([&](const block& live) {
      if (live.born() <= peak_ordinal) add(held[live.operation()][live.category()], live.bytes);
    });
    vector<owned_bytes> rows = named(owners.data(), owners.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t index = 1; index < category_names.size(); ++index) {  // 0: other
        const std::int64_t bytes = held[owners[row].operation][index];
        if (bytes > rows[row].bytes - bytes) rows[row].category = category_names[index];
      }
    }
    return rows;
  }

  [[nodiscard, gnu::cold]] static live_set totals_of(const segment_record& record) {
    live_set set;
    set.bytes = record.peak_live_bytes;
    set.blocks = record.blocks_at_peak;
    set.by_category = rows_of_categories(record.categories);
    return set;
  }

  [[nodiscard, gnu::cold]] vector<owned_bytes> named(const owner_at_peak* owners, std::size_t count) const {
    vector<owned_bytes> rows(count);
    for (std::size_t row = 0; row < count; ++row)
      rows[row] = {paths_[owners[row].operation], owners[row].bytes, owners[row].blocks, {}};
    return rows;
  }

  /// The largest of the blocks passed by `offer`.
  template <class Offer>
  [[nodiscard, gnu::cold]] vector<live_block> largest(Offer&& offer) const {
    vector<block> room(space_.options().largest_blocks);
    std::uint32_t count = 0;
    offer(top_blocks_view{room.data(), count, space_.options().largest_blocks});
    sort_rows(room.data(), count, is_larger);
    vector<live_block> result(count);
    for (std::uint32_t index = 0; index < count; ++index) result[index] = describe_block(room[index], paths_, labels_);
    return result;
  }

  const Space& space_;
  const vector<std::string>& paths_;
  name_view labels_;
  vector<std::uint64_t> peak_ordinals_;
  top_blocks_of_segments still_live_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
