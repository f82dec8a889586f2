#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Why a caching allocator reserved more than was allocated, and which of its settings would help.

namespace memprof::inline MEMPROF_ABI {

/// What the model of the allocator reserves with a setting, in bytes.
struct setting_trial {
  std::string setting;             ///< a value of PYTORCH_ALLOC_CONF; empty: the defaults
  std::int64_t reserved_peak = 0;  ///< of all that was recorded, on a device without a limit
  /// Whether the request that failed is served, on a device with what was reserved and free then; nothing if none failed, or if
  /// it is unknown what was free.
  std::optional<bool> serves_failure;

  bool operator==(const setting_trial&) const = default;
};

/// The causes in one memory space, and the settings that were tried.
struct reserved_causes {
  std::string space;
  /// Where the parts are from: the addresses in the trace, or the model, where blocks have no addresses in the allocator's
  /// memory.
  bool is_modelled = false;
  recorded_fragmentation found;
  std::string setting;                ///< that the run had, or the one of those tried that reserves most nearly as much
  bool is_setting_recorded = false;   ///< whether the trace has it
  setting_trial as_it_was;            ///< the model with that setting
  std::vector<setting_trial> trials;  ///< with others: those that serve the failed request first, then least reserved first
  bool is_too_long = false;           ///< there are more than `most_replayed_steps`, so no setting was tried

  /// The first trial, if it helps: it serves the request that failed, where that is known, or else reserves notably less.
  [[nodiscard]] const setting_trial* help() const noexcept;
};

/// Whether so much reserved memory in no block is worth a verdict: 5 % of it and a segment of 20 MiB.
[[nodiscard]] constexpr bool is_notable_gap(std::int64_t unused, std::int64_t reserved) noexcept {
  return unused >= (std::int64_t{20} << 20) && unused >= reserved / 20;
}

/// A replay takes some 30 to 120 ns for each step, and there are about ten.
inline constexpr std::size_t most_replayed_steps = 4'000'000;

/// The causes at the peak of what was reserved and at the first failure. Nothing if the space's allocator said nothing, if no
/// notable part of what it reserved was unused, or if the trace lacks its beginning. Reads the trace three times.
[[nodiscard]] std::optional<reserved_causes> reserved_causes_in(const trace_source_view& source, const profile& of,
                                                                const space_profile& space);

/// Those of each memory space in which they are notable: of the four with the most reserved bytes. Reads the trace only if there
/// are any.
[[nodiscard]] std::vector<reserved_causes> all_reserved_causes_in(const trace_source_view& source, const profile& of);

/// Replays the sequence with other settings than `now`. `limit`: what the device has for the allocator, and `failed`: the bytes
/// that it then refused after the step `end`; 0: nothing.
[[nodiscard]] std::vector<setting_trial> try_settings(const allocation_sequence& sequence, std::string_view now,
                                                      std::int64_t limit = 0, std::int64_t failed = 0, std::size_t end = 0);

}  // namespace memprof::inline MEMPROF_ABI
