#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/facet_names.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/passing_peak.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/trace/field_names.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// @file
/// How long blocks live, by size and operation, and which come and go within one segment: how much an arena or a reused buffer
/// would save.

namespace memprof::inline MEMPROF_ABI {

/// How long blocks lived, over a set of blocks. All 0 if there were none.
struct lifetime_summary {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::int64_t mean = 0;    ///< rounded down
  std::int64_t median = 0;  ///< the lower median, rounded down to a power of two in the unit of the events

  bool operator==(const lifetime_summary&) const = default;
};

/// The blocks of one size class that one operation allocated itself, whichever thread freed them.
struct lifetime_usage {
  std::string operation;        ///< its path; empty for blocks allocated outside every operation
  std::int64_t least_size = 0;  ///< a power of two; the blocks have less than twice as many bytes; 0: blocks of 0 bytes
  std::int64_t allocation_count = 0;
  std::int64_t allocations = 0;  ///< bytes
  std::int64_t deallocation_count = 0;
  std::int64_t deallocations = 0;  ///< bytes
  std::int64_t peak_blocks = 0;    ///< most live at once: this many reused buffers would suffice
  std::int64_t passing_count = 0;  ///< blocks that came and went within one segment
  std::int64_t passing_bytes = 0;
  lifetime_summary in_allocations;  ///< of freed blocks: allocations in the space between allocation and free
  lifetime_summary in_ns;           ///< of freed blocks, nanoseconds
  bool stands_for_others = false;   ///< the row of all sizes and operations beyond the first 4096

  bool operator==(const lifetime_usage&) const = default;
};

/// The blocks that came and went within one segment, over all segments of a name.
struct passing_usage {
  std::string segment;     ///< the name
  std::int64_t count = 0;  ///< blocks
  std::int64_t bytes = 0;  ///< sum over all of them
  std::int64_t peak = 0;   ///< greatest bytes of them live at once in one segment: the size of an arena for it

  bool operator==(const passing_usage&) const = default;
};

/// How long blocks lived. Empty unless lifetimes were requested when the profile was made from a trace.
struct lifetime_profile {
  vector<lifetime_usage> rows;             ///< most allocated bytes first
  vector<passing_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`, in the same order
  std::int64_t untracked_count = 0;        ///< frees of blocks whose allocation the trace lacks; in no row

  bool operator==(const lifetime_profile&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<lifetime_summary>{"least", "greatest", "mean", "median"};

template <>
inline constexpr detail::name_list detail::field_names<lifetime_usage>{
    "operation",     "least_size",    "allocation_count", "allocations", "deallocation_count", "deallocations", "peak_blocks",
    "passing_count", "passing_bytes", "in_allocations",   "in_ns",       "stands_for_others"};

template <>
inline constexpr detail::name_list detail::nullable_fields<lifetime_usage>{"operation"};

template <>
inline constexpr detail::name_list detail::field_names<passing_usage>{"segment", "count", "bytes", "peak"};

template <>
inline constexpr detail::name_list detail::field_names<lifetime_profile>{"rows", "segments_by_name", "untracked_count"};

namespace detail {

/// The structs of the facet, nested ones first, for code that visits every field of a profile.
using lifetime_structs = type_list<lifetime_summary, lifetime_usage, passing_usage, lifetime_profile>;

/// The lifetimes in one memory space. Memory is bounded by live blocks, operations and segment names. Blocks for which there is
/// no memory count as untracked.
class space_lifetimes {
 public:
  static constexpr std::size_t max_rows = 4096;

  void allocated(const block& made, std::uint64_t stamp) noexcept {
    last_born_ = made.born();
    const live_blocks::insertion kept = tracked_.insert(made.address);
    if (kept.entry == nullptr) return;
    // If events are missing, a free may have gone unseen.
    if (!kept.is_new) --rows_[row_in(*kept.entry)].live;
    const std::uint32_t index = row_of(made.operation(), static_cast<std::uint32_t>(std::bit_width(made.bytes)));
    if (index == no_row) {
      tracked_.erase(tracked_.find(made.address));
      return;
    }
    kept.entry->born_thread = made.born_thread;
    kept.entry->bytes = stamp;
    kept.entry->owner = std::uint64_t{index} << 32U | passing_.begin_block();
    row& counted = rows_[index];
    ++counted.allocation_count;
    counted.allocations += static_cast<std::int64_t>(made.bytes);
    counted.peak_live = std::max(counted.peak_live, ++counted.live);
  }

  void freed(const block& gone, std::uint64_t stamp) noexcept {
    const live_blocks::place kept = tracked_.find(gone.address);
    if (!kept || kept->born_thread != gone.born_thread) {
      ++untracked_;
      return;
    }
    const auto bytes = static_cast<std::int64_t>(gone.bytes);
    row& counted = rows_[row_in(*kept.entry)];
    --counted.live;
    ++counted.deallocation_count;
    counted.deallocations += bytes;
    counted.in_allocations.add(last_born_ - gone.born());
    counted.in_ticks.add(stamp - kept->bytes);
    if (const auto stretch = static_cast<std::uint32_t>(kept->owner); stretch != 0 && gone.born() > segment_start_) {
      ++counted.passing_count;
      counted.passing_bytes += bytes;
      ++open_.count;
      open_.bytes += bytes;
      passing_.end_block(stretch, bytes);
    }
    tracked_.erase(kept);
  }

  void segment_ended(std::uint32_t name) noexcept {
    if (name < names_.size() || names_.resize(name + 1U)) {
      passing_of_name& all = names_[name];
      all.count += open_.count;
      all.bytes += open_.bytes;
      all.peak = std::max(all.peak, passing_.peak());
    }
    open_ = {};
    passing_.clear();
    segment_start_ = last_born_;
  }

  template <class Names = facet_names, std::same_as<lifetime_profile> Profile = lifetime_profile>
  [[nodiscard]] Profile build(const Names& names) const {
    Profile result;
    struct ranked {
      const row* of;
    };
    vector<ranked> order;
    for (const row& each : rows_) order.push_back({&each});
    std::sort(order.begin(), order.end(), [](const ranked& one, const ranked& other) {
      const row& left = *one.of;
      const row& right = *other.of;
      if (left.allocations != right.allocations) return left.allocations > right.allocations;
      return left.operation != right.operation ? left.operation < right.operation : left.size_class < right.size_class;
    });
    for (const auto& [each] : order) {
      const bool is_others = each->size_class == others_class;
      result.rows.push_back({is_others ? std::string{} : names.operations[each->operation],
                             is_others ? 0 : least_of(each->size_class), each->allocation_count, each->allocations,
                             each->deallocation_count, each->deallocations, each->peak_live, each->passing_count,
                             each->passing_bytes, each->in_allocations.build([](std::int64_t count) { return count; }),
                             each->in_ticks.build([&](std::int64_t ticks) { return names.duration_ns(ticks); }), is_others});
    }
    for (std::size_t index = 0; index < names.segments.size(); ++index) {
      passing_usage usage{names.segments[index], 0, 0, 0};
      if (names.has_open && index + 1 == names.segments.size()) {
        usage = {names.segments[index], open_.count, open_.bytes, passing_.peak()};
      } else if (index < names_.size()) {
        usage = {names.segments[index], names_[index].count, names_[index].bytes, names_[index].peak};
      }
      result.segments_by_name.push_back(usage);
    }
    result.untracked_count = untracked_;
    return result;
  }

 private:
  static constexpr std::uint32_t classes = 65;  // by the number of bits in the size
  static constexpr std::uint32_t others_class = classes;
  static constexpr std::uint32_t no_row = ~std::uint32_t{0};

  [[nodiscard]] static std::int64_t least_of(std::uint32_t size_class) noexcept {
    return size_class == 0 ? 0 : std::int64_t{1} << (size_class - 1);
  }

  struct lifetimes {
    std::uint64_t least;
    std::uint64_t greatest;
    uint128 sum;
    std::uint64_t count;
    std::uint64_t counts[classes];  ///< by the number of bits

    void add(std::uint64_t value) noexcept {
      least = count == 0 ? value : std::min(least, value);
      greatest = std::max(greatest, value);
      sum += value;
      ++count;
      ++counts[std::bit_width(value)];
    }

    template <class Convert>
    [[nodiscard]] lifetime_summary build(Convert convert) const {
      if (count == 0) return {};
      const auto number = [](std::uint64_t value) {
        return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
      };
      std::uint64_t below = 0;
      std::uint32_t middle = 0;
      while ((below += counts[middle]) < (count + 1) / 2) ++middle;
      return {convert(number(least)), convert(number(greatest)), convert(number(static_cast<std::uint64_t>(sum / count))),
              convert(number(middle == 0 ? 0 : std::uint64_t{1} << (middle - 1)))};
    }
  };

  struct row {
    std::uint32_t operation;
    std::uint32_t size_class;
    std::int64_t allocation_count;
    std::int64_t allocations;
    std::int64_t deallocation_count;
    std::int64_t deallocations;
    std::int64_t live;
    std::int64_t peak_live;
    std::int64_t passing_count;
    std::int64_t passing_bytes;
    lifetimes in_allocations;
    lifetimes in_ticks;
  };
  struct passing_of_name {
    std::int64_t count;
    std::int64_t bytes;
    std::int64_t peak;
  };

  [[nodiscard]] static std::size_t row_in(const block& kept) noexcept { return kept.owner >> 32U; }

  /// The row of a size class and operation, created if new; `no_row` if the system has no memory.
  [[nodiscard]] std::uint32_t row_of(std::uint32_t operation, std::uint32_t size_class) noexcept {
    const std::size_t key = std::size_t{operation} * classes + size_class;
    if (key >= index_.size() && !index_.resize((std::size_t{operation} + 1) * classes)) return no_row;
    if (index_[key] != 0) return index_[key] - 1;
    if (rows_.size() >= max_rows) {
      operation = 0;
      size_class = others_class;
      if (rows_.back().size_class == others_class) return static_cast<std::uint32_t>(rows_.size() - 1);
    }
    row made{};
    made.operation = operation;
    made.size_class = size_class;
    if (!rows_.push_back(made)) return no_row;
    if (size_class != others_class) index_[key] = static_cast<std::uint32_t>(rows_.size());
    return static_cast<std::uint32_t>(rows_.size() - 1);
  }

  live_blocks tracked_;  ///< `bytes` is the stamp of the allocation, `owner` is the row and the stretch
  page_array<row> rows_;
  page_array<std::uint32_t> index_;  ///< row plus one, by operation and size class
  page_array<passing_of_name> names_;
  passing_of_name open_{};
  passing_peak passing_;
  std::uint64_t last_born_ = 0;
  std::uint64_t segment_start_ = 0;
  std::int64_t untracked_ = 0;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
