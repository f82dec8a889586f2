#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <optional>

/// @file
/// The rules that relate the numbers of a log's summary: they fill in what is missing, and detect contradictions.

namespace memprof::inline MEMPROF_ABI::detail {

/// 0.01 MB, the precision of a log.
inline constexpr std::int64_t tracker_resolution = 10486;

/// The one memory space of a log.
[[nodiscard]] inline space_profile& space_of(profile& summary) { return summary.spaces.front(); }

/// The cumulative values of a segment that follows those of the space.
void compute_cumulative(const space_profile& space, segment_usage& segment);

/// Ends a summary whose log has the totals.
void state_totals(profile& summary, std::int64_t overall_peak, std::optional<std::int64_t> final_usage);

/// Ends a summary whose log breaks off before the totals; there must be a segment.
void compute_totals(profile& summary);

}  // namespace memprof::inline MEMPROF_ABI::detail
