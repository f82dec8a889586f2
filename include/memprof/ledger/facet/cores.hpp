#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/core_ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/field_names.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The facet "cores": usage of memory that each core of a device has to itself. It observes `allocate_on_cores`,
/// `deallocate_on_cores` and `deallocate_circular_buffers`.

namespace memprof::inline MEMPROF_ABI {

/// The greatest bytes on any core that has its own memory. The three need not be on the same core or at the same moment, so
/// `total` is at most the sum of the others.
struct core_peaks {
  std::int64_t circular_buffers = 0;
  std::int64_t buffers = 0;
  std::int64_t total = 0;    ///< peak of both together on a core
  std::string busiest_core;  ///< column and row of the first core with that `total`, as in "3-4"; empty if it is 0

  bool operator==(const core_peaks&) const = default;
};

/// One of the core rectangles that blocks were on, with the peaks on its cores, from all blocks whatever their rectangle.
struct core_range_peaks {
  std::string range;  ///< first and last core, as in "[0-0 - 7-7]"
  core_peaks peaks;

  bool operator==(const core_range_peaks&) const = default;
};

/// Peaks on cores over all segments of one name.
struct named_core_peaks {
  std::string segment;
  value_summary circular_buffers;
  value_summary buffers;
  value_summary total;

  bool operator==(const named_core_peaks&) const = default;
};

/// Usage of single cores. Empty for a space without blocks on cores (`event_sink::allocate_on_cores`); the other numbers of the
/// space count such a block with its bytes on all its cores together.
struct core_profile {
  core_peaks peaks;                           ///< over the whole capture
  vector<core_peaks> segments;                ///< one for each of `profile::segments`, including blocks of earlier segments
  vector<core_range_peaks> ranges;            ///< over the whole capture, greatest total first
  vector<named_core_peaks> segments_by_name;  ///< one for each of `profile::segments_by_name`

  bool operator==(const core_profile&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<core_peaks>{"circular_buffers", "buffers", "total", "busiest_core"};

template <>
inline constexpr detail::name_list detail::field_names<core_range_peaks>{"range", "peaks"};

template <>
inline constexpr detail::name_list detail::field_names<named_core_peaks>{"segment", "circular_buffers", "buffers", "total"};

template <>
inline constexpr detail::name_list detail::field_names<core_profile>{"peaks", "segments", "ranges", "segments_by_name"};

template <>
inline constexpr detail::name_list detail::later_fields<core_profile>{"segments_by_name"};

namespace detail {

/// The structs of the facet, for code that visits every field of a profile.
using core_structs = type_list<core_peaks, core_range_peaks, named_core_peaks, core_profile>;

/// An event about blocks on cores, and how it is applied to a space.
///
/// In the space as a whole, a block on cores is an ordinary block, as large as its parts together; `space_ledger::cores` has the
/// parts.
class per_core_event {
 public:
  explicit per_core_event(const event& recorded) noexcept
      : part_(recorded), whole_(recorded), cores_(core_range::unpacked(recorded.label)) {
    whole_.tag = recorded.tag & 0xFFU;
    is_possible_ = cores_.is_valid() && !__builtin_mul_overflow(recorded.bytes, cores_.count(), &whole_.bytes);
  }

  /// False if the event is impossible: wrong kind, rectangle, kind of buffer or size.
  [[nodiscard]] bool is_possible() const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores:
        return is_possible_ && part_.address != 0 && part_.tag >> 8U <= static_cast<unsigned>(buffer_kind::circular_buffer);
      case event_kind::deallocate_on_cores: return is_possible_;
      case event_kind::deallocate_circular_buffers: return cores_.is_valid();
      default: return false;
    }
  }

  /// Cost of applying a possible event; `space` is null if it does not exist yet.
  [[nodiscard]] std::uint64_t steps(const auto* space) const noexcept {
    if (part_.kind == event_kind::allocate_on_cores) return cores_.count();
    if (space == nullptr) return 0;
    return part_.kind == event_kind::deallocate_on_cores ? space->cores().grid_size() : space->blocks().size();
  }

  /// Applies a possible event to the thread's current space. False if it must be rejected: the totals have no room for that many
  /// bytes, or the system has no memory.
  [[nodiscard]] bool apply(auto& run, std::uint64_t stamp) const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores: return allocate(run, stamp);
      case event_kind::deallocate_on_cores:
        run.space->cores().deallocate(part_.address);
        run.deallocate(whole_, stamp);
        break;
      default: deallocate_circular_buffers(run, stamp); break;
    }
    return true;
  }

 private:
  [[nodiscard]] bool allocate(auto& run, std::uint64_t stamp) const noexcept {
    auto& space = *run.space;
    const std::uint64_t born_thread = (space.allocation_count() + 1) << block::thread_bits | run.thread;
    const auto kind = static_cast<buffer_kind>(part_.tag >> 8U);
    // Checked first, so that both accounts have the block or neither does.
    if (!space.has_room_for(whole_.bytes) || !space.cores().allocate(part_.address, part_.bytes, cores_, kind, born_thread)) {
      return false;
    }
    (void)run.allocate(whole_, stamp);
    space.check_cores(part_.address, cores_, stamp);
    return true;
  }

  void deallocate_circular_buffers(auto& run, std::uint64_t stamp) const noexcept {
    for (const std::uint64_t address : run.space->cores().deallocate_circular_buffers(cores_)) {
      const live_blocks::place entry = run.space->find(address);
      if (entry) run.take_away(entry);  // otherwise an event that no `event_sink` sends freed it as an ordinary block
    }
    run.space->mark_event(stamp);
  }

  event part_;   ///< as recorded: `bytes` on each core, the kind of buffer in `tag`
  event whole_;  ///< as the space sees it
  core_range cores_;
  bool is_possible_;
};

/// "3-4": column, then row.
template <class Coordinate>
[[nodiscard]] std::string core_text(Coordinate x, Coordinate y) {
  return std::to_string(x).append(1, '-').append(std::to_string(y));
}

/// "[0-0 - 7-7]", as tt-metal writes a rectangle of cores.
template <class Range>
[[nodiscard]] std::string core_range_text(const Range& cores) {
  std::string text{'['};
  return text.append(core_text(cores.x0, cores.y0)).append(" - ").append(core_text(cores.x1, cores.y1)).append(1, ']');
}

template <class Maxima>
[[nodiscard]] core_peaks to_core_peaks(const Maxima& greatest) {
  core_peaks result{greatest.peak.circular_buffers, greatest.peak.buffers, greatest.peak.total, {}};
  if (greatest.peak.total != 0) result.busiest_core = core_text(greatest.busiest_x, greatest.busiest_y);
  return result;
}

/// The rows of all rectangles, greatest total first.
template <class Cores, class Peaks = core_range_peaks>
[[nodiscard]] vector<Peaks> build_core_ranges(const Cores& cores) {
  struct row {
    std::uint32_t packed;
    core_maxima greatest;
  };
  vector<row> rows(cores.ranges().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const std::uint32_t packed = cores.ranges()[index];
    rows[index] = {packed, cores.overall(core_range::unpacked(packed))};
  }
  sort_rows(rows.data(), rows.size(), [](const row& left, const row& right) {
    const core_usage& of_left = left.greatest.peak;
    const core_usage& of_right = right.greatest.peak;
    return of_left.total != of_right.total ? of_left.total > of_right.total : left.packed < right.packed;
  });
  vector<Peaks> result(rows.size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    result[index] = {core_range_text(core_range::unpacked(rows[index].packed)), to_core_peaks(rows[index].greatest)};
  }
  return result;
}

/// What one space held on each core. Costs a pass over the cores of each rectangle.
template <class Cores, class Rows, class Names, class Profile = core_profile>
[[nodiscard]] Profile build_cores(const Cores& cores, const Rows& rows, const Names& names) {
  Profile result;
  if (!cores.is_used()) return result;
  result.peaks = to_core_peaks(cores.overall(any_core));
  const auto open = cores.open_segment();
  result.segments.resize(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const std::size_t position = rows.position(index);
    if (position < cores.segments().size()) result.segments[index] = to_core_peaks(cores.segments()[position]);
  }
  if (rows.has_open()) result.segments[rows.finished()] = to_core_peaks(open);
  result.segments_by_name.resize(rows.names());
  for_each_name(rows, cores.by_name(), std::array{open.peak.circular_buffers, open.peak.buffers, open.peak.total},
                [&](std::size_t row, const auto& values) {
                  result.segments_by_name[row] = {names[row].name, values[0], values[1], values[2]};
                });
  result.ranges = build_core_ranges(cores);
  return result;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
