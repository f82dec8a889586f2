#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>
#include <memprof/toolkit/page/run_picture_rows.hpp>

#include <string>
#include <string_view>
#include <vector>

/// @file
/// A run as one picture for papers and logs, drawn by gnuplot: for each memory space its live bytes over time, and below them
/// what was live at the peak. Legible at a width of 800 pixels; the colours are those of Okabe and Ito, which colour-blind
/// readers can tell apart.

namespace memprof::inline MEMPROF_ABI {

struct run_picture_options {
  std::string_view title = {};
  composition by = composition::automatic;
};

/// A memory space to draw: `space` must be one of the profile's. Both must outlive the call.
struct drawn_space {
  const memprof::profile* profile = nullptr;
  const space_profile* space = nullptr;
  std::string name = {};  ///< its title; default: the name of the space
};

/// The gnuplot script (5.4 or later) that draws memory spaces below each other into the file `path`. If a profile has no
/// timeline, as from a log, its segments are drawn. Every maximum of a timeline is drawn, whatever its length. Text is quoted so
/// that gnuplot cannot run it as commands.
[[nodiscard]] std::string run_picture_script(const std::vector<drawn_space>& spaces, const run_picture_options& options,
                                             picture_format format, std::string_view path);

}  // namespace memprof::inline MEMPROF_ABI
