#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/address_ranges.hpp>
#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/field_names.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// @file
/// The facet "reserved": what a caching allocator holds on the device. It observes `reserve` and `release`.

namespace memprof::inline MEMPROF_ABI {

/// What an allocator held on the device in one segment: peak, and value at the end.
struct reserved_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const reserved_usage&) const = default;
};

/// The same over all segments of one name.
struct named_reserved_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_reserved_usage&) const = default;
};

/// What a caching allocator held on the device, in bytes since the capture began; the other numbers of the space cover what the
/// program allocated from it. Zero and empty without such an allocator (`event_sink::reserve`).
struct reserved_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                       ///< at the end
  vector<reserved_usage> segments;                ///< one for each of `profile::segments`
  vector<named_reserved_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_releases;                 ///< of ranges, or parts, taken before the capture or never seen
  event_tally replaced_reservations;              ///< reservations of addresses already held; the older range counts as returned

  bool operator==(const reserved_profile&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<reserved_usage>{"peak", "current"};

template <>
inline constexpr detail::name_list detail::field_names<named_reserved_usage>{"segment", "peak", "current"};

template <>
inline constexpr detail::name_list detail::field_names<reserved_profile>{
    "peak", "current", "segments", "segments_by_name", "unmatched_releases", "replaced_reservations"};

template <>
inline constexpr detail::name_list detail::later_fields<reserved_profile>{"segments_by_name"};

namespace detail {

/// The structs of the facet, for code that visits every field of a profile.
using reserved_structs = type_list<reserved_usage, named_reserved_usage, reserved_profile>;

struct saved_facets;

/// What a caching allocator has taken from the device and not returned, as address ranges: it may return other ranges than it
/// took, as expandable segments do.
class reserved_ledger {
 public:
  /// Whatever already lies in the range counts as returned. False if the event must be rejected: zero bytes, a range past the
  /// last address, or no room for it in the totals or the system's memory.
  [[nodiscard]] bool reserve(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t end = address + bytes;
    if (bytes == 0 || end < address || !ranges_.make_room()) return false;
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - current())) return false;
    is_used_ = true;
    const std::uint64_t replaced = erase(address, end);
    if (replaced != 0) replaced_reservations.add(replaced);
    ranges_.insert({address, end});
    level_.change(static_cast<std::int64_t>(bytes));
    return true;
  }

  /// Returns the held part of the range; the rest is counted as unmatched. `bytes` 0: the whole range that begins at `address`.
  /// False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool release(std::uint64_t address, std::uint64_t bytes) noexcept {
    if (!ranges_.make_room()) return false;
    is_used_ = true;
    if (bytes == 0) bytes = ranges_.bytes_from(address);
    const std::uint64_t end = address + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - address);
    const std::uint64_t released = bytes == 0 ? 0 : erase(address, end);
    if (bytes == 0 || released < bytes) unmatched_releases.add(bytes - released);
    return true;
  }

  /// Ends the segment last added to `history`. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Drops the segments that are no longer kept.
  template <class IsKept>
  void compact(const IsKept& is_kept) noexcept {
    level_.compact(is_kept);
  }
  /// Adds segments in which nothing changed, as `byte_level` does.
  [[nodiscard]] bool repeat(std::size_t first, std::size_t last) noexcept { return !is_used_ || level_.repeat(first, last); }
  void repeat_name(std::size_t row, std::uint64_t times) noexcept { level_.repeat_name(row, times); }

  /// Whether there was any event.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  [[nodiscard]] std::int64_t current() const noexcept { return level_.current(); }
  [[nodiscard]] std::int64_t peak() const noexcept { return level_.peak(); }
  /// The held bytes, for each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return ranges_.bytes() + level_.bytes(); }

  event_tally unmatched_releases;
  event_tally replaced_reservations;

 private:
  friend struct saved_facets;

  /// Removes [begin, end) from the ranges and returns how many bytes of it they covered. Requires room.
  std::uint64_t erase(std::uint64_t begin, std::uint64_t end) noexcept {
    const std::uint64_t erased = ranges_.erase(begin, end);
    level_.change(-static_cast<std::int64_t>(erased));
    return erased;
  }

  address_ranges ranges_;
  byte_level level_;
  bool is_used_ = false;
};

/// Applies such an event, also to the streams. False if it must be rejected.
[[nodiscard]] inline bool change_reserved(auto& space, const event& recorded) noexcept {
  reserved_ledger& held = space.reserved();
  const std::int64_t before = held.current();
  const bool is_applied = recorded.kind == event_kind::reserve ? held.reserve(recorded.address, recorded.bytes)
                                                               : held.release(recorded.address, recorded.bytes);
  if (is_applied) space.streams().change_reserved(recorded.label, held.current() - before);
  return is_applied;
}

/// What a space's allocator held.
template <class Reserved, class Rows, class Names, class Profile = reserved_profile>
[[nodiscard]] Profile build_reserved(const Reserved& held, const Rows& rows, const Names& names) {
  Profile result;
  if (!held.is_used()) return result;
  fill_level(result, held.level(), rows, names);
  result.unmatched_releases = held.unmatched_releases;
  result.replaced_reservations = held.replaced_reservations;
  return result;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
