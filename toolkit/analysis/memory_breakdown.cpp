#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/analysis/phase_name.hpp>
#include <memprof/toolkit/analysis/phase_sums.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

bool is_tracker_log(const profile& of) noexcept { return of.provenance.format == detail::tracker_format; }

std::optional<double> compared_size::difference_percent() const {
  if (!actual || !expected) return std::nullopt;
  if (*expected == 0) return 0.0;
  return (static_cast<double>(*actual) - static_cast<double>(*expected)) / static_cast<double>(*expected) * 100.0;
}

std::int64_t memory_breakdown::accounted() const noexcept {
  std::int64_t sum = 0;
  for (std::size_t index = 1; index < peak_parts; ++index) sum = detail::add_saturating(sum, parts[index]);
  return sum;
}

std::int64_t memory_breakdown::excess() const noexcept {
  return std::max<std::int64_t>(0, detail::subtract_saturating(accounted(), peak));
}

std::optional<bool> memory_breakdown::fits() const {
  if (!device_memory || peak < 0) return std::nullopt;
  return peak <= *device_memory;
}

std::optional<double> memory_breakdown::usage_percent() const {
  if (device_memory.value_or(0) == 0 || peak < 0) return std::nullopt;
  return static_cast<double>(peak) / static_cast<double>(*device_memory) * 100.0;
}

namespace detail {

bool has_categories(const live_set& live) {
  return std::any_of(live.by_category.begin(), live.by_category.end(),
                     [](const owned_bytes& row) { return row.owner != to_string(category::other) && row.bytes != 0; });
}

namespace {

/// The most bytes of a category at any peak that the profile knows, of a segment or overall; nothing if there never were any.
std::optional<std::int64_t> greatest_of(const space_profile& space, category wanted) {
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
measured_size size_of_category(const space_profile& space, category wanted, const std::optional<std::int64_t>& by_phases) {
  if (const auto by_category = greatest_of(space, wanted)) return {by_category, size_source::categories};
  return {by_phases, by_phases ? size_source::phases : size_source::none};
}

peak_part part_of(std::string_view category_name) {
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

void divide_live_set(memory_breakdown& result, const live_set& live) {
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
void divide_by_phases(memory_breakdown& result, const space_profile& space, bool use_actual_sizes) {
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

void choose_device_memory(memory_breakdown& result, const profile& of, const space_profile& space,
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

void choose_expected_sizes(memory_breakdown& result, const breakdown_options& options) {
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

void measure_sizes(memory_breakdown& result, const profile& of, const space_profile& space) {
  static_cast<measured_size&>(result.model) = size_of_category(space, category::parameter, total_change(space, model_phase));
  static_cast<measured_size&>(result.optimizer) =
      size_of_category(space, category::optimizer_state, total_change(space, optimizer_phase));
  result.activations = size_of_category(space, category::activation, kept_activations(of, space));
  const auto after_optimizer = current_after(of, space, optimizer_phase);
  const auto after_backward = current_after(of, space, backward_phase);
  std::optional<std::int64_t> kept_by_backward;
  if (after_optimizer && after_backward) kept_by_backward = subtract_saturating(*after_backward, *after_optimizer);
  static_cast<measured_size&>(result.gradients) = size_of_category(space, category::gradient, kept_by_backward);
}

/// Names the missing phases that a size depends on.
void remark_missing_phases(memory_breakdown& result, const profile& of, const space_profile& space) {
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

}  // namespace
}  // namespace detail

memory_breakdown break_down(const profile& of, const space_profile& space, const breakdown_options& options) {
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
