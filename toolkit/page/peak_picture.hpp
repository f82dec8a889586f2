#pragma once

#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The peaks as stacked bars, drawn by gnuplot with the bars, colours and order of tt-train's analyze_memory.py.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// A part as drawn, in bytes.
struct bar_slice {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool cut = false;  ///< drawn lower than it is, since the bar must not exceed the peak
};

/// The slices of a bar, bottom first. A negative part has no height; the topmost parts are cut at the peak.
[[nodiscard]] std::array<bar_slice, peak_parts> stacked(const memory_breakdown& breakdown);

/// Where to put labels that should be at the ascending places `wished`: at least `distance` apart, between 0 and `end`.
[[nodiscard]] std::vector<double> spread(std::vector<double> wished, double distance, double end);

}  // namespace detail

/// The gnuplot script (5.4 or later) that draws one bar per memory space into the file `path`: from the bottom up other, model,
/// gradients, optimizer and activations. Device memory, if a device was named, is a red dashed line, stepped if the bars are of
/// different devices. No bar is taller than its peak; labels do not overlap and have the digits of the tables. Text from logs is
/// quoted so that gnuplot cannot run it as commands.
[[nodiscard]] std::string peak_picture_script(const std::vector<analyzed_space>& bars, std::string_view title,
                                              picture_format format, std::string_view path);

}  // namespace memprof::inline MEMPROF_ABI
