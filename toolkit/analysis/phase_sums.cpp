#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/phase_name.hpp>
#include <memprof/toolkit/analysis/phase_sums.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Calls `visit` with each row by name of the phase, in order of first segment. Returns whether there are rows at all.
template <class Visit>
bool visit_rows(const space_profile& space, std::string_view phase, Visit visit) {
  for (std::size_t index = 0; index < space.segments_by_name.size(); ++index) {
    if (is_occurrence(space.segments_by_name[index].segment, phase)) visit(index, space.segments_by_name[index]);
  }
  return !space.segments_by_name.empty();
}

}  // namespace

std::optional<std::int64_t> total_change(const space_profile& space, std::string_view phase) {
  std::optional<std::int64_t> sum;
  const auto add = [&](std::int64_t change) { sum = add_saturating(sum.value_or(0), change); };
  if (visit_rows(space, phase, [&](std::size_t, const segment_summary& row) { add(row.segment_change.sum); })) return sum;
  for (const segment_usage& segment : space.segments) {
    if (is_occurrence(segment.segment, phase)) add(segment.segment_change);
  }
  return sum;
}

std::optional<std::int64_t> greatest_segment_peak(const space_profile& space, std::string_view phase) {
  std::optional<std::int64_t> greatest;
  const auto look_at = [&](std::int64_t peak) { greatest = std::max(greatest.value_or(peak), peak); };
  if (visit_rows(space, phase, [&](std::size_t, const segment_summary& row) { look_at(row.segment_peak.greatest); })) {
    return greatest;
  }
  for (const segment_usage& segment : space.segments) {
    if (is_occurrence(segment.segment, phase)) look_at(segment.segment_peak);
  }
  return greatest;
}

std::optional<std::int64_t> current_after(const profile& of, const space_profile& space, std::string_view phase) {
  std::optional<std::int64_t> current;
  std::int64_t last_number = -1;
  const bool has_rows = visit_rows(space, phase, [&](std::size_t index, const segment_summary& row) {
    const std::int64_t number = index < of.segments_by_name.size() ? of.segments_by_name[index].last_number : -1;
    if (current && number < last_number) return;
    last_number = number;
    current = row.cumulative_current.last;
  });
  if (has_rows) return current;
  for (const segment_usage& segment : space.segments) {
    if (is_occurrence(segment.segment, phase)) current = segment.cumulative_current;
  }
  return current;
}

std::optional<std::int64_t> kept_activations(const profile& of, const space_profile& space) {
  std::optional<std::int64_t> greatest;
  std::int64_t run = 0;  // not an optional, of which g++ 12 thinks that it may be read uninitialized
  bool is_running = false;
  const auto end_run = [&] {
    if (is_running) greatest = std::max(greatest.value_or(run), run);
    run = 0;
    is_running = false;
  };
  for (std::size_t index = 0; index < space.segments.size(); ++index) {
    const bool is_known = index > 0 && index < of.segments.size() && of.segments[index].number >= 0;
    if (is_known && of.segments[index].number != of.segments[index - 1].number + 1) end_run();
    const segment_usage& segment = space.segments[index];
    if (is_occurrence(segment.segment, forward_phase)) {
      run = add_saturating(run, segment.segment_change);
      is_running = true;
    } else if (is_occurrence(segment.segment, backward_phase)) {
      end_run();
    }
  }
  end_run();
  return greatest;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
