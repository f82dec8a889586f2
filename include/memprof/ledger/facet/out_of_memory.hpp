#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/field_names.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// @file
/// The facet "out of memory": failed allocations. It observes `out_of_memory`.

namespace memprof::inline MEMPROF_ABI {

/// An allocation that failed because the device ran out of memory, as known at that moment.
struct out_of_memory_failure {
  std::int64_t requested = 0;       ///< bytes, rounded up if the allocator rounds
  std::int64_t device_free = 0;     ///< bytes free on the device, as reported by the allocator; -1: not reported
  std::int64_t live_bytes = 0;      ///< of the space, since the capture began
  std::int64_t reserved_bytes = 0;  ///< held by the allocator on the device, including live ones
  std::string operation;            ///< path of the requesting operation, empty if none was open
  std::int64_t segment = -1;        ///< index into `profile::segments` of the segment it was in; -1: not kept
  std::int64_t time_ns = 0;
  std::int64_t segment_number = -1;  ///< `segment::number` of that segment

  bool operator==(const out_of_memory_failure&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<out_of_memory_failure>{
    "requested", "device_free", "live_bytes", "reserved_bytes", "operation", "segment", "time_ns", "segment_number"};

template <>
inline constexpr detail::name_list detail::later_fields<out_of_memory_failure>{"segment_number"};

template <>
inline constexpr detail::name_list detail::nullable_fields<out_of_memory_failure>{"operation"};

template <>
inline constexpr detail::name_list detail::signed_fields<out_of_memory_failure>{"device_free", "segment", "time_ns",
                                                                                "segment_number"};

namespace detail {

/// The structs of the facet, for code that visits every field of a profile.
using out_of_memory_structs = type_list<out_of_memory_failure>;

struct saved_facets;

/// An allocation for which a device had no memory, and what was held then, in bytes.
struct out_of_memory_record {
  std::int64_t requested;
  std::int64_t device_free;  ///< -1: unknown
  std::int64_t live;
  std::int64_t reserved;
  std::uint64_t stamp;
  std::uint64_t segment;    ///< its number
  std::uint32_t operation;  ///< the innermost, on the requesting thread
};

/// The first `max_kept` failures, and the number of further ones: a program may retry again and again.
class out_of_memory_ledger {
 public:
  static constexpr std::size_t max_kept = 32;

  void add(const out_of_memory_record& failed) noexcept {
    if (kept_.size() == max_kept || !kept_.push_back(failed)) further_.add(static_cast<std::uint64_t>(failed.requested));
  }

  [[nodiscard]] const page_array<out_of_memory_record>& kept() const noexcept { return kept_; }
  [[nodiscard]] const event_tally& further() const noexcept { return further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.bytes(); }

 private:
  friend struct saved_facets;

  page_array<out_of_memory_record> kept_;
  event_tally further_;
};

/// Applies such an event. False if it must be rejected.
[[nodiscard]] inline bool note_out_of_memory(auto& run, const event& recorded, std::uint64_t stamp) noexcept {
  constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_free_known = recorded.address != unknown_device_free;
  if (recorded.bytes > greatest || (is_free_known && recorded.address > greatest)) return false;
  const std::int64_t device_free = is_free_known ? static_cast<std::int64_t>(recorded.address) : -1;
  auto& space = *run.space;
  space.out_of_memory().add({static_cast<std::int64_t>(recorded.bytes), device_free, space.live(), space.reserved().current(),
                             stamp, space.segment(), static_cast<std::uint32_t>(run.owner)});
  return true;
}

/// The failed allocations of a space.
template <class Failed, class Rows, class Failure = out_of_memory_failure>
[[nodiscard]] vector<Failure> build_out_of_memory(const Failed& failed, const clock_readings& time,
                                                  const vector<std::string>& paths, const Rows& segments) {
  vector<Failure> rows(failed.kept().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const out_of_memory_record& record = failed.kept()[index];
    rows[index] = {record.requested, record.device_free, record.live, record.reserved, {}, -1, time.to_ns(record.stamp)};
    if (record.operation != 0) rows[index].operation = paths[record.operation];
    rows[index].segment = segments.index_of(record.segment);
    rows[index].segment_number = segments.number_of(record.segment);
  }
  return rows;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
