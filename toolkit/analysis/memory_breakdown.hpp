#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/phase_name.hpp>
#include <memprof/toolkit/analysis/phase_sums.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the memory of a training step consists of, and whether it fits: the definitions of tt-train's analyze_memory.py, extended
/// to repeated phases and, where blocks have categories, exact sizes. docs/analyze.md explains them.

namespace memprof::inline MEMPROF_ABI {

/// Expected sizes in bytes.
struct breakdown_options {
  std::optional<std::int64_t> model_size = {};      ///< default: two bytes (bf16) per parameter, if their number is known
  std::optional<std::int64_t> optimizer_size = {};  ///< default: twice the model's (AdamW's two moments)
  std::optional<std::int64_t> gradients_size = {};  ///< default: the model's
  /// Default: the capacity of the space, if the profile has it; for a log of tt-train's tracker, `tracker_device_memory`.
  std::optional<std::int64_t> device_memory = {};
  bool use_actual_sizes = false;  ///< whether the parts of the peak use measured sizes for model and optimizer
};

/// The device's memory that tt-train's analyze_memory.py assumes: 12 GiB, which its help calls 12GB.
inline constexpr std::int64_t tracker_device_memory = std::int64_t{12} << 30;

/// Whether the profile was read from a log of tt-train's tracker, for which analyze_memory.py was written.
[[nodiscard]] inline bool is_tracker_log(const profile& of) noexcept { return of.provenance.format == detail::tracker_format; }

/// The source of the device's memory size; `none` if no device was named; `assumed`: `tracker_device_memory`.
enum class device_memory_source : std::uint8_t { none, option, profile, assumed };

/// The names of `device_memory_source`, in the order of its values.
inline constexpr std::array<std::string_view, 4> device_memory_source_names{"none", "option", "profile", "default"};

/// How a size was measured: by the changes in the segments of its phase, or by the category of blocks.
enum class size_source : std::uint8_t { none, phases, categories };

/// The names of `size_source`, in the order of its values.
inline constexpr std::array<std::string_view, 3> size_source_names{"none", "phases", "categories"};

/// A measured size.
struct measured_size {
  std::optional<std::int64_t> actual;
  size_source from = size_source::none;
};

/// A measured size and its expectation, if known.
struct compared_size : measured_size {
  std::optional<std::int64_t> expected;

  /// (actual - expected) / expected * 100; 0 if nothing was expected. Nothing if either is unknown.
  [[nodiscard]] std::optional<double> difference_percent() const {
    if (!actual || !expected) return std::nullopt;
    if (*expected == 0) return 0.0;
    return (static_cast<double>(*actual) - static_cast<double>(*expected)) / static_cast<double>(*expected) * 100.0;
  }
};

/// The parts of a peak, in the order in which a picture stacks them, bottom first.
enum class peak_part : std::uint8_t { other, model, gradients, optimizer, activations };

inline constexpr std::size_t peak_parts = 5;

/// The answers for one memory space of a profile, in bytes.
struct memory_breakdown {
  std::optional<std::int64_t> parameters;  ///< their number, if the profile has it
  compared_size model;
  compared_size optimizer;
  compared_size gradients;
  measured_size activations;
  std::int64_t peak = 0;
  std::optional<std::int64_t> device_memory;  ///< nothing: none is known
  device_memory_source device_memory_from = device_memory_source::none;
  /// The parts of the peak. From a profile with categories: what was live at the peak, so they add up to it. Otherwise by the
  /// script's definition, which takes the parts from different moments: they may be negative, and their sum may exceed the peak.
  std::array<std::int64_t, peak_parts> parts{};
  bool parts_are_live_at_peak = false;
  std::vector<std::string> remarks;

  [[nodiscard]] std::int64_t part(peak_part which) const noexcept { return parts[static_cast<std::size_t>(which)]; }
  [[nodiscard]] std::int64_t& part(peak_part which) noexcept { return parts[static_cast<std::size_t>(which)]; }

  /// The sum of all parts except `other`.
  [[nodiscard]] std::int64_t accounted() const noexcept {
    std::int64_t sum = 0;
    for (std::size_t index = 1; index < peak_parts; ++index) sum = detail::add_saturating(sum, parts[index]);
    return sum;
  }
  /// How much the parts exceed the peak; 0 if they do not.
  [[nodiscard]] std::int64_t excess() const noexcept {
    return std::max<std::int64_t>(0, detail::subtract_saturating(accounted(), peak));
  }
  /// Whether the device has room for the peak; nothing without a device or for a negative, hence invalid, peak.
  [[nodiscard]] std::optional<bool> fits() const {
    if (!device_memory || peak < 0) return std::nullopt;
    return peak <= *device_memory;
  }
  /// The peak in percent of the device's memory; nothing without a device, if its memory is 0, or if the peak is negative.
  [[nodiscard]] std::optional<double> usage_percent() const {
    if (device_memory.value_or(0) == 0 || peak < 0) return std::nullopt;
    return static_cast<double>(peak) / static_cast<double>(*device_memory) * 100.0;
  }
};

namespace detail {

[[nodiscard]] inline bool has_categories(const live_set& live) {
  return std::any_of(live.by_category.begin(), live.by_category.end(),
                     [](const owned_bytes& row) { return row.owner != to_string(category::other) && row.bytes != 0; });
}

/// The most bytes of a category at any peak that the profile knows, of a segment or overall; nothing if there never were any.
[[nodiscard]] inline std::optional<std::int64_t> greatest_of(const space_profile& space, category wanted) {
  std::int64_t greatest = 0;
  const auto look_at = [&](const live_set& live) {
    for (const owned_bytes& row : live.by_category) {
      if (row.owner == to_string(wanted)) greatest = std::max(greatest, row.bytes);
    }
  };
  look_at(space.live_at_peak);
  for (const segment_usage& segment : space.segments) look_at(segment.live_at_peak);
  return greatest == 0 ? std::nullopt : std::optional{greatest};
}

/// By category if blocks have it, since the change of a segment may be anything. Otherwise by phases.
[[nodiscard]] inline measured_size measure(const space_profile& space, category wanted,
                                           const std::optional<std::int64_t>& by_phases) {
  if (const auto by_category = greatest_of(space, wanted)) return {by_category, size_source::categories};
  return {by_phases, by_phases ? size_source::phases : size_source::none};
}

[[nodiscard]] inline peak_part part_of(std::string_view category_name) {
  switch (category_from_string(category_name).value_or(category::other)) {
    case category::parameter: return peak_part::model;
    case category::gradient: return peak_part::gradients;
    case category::optimizer_state: return peak_part::optimizer;
    case category::activation: return peak_part::activations;
    case category::other:
    case category::temporary:
    case category::input:
    case category::kv_cache: break;
  }
  return peak_part::other;
}

inline void divide_live_set(memory_breakdown& result, const live_set& live) {
  result.parts_are_live_at_peak = true;
  for (const owned_bytes& row : live.by_category) {
    std::int64_t& part = result.part(part_of(row.owner));
    part = add_saturating(part, row.bytes);
  }
  std::string others;
  for (const owned_bytes& row : live.by_category) {
    if (part_of(row.owner) == peak_part::other && row.bytes != 0) others += (others.empty() ? "" : ", ") + row.owner;
  }
  if (!others.empty() && others != to_string(category::other))
    result.remarks.push_back("other consists of the categories " + others);
}

/// The script's division, which does not describe a single moment.
inline void divide_by_phases(memory_breakdown& result, const space_profile& space, bool use_actual_sizes) {
  const auto size_of = [&](const compared_size& size, std::string_view what) {
    if (use_actual_sizes) return size.actual.value_or(0);
    if (size.expected) return *size.expected;
    if (size.actual) result.remarks.push_back("the peak is divided using the measured size of the " + std::string{what});
    return size.actual.value_or(0);
  };
  result.part(peak_part::model) = size_of(result.model, "model");
  result.part(peak_part::optimizer) = size_of(result.optimizer, "optimizer");
  result.part(peak_part::activations) = result.activations.actual.value_or(0);
  result.part(peak_part::gradients) = greatest_segment_peak(space, backward_phase).value_or(0);
  result.part(peak_part::other) = std::max<std::int64_t>(0, subtract_saturating(result.peak, result.accounted()));
  if (space.peak_segment < 0 || result.part(peak_part::gradients) <= 0) return;
  const std::string& peak_segment = space.segments[static_cast<std::size_t>(space.peak_segment)].segment;
  if (!is_occurrence(peak_segment, backward_phase)) {
    result.remarks.push_back("the peak is in " + peak_segment +
                             ", not in a backward pass: the gradients' overhead is from another moment");
  }
}

inline void choose_device_memory(memory_breakdown& result, const profile& of, const space_profile& space,
                                 const breakdown_options& options) {
  const bool is_limited = space.capacity != 0 && !space.capacity_is_per_core;
  if (options.device_memory) {
    result.device_memory = options.device_memory;
    result.device_memory_from = device_memory_source::option;
  } else if (is_limited) {
    result.device_memory = space.capacity;
    result.device_memory_from = device_memory_source::profile;
  } else if (is_tracker_log(of)) {
    result.device_memory = tracker_device_memory;
    result.device_memory_from = device_memory_source::assumed;
  }
  if (options.device_memory && is_limited && *options.device_memory != space.capacity) {
    result.remarks.push_back("the profile was captured for a capacity of " + std::to_string(space.capacity) +
                             " bytes, but the device memory here differs");
  }
}

inline void choose_expected_sizes(memory_breakdown& result, const breakdown_options& options) {
  result.model.expected = options.model_size;
  if (!result.model.expected && result.parameters) {
    result.model.expected = add_saturating(*result.parameters, *result.parameters);  // two bytes each
  }
  result.gradients.expected = options.gradients_size ? options.gradients_size : result.model.expected;
  result.optimizer.expected = options.optimizer_size;
  if (!result.optimizer.expected && result.model.expected) {
    result.optimizer.expected = add_saturating(*result.model.expected, *result.model.expected);
  }
}

inline void measure_sizes(memory_breakdown& result, const profile& of, const space_profile& space) {
  static_cast<measured_size&>(result.model) = measure(space, category::parameter, total_change(space, model_phase));
  static_cast<measured_size&>(result.optimizer) = measure(space, category::optimizer_state, total_change(space, optimizer_phase));
  result.activations = measure(space, category::activation, kept_activations(of, space));
  const auto after_optimizer = current_after(of, space, optimizer_phase);
  const auto after_backward = current_after(of, space, backward_phase);
  std::optional<std::int64_t> kept_by_backward;
  if (after_optimizer && after_backward) kept_by_backward = subtract_saturating(*after_backward, *after_optimizer);
  static_cast<measured_size&>(result.gradients) = measure(space, category::gradient, kept_by_backward);
}

/// Names the missing phases that a size depends on.
inline void remark_missing_phases(memory_breakdown& result, const profile& of, const space_profile& space) {
  const auto is_known = [](const measured_size& size) { return size.from == size_source::categories; };
  std::string missing;
  const auto need = [&](std::string_view phase, bool is_needed) {
    if (is_needed && !current_after(of, space, phase)) missing += (missing.empty() ? "" : ", ") + std::string{phase};
  };
  need(model_phase, !is_known(result.model));
  need(optimizer_phase, !is_known(result.optimizer) || !is_known(result.gradients));
  need(forward_phase, !is_known(result.activations));
  need(backward_phase, !is_known(result.gradients));
  if (!missing.empty()) result.remarks.push_back("no segment " + missing + ": its sizes are left out");
}

}  // namespace detail

/// Breaks down one memory space of a profile; `space` must be one of the profile's.
///
/// If blocks have categories, model, optimizer, activations and gradients are the most bytes of their category at any peak that
/// the profile knows. A size whose category has no block, and everything from a log, comes from the phases: model and optimizer
/// are the total change of all MODEL_CREATION and OPTIMIZER_CREATION segments; activations are what a run of FORWARD_PASS
/// segments without a BACKWARD_PASS between them keeps; gradients are what is live after the last BACKWARD_PASS minus what was
/// live after the last OPTIMIZER_CREATION; the gradients' part of the peak is the greatest peak of a BACKWARD_PASS above its
/// begin. Names may be numbered (`is_occurrence`).
[[nodiscard]] inline memory_breakdown break_down(const profile& of, const space_profile& space,
                                                 const breakdown_options& options = {}) {
  memory_breakdown result;
  result.peak = space.cumulative_peak;
  result.remarks = remarks_on(of, space);
  for (const model_parameters& row : rows_of<model_parameters>(of.facts)) result.parameters = row.count;
  detail::choose_device_memory(result, of, space, options);
  detail::choose_expected_sizes(result, options);
  detail::measure_sizes(result, of, space);
  detail::remark_missing_phases(result, of, space);
  if (detail::has_categories(space.live_at_peak)) {
    detail::divide_live_set(result, space.live_at_peak);
  } else {
    if (!of.provenance.lacks("live_at_peak")) {
      result.remarks.emplace_back("no block live at the peak has a category: the peak is divided by phases, as for a log");
    }
    detail::divide_by_phases(result, space, options.use_actual_sizes);
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
