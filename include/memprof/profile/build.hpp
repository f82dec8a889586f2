#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/build_checkpoints.hpp>
#include <memprof/profile/build_operations.hpp>
#include <memprof/profile/build_space.hpp>
#include <memprof/profile/joint_peaks.hpp>
#include <memprof/profile/ledger_names.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/provenance_of_facts.hpp>
#include <memprof/profile/segment_rows.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The profile of what a ledger saw. Fields that it cannot know (wall clock, run mode, process, cost, facts) keep their defaults.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
/// Not inlined, here and below: code that always calls its cold parts is cold itself.
template <class Ledger>
[[nodiscard, gnu::noinline]] profile build_profile(Ledger& events, const ledger_names& names) {
  events.settle();
  profile result;
  result.library_version = version_string;
  result.exact = true;
  result.complete = names.is_complete;
  const segment_rows rows{events.segments(), !names.is_complete};
  result.segments = build_segments(rows, names.labels, names.time, events.segment_begin(), events.last_stamp());
  result.segments_by_name = build_names(rows, names.labels, names.time, events.begin_stamp(), result.segments);
  result.segment_count = static_cast<std::int64_t>(events.segments().count()) + (names.is_complete ? 0 : 1);
  result.step_count = result.segment_count == 0 ? 0 : static_cast<std::int64_t>(events.segments().step()) + 1;
  const vector<std::string> paths = operation_paths(events.operations(), names.labels);
  result.operations = build_operations(events, names, paths);
  result.checkpoints = build_checkpoints(events.checkpoints(), names, paths);
  result.checkpoint_count = static_cast<std::int64_t>(events.checkpoints().count());
  std::size_t space_count = 0;
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) space_count += events.space(id) != nullptr ? 1U : 0U;
  result.spaces = vector<space_profile>(space_count);
  for (std::size_t id = 0, index = 0; id < ledger::max_spaces; ++id) {
    const space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const label name = names.space_names[id];
    const bool is_shared = name == other_names;
    result.spaces[index++] = space_builder{*space, rows, names, paths}.build(
        is_shared ? other_spaces_name : names.labels.text(name), is_shared, result.segments, result.segments_by_name);
    if (is_shared || space->untracked_allocations.count != 0) result.exact = false;
  }
  result.memories = build_memories(events, names.labels, names.time, paths, rows, result.spaces);
  result.anomalies.rejected_events = static_cast<std::int64_t>(events.rejected_events());
  result.anomalies.unbalanced_scopes = static_cast<std::int64_t>(events.unbalanced_scopes());
  result.anomalies.too_deep_scopes = static_cast<std::int64_t>(events.too_deep_scopes());
  for (const named_segments& row : result.segments_by_name) {
    if (row.stands_for_others) result.anomalies.other_segments = row.count;
  }
  for (const operation_profile& operation : result.operations) {
    if (operation.stands_for_others) result.anomalies.other_operations += operation.invocations;
  }
  result.anomalies.other_names = static_cast<std::int64_t>(events.other_names());
  // A trace from a file may claim any number.
  const auto count = [](std::uint64_t events_of_kind) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(events_of_kind, INT64_MAX));
  };
  result.anomalies.dropped_events = count(events.dropped_events());
  result.anomalies.reentrant_events = count(events.reentrant_events());
  result.anomalies.missing_events = count(events.missing_events());
  if ((events.rejected_events() | events.dropped_events() | events.reentrant_events() | events.missing_events()) != 0 ||
      events.are_more_missing()) {
    result.exact = false;
  }
  return result;
}

/// The profile of a trace so far, with its facts. The cost of recording, which only the capture knows, keeps its default.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
template <class Fold, class Facts>
[[nodiscard, gnu::noinline]] profile build_profile_of(Fold& fold, Facts&& facts) {
  auto& events = fold.events();
  profile result = build_profile(events, {fold.names(), fold.space_names(), events.clock(), events.has_ended()});
  const capture_info info = fold.info();
  result.library_version = info.library_version;
  result.mode = info.mode;
  result.device = info.device;
  result.begin_unix_ns = info.begin_unix_ns;
  result.duration_ns = std::max(events.clock().last_ns(), events.clock().to_ns(events.last_stamp()));
  result.process = info.process;
  result.facts = std::forward<Facts>(facts);
  result.provenance = provenance_of(result.facts);
  result.anomalies.missing_fact_rows = static_cast<std::int64_t>(std::min<std::uint64_t>(fold.missing_fact_rows(), INT64_MAX));
  if (fold.missing_fact_rows() != 0 || result.provenance.assumed) result.exact = false;
  return result;
}
/// The same of a trace of which more will come.
template <class Fold>
[[nodiscard, gnu::noinline]] profile build_profile_of(Fold& fold) {
  return build_profile_of(fold, fold.facts());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
