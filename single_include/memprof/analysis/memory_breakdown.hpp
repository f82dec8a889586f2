#pragma once

#include <memprof/memprof.hpp>

#include <memprof/analysis/phase_name.hpp>
#include <memprof/format/memory_summary.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the memory of a training step consists of, and whether it fits: the definitions of tt-train's analyze_memory.py, with
/// phases that repeat. docs/analyze.md explains them.

namespace memprof {

/// What a person expects. All sizes are bytes.
struct breakdown_options {
  std::optional<std::int64_t> model_size = {};      ///< default: two bytes (bf16) a parameter, where their number is known
  std::optional<std::int64_t> optimizer_size = {};  ///< default: twice the model's (AdamW's two moments)
  std::optional<std::int64_t> gradients_size = {};  ///< default: the model's
  std::optional<std::int64_t> device_memory = {};   ///< default: the capacity that a profile tells, or else 12 GiB
  bool use_actual_sizes = false;                    ///< whether model and optimizer have their measured sizes in the peak's parts
};

/// Where the size of the device's memory comes from.
enum class device_memory_source : std::uint8_t { option, profile, assumed };

/// The names of `device_memory_source`, in the order of its values.
inline constexpr std::array<std::string_view, 3> device_memory_source_names{"option", "profile", "assumed"};

/// What is assumed of a device that nothing is known of: 12 GiB, as analyze_memory.py does.
inline constexpr std::int64_t assumed_device_memory = std::int64_t{12} << 30;

/// A size as it was measured and as it was expected, where known.
struct compared_size {
  std::optional<std::int64_t> actual;
  std::optional<std::int64_t> expected;

  /// (actual - expected) / expected * 100; 0 if nothing was expected. Nothing if one of them is not known.
  [[nodiscard]] std::optional<double> difference_percent() const {
    if (!actual || !expected) return std::nullopt;
    if (*expected == 0) return 0.0;
    return (static_cast<double>(*actual) - static_cast<double>(*expected)) / static_cast<double>(*expected) * 100.0;
  }
};

/// What a peak is made of, in the order in which a picture stacks it, bottom first.
enum class peak_part : std::uint8_t { other, model, gradients, optimizer, activations };

inline constexpr std::size_t peak_parts = 5;

/// The answers for one summary. Bytes.
struct memory_breakdown {
  compared_size model;
  compared_size optimizer;
  compared_size gradients;
  std::optional<std::int64_t> activations;
  std::int64_t peak = 0;
  std::int64_t device_memory = 0;
  device_memory_source device_memory_from = device_memory_source::assumed;
  /// Of the peak. From a profile with categories: what was live at the peak, so they sum to it. Else by the script's definition,
  /// which takes its parts from different moments: they may be negative, and their sum may exceed the peak.
  std::array<std::int64_t, peak_parts> parts{};
  bool parts_are_live_at_peak = false;
  std::vector<std::string> remarks;

  [[nodiscard]] std::int64_t part(peak_part which) const noexcept { return parts[static_cast<std::size_t>(which)]; }
  [[nodiscard]] std::int64_t& part(peak_part which) noexcept { return parts[static_cast<std::size_t>(which)]; }

  /// The sum of all parts but `other`.
  [[nodiscard]] std::int64_t accounted() const noexcept {
    std::int64_t sum = 0;
    for (std::size_t index = 1; index < peak_parts; ++index) sum = detail::add_saturating(sum, parts[index]);
    return sum;
  }
  /// By how much the parts exceed the peak; 0 if they do not.
  [[nodiscard]] std::int64_t excess() const noexcept {
    return std::max<std::int64_t>(0, detail::subtract_saturating(accounted(), peak));
  }
  /// The peak in percent of the device's memory; nothing if that is 0.
  [[nodiscard]] std::optional<double> usage_percent() const {
    if (device_memory == 0) return std::nullopt;
    return static_cast<double>(peak) / static_cast<double>(device_memory) * 100.0;
  }
};

namespace detail {

inline constexpr std::string_view model_phase = "MODEL_CREATION";
inline constexpr std::string_view optimizer_phase = "OPTIMIZER_CREATION";
inline constexpr std::string_view forward_phase = "FORWARD_PASS";
inline constexpr std::string_view backward_phase = "BACKWARD_PASS";

using segment_list = std::vector<segment_usage>;

/// The changes of all occurrences of a phase together.
[[nodiscard]] inline std::optional<std::int64_t> total_change(const segment_list& segments, std::string_view phase) {
  std::optional<std::int64_t> sum;
  for (const segment_usage& segment : segments) {
    if (is_occurrence(segment.segment, phase)) sum = add_saturating(sum.value_or(0), segment.segment_change);
  }
  return sum;
}

/// What forward passes keep for the backward pass. Passes that follow each other keep theirs together; after a backward pass it
/// begins anew; of several such runs the greatest counts.
[[nodiscard]] inline std::optional<std::int64_t> kept_activations(const segment_list& segments) {
  std::optional<std::int64_t> greatest;
  std::optional<std::int64_t> run;
  for (const segment_usage& segment : segments) {
    if (is_occurrence(segment.segment, forward_phase)) {
      run = add_saturating(run.value_or(0), segment.segment_change);
    } else if (is_occurrence(segment.segment, backward_phase)) {
      if (run) greatest = greatest ? std::max(*greatest, *run) : run;
      run.reset();
    }
  }
  if (run) greatest = greatest ? std::max(*greatest, *run) : run;
  return greatest;
}

/// What is live after the last occurrence of a phase.
[[nodiscard]] inline std::optional<std::int64_t> current_after(const segment_list& segments, std::string_view phase) {
  std::optional<std::int64_t> current;
  for (const segment_usage& segment : segments) {
    if (is_occurrence(segment.segment, phase)) current = segment.cumulative_current;
  }
  return current;
}

/// The greatest rise within one occurrence of a phase.
[[nodiscard]] inline std::optional<std::int64_t> greatest_segment_peak(const segment_list& segments, std::string_view phase) {
  std::optional<std::int64_t> greatest;
  for (const segment_usage& segment : segments) {
    if (is_occurrence(segment.segment, phase)) greatest = std::max(greatest.value_or(segment.segment_peak), segment.segment_peak);
  }
  return greatest;
}

[[nodiscard]] inline bool has_categories(const live_set& live) {
  return std::any_of(live.by_category.begin(), live.by_category.end(),
                     [](const owned_bytes& row) { return row.owner != to_string(category::other) && row.bytes != 0; });
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
  if (!others.empty() && others != to_string(category::other)) result.remarks.push_back("other is of the categories " + others);
}

/// The script's division. It describes no one moment.
inline void divide_by_phases(memory_breakdown& result, const memory_summary& summary, bool use_actual_sizes) {
  const auto size_of = [&](const compared_size& size, std::string_view what) {
    if (use_actual_sizes) return size.actual.value_or(0);
    if (size.expected) return *size.expected;
    if (size.actual) result.remarks.push_back("the peak is divided with the measured size of the " + std::string{what});
    return size.actual.value_or(0);
  };
  result.part(peak_part::model) = size_of(result.model, "model");
  result.part(peak_part::optimizer) = size_of(result.optimizer, "optimizer");
  result.part(peak_part::activations) = result.activations.value_or(0);
  result.part(peak_part::gradients) = greatest_segment_peak(summary.segments, backward_phase).value_or(0);
  result.part(peak_part::other) = std::max<std::int64_t>(0, subtract_saturating(result.peak, result.accounted()));
  if (summary.peak_segment && result.part(peak_part::gradients) > 0 &&
      !is_occurrence(summary.segments[*summary.peak_segment].segment, backward_phase)) {
    result.remarks.push_back("the peak is in " + summary.segments[*summary.peak_segment].segment +
                             ", not in a backward pass: the gradients' overhead is of another moment");
  }
}

inline void choose_device_memory(memory_breakdown& result, const memory_summary& summary, const breakdown_options& options) {
  result.device_memory = options.device_memory.value_or(summary.capacity.value_or(assumed_device_memory));
  if (options.device_memory) {
    result.device_memory_from = device_memory_source::option;
  } else if (summary.capacity) {
    result.device_memory_from = device_memory_source::profile;
  }
  if (options.device_memory && summary.capacity && *options.device_memory != *summary.capacity) {
    result.remarks.push_back("the profile was captured for a capacity of " + std::to_string(*summary.capacity) +
                             " bytes, the device memory here is another");
  }
}

inline void remark_missing_phases(memory_breakdown& result, const segment_list& segments) {
  std::string missing;
  for (const std::string_view phase : {model_phase, optimizer_phase, forward_phase, backward_phase}) {
    if (!current_after(segments, phase)) missing += (missing.empty() ? "" : ", ") + std::string{phase};
  }
  if (!missing.empty()) result.remarks.push_back("no segment " + missing + ": what it would tell is left out");
}

}  // namespace detail

/// Breaks a summary down. Model and optimizer are what all segments MODEL_CREATION and OPTIMIZER_CREATION changed; activations
/// what a run of FORWARD_PASS segments without a BACKWARD_PASS between them keeps; gradients what is live after the last
/// BACKWARD_PASS less what was after the last OPTIMIZER_CREATION; the gradients' part of the peak is the greatest peak of a
/// BACKWARD_PASS above its begin. Names may have numbers (`is_occurrence`).
[[nodiscard]] inline memory_breakdown break_down(const memory_summary& summary, const breakdown_options& options = {}) {
  memory_breakdown result;
  result.peak = summary.overall_peak;
  detail::choose_device_memory(result, summary, options);

  constexpr std::int64_t bytes_per_parameter = 2;
  result.model.expected = options.model_size;
  if (!result.model.expected && summary.parameters) result.model.expected = *summary.parameters * bytes_per_parameter;
  result.gradients.expected = options.gradients_size ? options.gradients_size : result.model.expected;
  result.optimizer.expected = options.optimizer_size;
  if (!result.optimizer.expected && result.model.expected) {
    result.optimizer.expected = detail::add_saturating(*result.model.expected, *result.model.expected);
  }

  result.model.actual = detail::total_change(summary.segments, detail::model_phase);
  result.optimizer.actual = detail::total_change(summary.segments, detail::optimizer_phase);
  result.activations = detail::kept_activations(summary.segments);
  const auto after_optimizer = detail::current_after(summary.segments, detail::optimizer_phase);
  const auto after_backward = detail::current_after(summary.segments, detail::backward_phase);
  if (after_optimizer && after_backward) {
    result.gradients.actual = detail::subtract_saturating(*after_backward, *after_optimizer);
  }
  detail::remark_missing_phases(result, summary.segments);

  if (summary.live_at_peak && detail::has_categories(*summary.live_at_peak)) {
    detail::divide_live_set(result, *summary.live_at_peak);
  } else {
    if (summary.live_at_peak) {
      result.remarks.emplace_back("no block of the profile has a category: the peak is divided by the phases, as for a log");
    }
    detail::divide_by_phases(result, summary, options.use_actual_sizes);
  }
  return result;
}

}  // namespace memprof
