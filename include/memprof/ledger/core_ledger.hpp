#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/summaries_by_name.hpp>
#include <memprof/trace/core_range.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_facets;

/// Bytes on one core, or their peaks.
struct core_usage {
  std::int64_t circular_buffers;
  std::int64_t buffers;
  std::int64_t total;  ///< sum of live bytes; or peak of that sum, which is not the sum of the peaks

  void add(buffer_kind kind, std::int64_t bytes) noexcept {
    (kind == buffer_kind::circular_buffer ? circular_buffers : buffers) += bytes;
    total += bytes;
  }
  void raise_to(const core_usage& other) noexcept {
    if (other.circular_buffers > circular_buffers) circular_buffers = other.circular_buffers;
    if (other.buffers > buffers) buffers = other.buffers;
    if (other.total > total) total = other.total;
  }
};

/// The greatest peaks of some cores; the three need not be on the same core.
struct core_maxima {
  core_usage peak;
  std::uint8_t busiest_x;  ///< the core with the greatest `total`; if equal, the first, row by row
  std::uint8_t busiest_y;
};

/// What one memory space holds on each core of a device: the only place that knows per-core peaks.
///
/// A peak in a segment is the greatest number of live bytes in it, including blocks of earlier segments, which occupy the core
/// too. Memory is bounded by the cores up to the farthest one used, live blocks, distinct rectangles and segments; none is used
/// before the first block.
class core_ledger {
 public:
  /// False until the first block: the space does not belong to cores.
  [[nodiscard]] bool is_used() const noexcept { return !ranges_.empty(); }

  // --- events -------------------------------------------------------------------------------------------------------

  /// Adds a block, replacing a live one at the same address. `cores` must be valid, and the sum of all bytes on all cores must
  /// fit in 63 bits; `born_thread` is the block's in the space. False, without adding the block, if the system has no memory.
  [[nodiscard]] bool allocate(std::uint64_t address, std::uint64_t bytes, const core_range& cores, buffer_kind kind,
                              std::uint64_t born_thread) noexcept {
    if (!reach(cores) || !note(cores)) return false;
    deallocate(address);
    live_blocks& table = blocks_[static_cast<std::size_t>(kind)];
    // Reserved here, so that freeing all circular buffers cannot fail.
    if (kind == buffer_kind::circular_buffer && !ended_.reserve(table.size() + 1)) return false;
    block* const entry = table.insert(address).entry;
    if (entry == nullptr) return false;
    entry->bytes = bytes;
    entry->born_thread = born_thread;
    entry->owner = cores.packed();
    change(cores, kind, static_cast<std::int64_t>(bytes));
    return true;
  }

  /// Removes a block; does nothing if there is none.
  void deallocate(std::uint64_t address) noexcept {
    deallocate(address, buffer_kind::buffer);
    deallocate(address, buffer_kind::circular_buffer);
  }

  /// Removes every circular buffer that lies on any of `cores`, and returns the addresses, in no particular order, valid until
  /// the next event.
  [[nodiscard]] const page_array<std::uint64_t>& deallocate_circular_buffers(const core_range& cores) noexcept {
    ended_.clear();
    blocks_[static_cast<std::size_t>(buffer_kind::circular_buffer)].for_each([&](const block& live) {
      if (cores_of(live).overlaps(cores)) (void)ended_.push_back(live.address);
    });
    for (const std::uint64_t address : ended_) deallocate(address, buffer_kind::circular_buffer);
    return ended_;
  }

  /// Ends the segment last added to `history`. Costs a pass over the cores. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept {
    if (!is_used()) return true;
    const core_maxima greatest = open_segment();
    for (core_state& core : grid_) {
      core.overall.raise_to(core.peak);
      core.peak = core.live;
    }
    const core_usage& peak = greatest.peak;
    if (!segments_.resize(history.marks().size()) || !by_name_.add(history, {peak.circular_buffers, peak.buffers, peak.total})) {
      return false;
    }
    segments_.back() = greatest;
    return true;
  }
  /// Drops the segments that are no longer kept.
  template <class IsKept>
  void compact(const IsKept& is_kept) noexcept {
    keep_only(segments_, is_kept);
  }
  /// Adds the segments at [first, last), in which nothing changed. False if the system has no memory.
  [[nodiscard]] bool repeat(std::size_t first, std::size_t last) noexcept {
    if (!is_used()) return true;
    if (!segments_.resize(first) || !segments_.resize(last)) return false;
    const core_maxima unchanged = open_segment();
    for (std::size_t position = first; position < last; ++position) segments_[position] = unchanged;
    return true;
  }
  void repeat_name(std::size_t row, std::uint64_t times) noexcept { by_name_.repeat(row, times); }

  // --- queries for reports ------------------------------------------------------------------------------------------

  /// One for each mark of the history, or fewer if there was no memory; zeros before the first block.
  [[nodiscard]] const page_array<core_maxima>& segments() const noexcept { return segments_; }
  /// Peaks of circular buffers, of buffers, and of their sum.
  [[nodiscard]] const summaries_by_name<3>& by_name() const noexcept { return by_name_; }
  /// Current usage of the fullest of some cores; `total` belongs to `busiest_x` and `busiest_y`.
  [[nodiscard]] core_maxima fullest(const core_range& among) const noexcept {
    return greatest(among, [](const core_state& core) { return core.live; });
  }
  /// Calls `visit(const block&)` for every block on any of `cores`: `bytes` is the size on each core, `owner` the packed
  /// rectangle. Costs a pass over the blocks.
  template <class Visitor>
  void for_each_block(const core_range& cores, Visitor&& visit) const {
    for (const live_blocks& table : blocks_) {
      table.for_each([&](const block& live) {
        if (cores_of(live).overlaps(cores)) visit(live);
      });
    }
  }
  [[nodiscard]] core_maxima open_segment() const noexcept {
    return greatest(any_core, [](const core_state& core) { return core.peak; });
  }
  /// All segments together, on the cores in `among`.
  [[nodiscard]] core_maxima overall(const core_range& among) const noexcept {
    return greatest(among, [](const core_state& core) {
      core_usage peak = core.overall;
      peak.raise_to(core.peak);
      return peak;
    });
  }
  /// The distinct rectangles of the blocks so far, packed, in order of first occurrence.
  [[nodiscard]] const page_array<std::uint32_t>& ranges() const noexcept { return ranges_; }

  /// Number of cores in a pass over all of them.
  [[nodiscard]] std::size_t grid_size() const noexcept { return grid_.size(); }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return grid_.bytes() + blocks_[0].bytes() + blocks_[1].bytes() + known_ranges_.bytes() + ranges_.bytes() + ended_.bytes() +
           segments_.bytes() + by_name_.bytes();
  }

 private:
  friend struct saved_facets;

  struct core_state {
    core_usage live;
    core_usage peak;     ///< in the open segment
    core_usage overall;  ///< in the finished segments
  };

  [[nodiscard]] static core_range cores_of(const block& live) noexcept {
    return core_range::unpacked(static_cast<std::uint32_t>(live.owner));
  }

  void deallocate(std::uint64_t address, buffer_kind kind) noexcept {
    live_blocks& table = blocks_[static_cast<std::size_t>(kind)];
    const live_blocks::place found = table.find(address);
    if (!found) return;
    change(cores_of(*found.entry), kind, -static_cast<std::int64_t>(found->bytes));
    table.erase(found);
  }

  void change(const core_range& cores, buffer_kind kind, std::int64_t bytes) noexcept {
    for (std::size_t y = cores.y0; y <= cores.y1; ++y) {
      for (std::size_t x = cores.x0; x <= cores.x1; ++x) {
        core_state& core = grid_[y * columns_ + x];
        core.live.add(kind, bytes);
        core.peak.raise_to(core.live);
      }
    }
  }

  template <class Peak>
  [[nodiscard]] core_maxima greatest(const core_range& among, Peak&& peak_of) const noexcept {
    core_maxima result{};
    for (std::size_t y = among.y0; y <= among.y1 && y < rows_; ++y) {
      for (std::size_t x = among.x0; x <= among.x1 && x < columns_; ++x) {
        const core_usage peak = peak_of(grid_[y * columns_ + x]);
        if (peak.total > result.peak.total) {
          result.busiest_x = static_cast<std::uint8_t>(x);
          result.busiest_y = static_cast<std::uint8_t>(y);
        }
        result.peak.raise_to(peak);
      }
    }
    return result;
  }

  /// Extends the grid to include `cores`; false if the system has no memory.
  [[nodiscard]] bool reach(const core_range& cores) noexcept {
    if (cores.x1 < columns_ && cores.y1 < rows_) return true;
    const std::size_t columns = cores.x1 < columns_ ? columns_ : cores.x1 + std::size_t{1};
    const std::size_t rows = cores.y1 < rows_ ? rows_ : cores.y1 + std::size_t{1};
    page_array<core_state> larger;
    if (!larger.resize(columns * rows)) return false;
    for (std::size_t y = 0; y < rows_; ++y) {
      for (std::size_t x = 0; x < columns_; ++x) larger[y * columns + x] = grid_[y * columns_ + x];
    }
    grid_ = static_cast<page_array<core_state>&&>(larger);
    columns_ = columns;
    rows_ = rows;
    return true;
  }

  /// Adds a rectangle to the known ones; false if the system has no memory.
  [[nodiscard]] bool note(const core_range& cores) noexcept {
    if (known_ranges_.find(cores.packed())) return true;
    if (!ranges_.reserve(ranges_.size() + 1) || known_ranges_.insert(cores.packed()).entry == nullptr) return false;
    return ranges_.push_back(cores.packed());
  }

  page_array<core_state> grid_;  ///< row by row
  std::size_t columns_ = 0;
  std::size_t rows_ = 0;
  live_blocks blocks_[2];     ///< by `buffer_kind`, in the form that `for_each_block` visits
  live_blocks known_ranges_;  ///< `ranges_` as a set
  page_array<std::uint32_t> ranges_;
  page_array<std::uint64_t> ended_;
  page_array<core_maxima> segments_;
  summaries_by_name<3> by_name_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
