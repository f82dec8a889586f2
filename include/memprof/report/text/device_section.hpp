#pragma once

#include <memprof/profile/fact/cuda_memory.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/trace/fact_table.hpp>

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

/// A line for each device that was asked, at the moment when most of it was used; nothing if none was.
[[gnu::cold]] inline void device_section(summary_section& section, const answer_topic& topic) {
  std::size_t lines = 0;
  for_each_fact<cuda_device_memory>(topic.source.facts, [&](const cuda_device_memory& row) {
    if (row.moment != "most_used" || ++lines > topic.limits.spaces) return;
    add_device(section.lines, row);
    section.lines.end_line();
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
