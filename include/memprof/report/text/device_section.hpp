#pragma once

#include <memprof/profile/fact/cuda_memory.hpp>
#include <memprof/profile/fact/device_context.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What devices held beside the recorded blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// "cuda:0 5.20 GiB used of 80.0 GiB: 4.10 GiB recorded, 300 MiB free in pools, 820 MiB other (contexts, other processes)".
[[gnu::cold]] inline void add_device(marked_text& line, const cuda_device_memory& row) {
  line.add_name(row.device).add(" ").add_bytes(row.used_bytes, emphasis::strong).add(" used of ").add_bytes(row.total_bytes);
  line.add(": ").add_bytes(row.recorded_bytes).add(" recorded");
  if (row.pending_bytes != 0) line.add(", ").add_bytes(row.pending_bytes).add(" freed but pending");
  if (row.pool_free_bytes != 0) line.add(", ").add_bytes(row.pool_free_bytes).add(" free in pools");
  if (row.unexplained_bytes < 0) return;
  line.add(", ").add_bytes(row.unexplained_bytes).add(" other (contexts, modules, other processes)");
}

/// "cuda:0 746 MiB predicted of 23.6 GiB: 173 MiB recorded, 68.7 MiB more reserved, 504 MiB CUDA context (473 MiB to 504 MiB:
/// ...)".
[[gnu::cold]] inline void add_predicted_device(marked_text& line, const space_profile& space, const device_context& context) {
  const std::int64_t reserved = space.reserved.peak;
  line.add_name(space.name).add(" ").add_bytes(reserved + context.bytes, emphasis::strong).add(" predicted of ");
  line.add_bytes(space.capacity).add(": ").add_bytes(space.cumulative_peak).add(" recorded");
  line.add(", ").add_bytes(reserved - space.cumulative_peak).add(" more reserved");
  line.add(", ").add_bytes(context.bytes).add(" CUDA context (").add_bytes(context.least).add(" to ").add_bytes(context.bytes);
  line.add(": ").add(context.source).add(")");
}

/// A line for each device that was asked, at the moment when most of it was used; for a simulated one whose allocator was
/// modelled, what is predicted. Nothing if there is none.
[[gnu::cold]] inline void device_section(summary_section& section, const answer_topic& topic) {
  std::size_t lines = 0;
  for_each_fact<cuda_device_memory>(topic.source.facts, [&](const cuda_device_memory& row) {
    if (row.moment != "most_used" || ++lines > topic.limits.spaces) return;
    add_device(section.lines, row);
    section.lines.end_line();
  });
  if (topic.source.mode != run_mode::no_dispatch || lines != 0) return;
  for_each_fact<device_context>(topic.source.facts, [&](const device_context& row) {
    const space_profile* const space = topic.source.find_space(row.space);
    if (space == nullptr || space->reserved.peak == 0 || ++lines > topic.limits.spaces) return;
    add_predicted_device(section.lines, *space, row);
    section.lines.end_line();
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
