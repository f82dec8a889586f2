#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The tables of `memprof analyze`: those of tt-train's analyze_memory.py line for line, then what that script leaves out.

namespace memprof::inline MEMPROF_ABI {

/// A memory space of a profile, and its breakdown.
struct analyzed_space {
  std::shared_ptr<const memprof::profile> profile;
  std::size_t space = 0;  ///< index into the profile's spaces
  memory_breakdown breakdown;

  [[nodiscard]] const space_profile& usage() const { return profile->spaces[space]; }
};

/// The titles of the parts of a peak, in the order of `peak_part`.
inline constexpr std::array<std::string_view, peak_parts> peak_part_titles{"Other", "Model Parameters", "Gradients Overhead",
                                                                           "Optimizer State", "Activations"};

namespace detail {

[[nodiscard]] std::string percent_of(std::int64_t part, std::int64_t whole);

/// "(4 of 6)": the place of the segment at that index among all segments of the run, whether kept or not.
[[nodiscard]] std::string position_text(const profile& of, std::size_t index);

}  // namespace detail

/// The title of each space in tables and pictures: its section, or else its file; if that is ambiguous, also its file, its line
/// there, the rank and the memory space.
[[nodiscard]] std::vector<std::string> titles_of(const std::vector<analyzed_space>& analyzed);

/// The tables of one memory space as tt-train's analyze_memory.py prints them, then what the peak is made of, all segments, the
/// other memory spaces, and caveats about the numbers. MB, which only the tables of a
/// tracker's log have, is 2^20 bytes like MiB.
[[nodiscard]] std::string to_text(const analyzed_space& analyzed, const std::string& title);

/// The space with the greatest peak, its parts and whether it fits, in one sentence.
[[nodiscard]] std::string verdict_of(const std::vector<analyzed_space>& analyzed);

/// The notes of all spaces, under their titles where they are not common to all.
[[nodiscard]] std::vector<std::string> caveats_of(const std::vector<analyzed_space>& analyzed);

/// The whole report: the number of summaries, the source of the expected model size, and the tables of each.
[[nodiscard]] std::string to_text(const std::vector<analyzed_space>& analyzed, const breakdown_options& options);

}  // namespace memprof::inline MEMPROF_ABI
