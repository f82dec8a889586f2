#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/active_ledger.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/field_names.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The facet "streams": which streams and pools blocks are for, and which freed blocks streams still use. It observes
/// `allocate_on_stream`, `deallocate_on_stream` and `complete_deallocation`, and is notified of `reserve` and `release`.

namespace memprof::inline MEMPROF_ABI {

/// What one stream of a device held of a space, from one pool of its allocator; in bytes.
struct stream_usage {
  std::string stream;  ///< the source's name for it; for CUDA "default", or the address of the `cudaStream_t`: "0x55d0c0a1b2c0"
  /// Empty: the allocator's own; "unknown": libtorch does not say (2.6, for example); otherwise a private one, such as a CUDA
  /// graph's: "0:1".
  std::string pool;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocation_count = 0;
  std::int64_t reserved_peak = 0;     ///< greatest bytes that the allocator held on the device
  std::int64_t reserved_current = 0;  ///< likewise, at the end
  /// The last row may stand for all streams and pools beyond the first 64: `stream` is then "other streams".
  bool stands_for_others = false;

  bool operator==(const stream_usage&) const = default;
};

/// What streams used of a space in one segment: peak, and value at the end.
struct active_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const active_usage&) const = default;
};

/// The same over all segments of one name.
struct named_active_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_active_usage&) const = default;
};

/// The bytes of blocks allocated on streams, until no stream uses them any more: live blocks, and freed blocks that work on a
/// stream may still use (`event_sink::request_deallocation`). PyTorch's `active_bytes`, but in requested bytes. Zero and empty if
/// no block was allocated on a stream.
struct active_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                     ///< at the end
  vector<active_usage> segments;                ///< one for each of `profile::segments`
  vector<named_active_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_completions;            ///< for blocks freed before the capture or never seen; bytes as passed, if any
  event_tally missing_completions;              ///< for freed blocks whose address was reused; they count as completed by then

  bool operator==(const active_profile&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<stream_usage>{
    "stream",           "pool",          "cumulative_peak",  "cumulative_current",
    "allocation_count", "reserved_peak", "reserved_current", "stands_for_others"};

template <>
inline constexpr detail::name_list detail::later_fields<stream_usage>{"stands_for_others"};

template <>
inline constexpr detail::name_list detail::field_names<active_usage>{"peak", "current"};

template <>
inline constexpr detail::name_list detail::field_names<named_active_usage>{"segment", "peak", "current"};

template <>
inline constexpr detail::name_list detail::field_names<active_profile>{
    "peak", "current", "segments", "segments_by_name", "unmatched_completions", "missing_completions"};

namespace detail {

/// The structs of the facet, for code that visits every field of a profile.
using stream_structs = type_list<stream_usage, active_usage, named_active_usage, active_profile>;

struct saved_facets;

/// What was live and reserved for one stream of a device in one pool of its allocator, in bytes.
struct stream_record {
  label name;  ///< made by `stream_and_pool`; 0: all streams and pools beyond `stream_ledger::max_rows`
  std::int64_t live;
  std::int64_t peak_live;
  std::int64_t allocation_count;
  std::int64_t reserved;
  std::int64_t peak_reserved;
};

/// A row for each stream and pool with blocks or ranges, up to `max_rows`, and one for all others. Events that name no stream are
/// in none.
class stream_ledger {
 public:
  static constexpr std::size_t max_rows = 64;

  void allocate(label name, std::int64_t bytes) noexcept {
    if (name == 0) return;
    stream_record& row = row_of(name);
    row.live = add_saturating(row.live, bytes);
    row.peak_live = std::max(row.peak_live, row.live);
    ++row.allocation_count;
  }
  /// Frees more than is live if the block had another name before; no row becomes negative.
  void deallocate(label name, std::int64_t bytes) noexcept {
    if (name == 0 || bytes == 0) return;
    stream_record& row = row_of(name);
    row.live -= std::min(row.live, bytes);
  }
  /// The bytes held for the stream grew or, if `change` is negative, shrank.
  void change_reserved(label name, std::int64_t change) noexcept {
    if (name == 0 || change == 0) return;
    stream_record& row = row_of(name);
    row.reserved = std::max(add_saturating(row.reserved, change), std::int64_t{0});
    row.peak_reserved = std::max(row.peak_reserved, row.reserved);
  }

  /// In order of first occurrence.
  [[nodiscard]] const page_array<stream_record>& rows() const noexcept { return rows_; }
  /// Those without a row of their own; all 0 if there are none.
  [[nodiscard]] const stream_record& further() const noexcept { return further_; }
  [[nodiscard]] bool has_further() const noexcept { return has_further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }

 private:
  friend struct saved_facets;

  [[nodiscard]] stream_record& row_of(label name) noexcept {
    if (last_ < rows_.size() && rows_[last_].name == name) return rows_[last_];
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      if (rows_[index].name != name) continue;
      last_ = index;
      return rows_[index];
    }
    if (rows_.size() < max_rows && rows_.push_back({name, 0, 0, 0, 0, 0})) return rows_.back();
    has_further_ = true;
    return further_;
  }

  page_array<stream_record> rows_;
  stream_record further_{};
  std::size_t last_ = 0;  ///< most events have the same name as their predecessor
  bool has_further_ = false;
};

/// The size of the live block at the event's address; 0 if there is none.
[[nodiscard]] inline std::int64_t live_bytes_at(auto& space, std::uint64_t address) noexcept {
  const live_blocks::place found = space.find(address);
  return found ? static_cast<std::int64_t>(found->bytes) : 0;
}

[[nodiscard]] inline bool allocate_on_stream(auto& run, const event& recorded, std::uint64_t stamp) noexcept {
  const std::int64_t replaced = live_bytes_at(*run.space, recorded.address);
  const std::uint64_t count = run.space->allocation_count();
  if (!run.allocate(recorded, stamp)) return false;
  stream_ledger& streams = run.space->streams();
  streams.deallocate(recorded.label, replaced);
  active_ledger& active = run.space->active();
  active.deallocate(replaced);
  if (run.space->allocation_count() == count) return true;
  streams.allocate(recorded.label, static_cast<std::int64_t>(recorded.bytes));
  active.allocate(recorded.address, static_cast<std::int64_t>(recorded.bytes));
  return true;
}

/// False if the system has no memory to keep a freed block that is still in use.
[[nodiscard]] inline bool deallocate_on_stream(auto& run, const event& recorded, std::uint64_t stamp) noexcept {
  auto& space = *run.space;
  const live_blocks::place freed = space.find(recorded.address);
  const std::uint64_t bytes = freed ? freed->bytes : 0;
  space.streams().deallocate(recorded.label, static_cast<std::int64_t>(bytes));
  const bool is_request = recorded.tag != 0;
  if (is_request && !freed) space.active().note_unknown_request();
  const bool is_kept = is_request && freed && space.active().request(recorded.address, bytes);
  if (!is_kept) space.active().deallocate(static_cast<std::int64_t>(bytes));
  run.deallocate(recorded, stamp);
  return is_kept || !is_request || !freed;
}

/// Splits the names of a row, as joined by `stream_and_pool`.
inline void name_stream(stream_usage& row, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != name_separator) ++end;
  row.stream = text.substr(0, end);
  if (end < text.size()) row.pool = text.substr(end + 1);
}

[[nodiscard]] inline stream_usage to_stream_usage(const stream_record& record) {
  return {{}, {}, record.peak_live, record.live, record.allocation_count, record.peak_reserved, record.reserved, false};
}

/// The streams of a space, most reserved first; if equal, by live bytes, then by first occurrence.
template <class Streams, class Usage = stream_usage>
[[nodiscard]] vector<Usage> build_streams(const Streams& streams, name_view labels) {
  const std::size_t count = streams.rows().size();
  struct ranked {
    std::size_t row;
  };
  vector<ranked> order(count);
  for (std::size_t index = 0; index < count; ++index) order[index].row = index;
  sort_rows(order.data(), count, [&](ranked left, ranked right) {
    const stream_record& a = streams.rows()[left.row];
    const stream_record& b = streams.rows()[right.row];
    if (a.peak_reserved != b.peak_reserved) return a.peak_reserved > b.peak_reserved;
    return a.peak_live != b.peak_live ? a.peak_live > b.peak_live : left.row < right.row;
  });
  vector<Usage> rows(count + (streams.has_further() ? 1 : 0));
  for (std::size_t row = 0; row < count; ++row) {
    rows[row] = to_stream_usage(streams.rows()[order[row].row]);
    name_stream(rows[row], labels.text(streams.rows()[order[row].row].name));
  }
  if (streams.has_further()) {
    rows[count] = to_stream_usage(streams.further());
    rows[count].stream = "other streams";
    rows[count].stands_for_others = true;
  }
  return rows;
}

/// What streams used of a space, including freed blocks.
template <class Active, class Rows, class Names, class Profile = active_profile>
[[nodiscard]] Profile build_active(const Active& used, const Rows& rows, const Names& names) {
  Profile result;
  if (!used.is_used()) return result;
  fill_level(result, used.level(), rows, names);
  result.unmatched_completions = used.unmatched_completions;
  result.missing_completions = used.missing_completions;
  return result;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
