#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

/// @file
/// What the resident memory of a process consisted of, as far as its capture knows, and how much of its heap no source recorded.

namespace memprof::inline MEMPROF_ABI {

/// The parts of a reading. They add up to `resident_bytes`, if those are known: memory that was allocated but never touched, or
/// swapped out, is left out of the later ones.
struct process_account {
  process_memory reading;
  std::int64_t recorded = 0;
  std::int64_t unrecorded_heap = 0;
  std::int64_t heap_before = 0;      ///< blocks of `malloc` from before the capture
  std::int64_t free_heap = 0;        ///< kept by `malloc` for later blocks
  std::int64_t profiler = 0;         ///< the profiler's own
  std::int64_t other_anonymous = 0;  ///< mappings and stacks; the whole unrecorded heap if `malloc` said nothing of it
  std::int64_t files = 0;            ///< code and files
  std::int64_t not_resident = 0;     ///< bytes of blocks, recorded or not, that are not resident
  bool is_split_known = true;        ///< false: blocks exceed what may be resident of them, so some of `recorded` may be others'
  bool is_incomplete = false;        ///< `malloc` said nothing, and the process grew by more than twice what was recorded
  bool is_only_first = false;        ///< the reading is from the capture's begin, and no later one says what was resident

  /// Whether `malloc` told how much of the heap was not recorded.
  [[nodiscard]] bool is_heap_known() const noexcept { return reading.unrecorded_heap_bytes >= 0; }
};

namespace detail {

/// Whether bytes are worth a remark about a process: more than 5 %, and more than a program has without allocating anything.
[[nodiscard]] constexpr bool is_notable(std::int64_t bytes, std::int64_t resident) noexcept {
  return bytes >= (std::int64_t{1} << 20) && bytes > resident / 20;
}

/// Compares with the heap where it is unknown what was resident.
[[nodiscard, gnu::cold]] inline bool is_heap_notable(const process_memory& reading) noexcept {
  return is_notable(reading.unrecorded_heap_bytes, reading.resident_bytes < 0 ? reading.heap_bytes : reading.resident_bytes);
}

/// Divides what was resident among its causes. Bytes that are unknown, or more than were resident, count as none.
[[nodiscard, gnu::cold]] inline process_account account_of(const process_memory& reading) {
  process_account account;
  account.reading = reading;
  const std::int64_t resident = std::max<std::int64_t>(reading.resident_bytes, 0);
  const std::int64_t anonymous =
      reading.anonymous_bytes < 0 ? resident : std::min<std::int64_t>(resident, reading.anonymous_bytes);
  account.files = resident - anonymous;
  std::int64_t left = anonymous;  // blocks are never in files
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t taken = std::clamp<std::int64_t>(bytes, 0, left);
    left -= taken;
    return taken;
  };
  account.recorded = take(reading.recorded_bytes);
  account.unrecorded_heap = take(reading.unrecorded_heap_bytes);
  const std::int64_t missing = std::max<std::int64_t>(reading.recorded_bytes, 0) - account.recorded;
  account.not_resident = missing + std::max<std::int64_t>(reading.unrecorded_heap_bytes, 0) - account.unrecorded_heap;
  account.profiler = take(reading.profiler_bytes);
  account.heap_before = take(reading.heap_before_bytes);
  const std::int64_t displaced = std::max<std::int64_t>(reading.heap_before_bytes, 0) - account.heap_before;
  account.is_split_known = !detail::is_notable(account.not_resident + displaced, resident);
  account.free_heap = take(reading.free_heap_bytes);
  if (reading.anonymous_bytes < 0) {
    account.files = left;
  } else {
    account.other_anonymous = left;
  }
  return account;
}

/// Whether the process grew by more than twice what was recorded, and `malloc` said nothing of it when it was read or at the end:
/// the program has another one, or none that tells. As much again may be what that takes for the recorded blocks, and keeps of
/// those freed.
[[nodiscard, gnu::cold]] inline bool has_unexplained_growth(const process_account& of, const vector<process_memory>& rows) {
  if (of.is_heap_known()) return false;
  std::int64_t before = 0;
  std::int64_t recorded = 0;
  for (const process_memory& row : rows) {
    if (row.moment == "last" && row.unrecorded_heap_bytes >= 0) return false;
    if (row.moment == "first") before = std::max<std::int64_t>(0, row.anonymous_bytes);
    recorded = std::max(recorded, row.recorded_bytes);
  }
  const std::int64_t growth = of.reading.anonymous_bytes - before - of.profiler;
  return is_notable(of.other_anonymous, of.reading.resident_bytes) && is_notable(growth - recorded, of.reading.resident_bytes) &&
         growth / 2 > recorded;
}

/// Whether the capture read what was resident when it began and never again: its process left by `_exit` or a signal, has closed
/// the file, or had no memory left for that.
[[nodiscard, gnu::cold]] inline bool is_only_first(const process_memory& reading, const vector<process_memory>& rows) {
  bool is_first = false;
  for (const process_memory& row : rows) {
    if (row.time_ns > reading.time_ns && row.resident_bytes >= 0) return false;
    is_first = is_first || (row.moment == "first" && row.time_ns == reading.time_ns);
  }
  return is_first;
}

}  // namespace detail

/// The reading that says most about memory which was not recorded: that with the most resident bytes, unless only another one has
/// notable unrecorded heap. None if the capture did not look, as in an imported trace, or if what it recorded lies elsewhere: in
/// the memory of devices, or nowhere, as in a simulated run.
[[nodiscard, gnu::cold]] inline std::optional<process_account> process_account_of(const profile& source) {
  std::optional<process_account> found;
  const auto is_elsewhere = [](const space_profile& space) { return detail::is_device_name(space.name); };
  if (source.mode == run_mode::no_dispatch) return found;
  if (!source.spaces.empty() && std::all_of(source.spaces.begin(), source.spaces.end(), is_elsewhere)) return found;
  const vector<process_memory> rows = rows_of<process_memory>(source.facts);
  for (const std::string_view moment : {"most_resident", "most_unrecorded"}) {
    for (const process_memory& row : rows) {
      const bool has_heap = detail::is_heap_notable(row);
      if (row.moment != moment || (row.resident_bytes < 0 && !has_heap)) continue;
      if (!found || has_heap) found = detail::account_of(row);
    }
    if (found && detail::is_heap_notable(found->reading)) break;
  }
  if (!found) return found;
  found->is_incomplete = detail::has_unexplained_growth(*found, rows);
  found->is_only_first = detail::is_only_first(found->reading, rows);
  for (const process_memory& row : rows) {  // a later reading may know
    found->reading.records_operator_new = std::max(found->reading.records_operator_new, row.records_operator_new);
  }
  return found;
}

namespace detail {

/// Whether more than 5 % of what was resident is heap that no source recorded: peaks are then too small.
[[nodiscard, gnu::cold]] inline bool has_unrecorded_heap(const process_account& of) noexcept {
  return detail::is_heap_notable(of.reading);
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
