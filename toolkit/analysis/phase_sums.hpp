#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// Sums over all segments of a phase. A long run keeps only some of its segments in full; the rows by name have sums and extremes
/// of all of them.

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr std::string_view model_phase = "MODEL_CREATION";
inline constexpr std::string_view optimizer_phase = "OPTIMIZER_CREATION";
inline constexpr std::string_view forward_phase = "FORWARD_PASS";
inline constexpr std::string_view backward_phase = "BACKWARD_PASS";

/// The total change of all occurrences of a phase.
[[nodiscard]] std::optional<std::int64_t> total_change(const space_profile& space, std::string_view phase);

/// The greatest rise within one occurrence of a phase.
[[nodiscard]] std::optional<std::int64_t> greatest_segment_peak(const space_profile& space, std::string_view phase);

/// What is live after the last occurrence of a phase.
[[nodiscard]] std::optional<std::int64_t> current_after(const profile& of, const space_profile& space, std::string_view phase);

/// What forward passes keep for the backward pass. Consecutive passes add up; after a backward pass, or a segment that the
/// profile does not keep, counting restarts; the greatest such run counts.
[[nodiscard]] std::optional<std::int64_t> kept_activations(const profile& of, const space_profile& space);

}  // namespace memprof::inline MEMPROF_ABI::detail
