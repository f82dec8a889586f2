#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/anomaly_lines.hpp>
#include <memprof/report/text/capacity_lines.hpp>
#include <memprof/report/text/device_lines.hpp>
#include <memprof/report/text/peak_lines.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/report/text/torch_lines.hpp>

#include <concepts>
#include <string>

namespace memprof {

namespace detail {

/// Which device the capture was told of; that it limits nothing may be a misspelt space.
void append_device(auto& text, const auto& source) {
  if (source.device.empty()) return;
  bool limits_any = false;
  for (const space_profile& space : source.spaces) limits_any = limits_any || space.capacity != 0;
  text += "Device " + on_one_line(source.device) + (limits_any ? ".\n" : " limits none of these memory spaces.\n");
}

void append_state(auto& text, const auto& source, const space_profile* primary) {
  if (primary != nullptr) text += "DRAM stands for the memory space " + on_one_line(primary->name) + ".\n";
  if (source.mode == run_mode::no_dispatch)
    text += "Run mode no_dispatch: sizes and lifetimes are real, nothing was allocated.\n";
  append_device(text, source);
  if (!source.complete) text += "The capture has not ended: the numbers are those so far.\n";
}

void append_cost(auto& text, const auto& cost) {
  if (cost.events == 0 && cost.memory_bytes == 0) return;  // a trace does not know it
  text += "The profiler itself: " + megabytes(cost.memory_bytes) + " of memory";
  if (cost.memory_bytes_at_million_events != 0) {
    text += " (" + megabytes(cost.memory_bytes_at_million_events) + " when it had seen a million events)";
  }
  text += ", " + counted(cost.events, "event", "events") + ", " + decimal(cost.record_ns_per_event, 1) + " ns to record and " +
          decimal(cost.drain_ns_per_event, 1) + " ns to account for each\n";
}

}  // namespace detail

/// A profile as text for people and for existing log parsers.
///
/// First the summary that the memory tracker of tt-train prints, line for line, one memory space under the name DRAM; then which
/// space that is, a warning if the numbers are not exact, the peak of each space with its segment, operation and largest owners,
/// whether that would have fitted the described device, whatever was unusual, and the profiler's own cost. MB is 2^20 bytes.
/// Throws `memprof::error` if `text_options::primary_space` names no space of the profile. A template, as are the parts of the
/// report, only so that units that print no profile do not compile it.
template <std::same_as<profile> Profile = profile>
[[nodiscard]] std::string to_text(const Profile& source, const text_options& options = {}) {
  const space_profile* const primary = detail::primary_space(source, options);
  std::string text;
  if (source.segments.empty()) {
    text += "WARNING: No traces captured\n";
    // Before the first snapshot there is no segment, but perhaps a peak already.
    if (source.spaces.empty() && source.facts.empty()) return text;
  } else {
    detail::append_segments(text, source, primary, options);
  }
  detail::append_state(text, source, primary);
  detail::append_warning(text, source);
  for (const space_profile& space : source.spaces) {
    if (&space != primary && space.cumulative_peak == 0 && space.reserved.peak == 0 && space.out_of_memory.empty()) continue;
    detail::append_out_of_memory(text, source, space, options);
    detail::append_peak(text, source, space, options);
    detail::append_capacity(text, source, space, options);
  }
  detail::append_pytorch_operations(text, rows_of<pytorch_operation>(source.facts), options);
  detail::append_approximations(text, rows_of<approximated_operation>(source.facts), options);
  detail::append_unknown_reads(text, rows_of<unknown_read>(source.facts), options);
  detail::append_oddities(text, source);
  detail::append_cost(text, source.cost);
  return text;
}

}  // namespace memprof
