#include "process_table.hpp"

#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace memprof_tool {

other_process other_process::of(::pid_t process, std::string state, const memprof::profile& profile) {
  other_process found{process, std::move(state)};
  for (const memprof::space_profile& space : profile.spaces) {
    found.peak = std::max(found.peak, space.cumulative_peak);
    found.at_end += space.cumulative_current;
    found.allocations += space.allocation_count;
  }
  found.command = profile.process.command_line;
  return found;
}

std::string process_table(std::vector<other_process> processes, const memprof::text_options& options) {
  if (processes.empty()) return {};
  std::stable_sort(processes.begin(), processes.end(),
                   [](const other_process& left, const other_process& right) { return left.peak > right.peak; });
  memprof::detail::summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns("Process\tPeak\tAt end\tAllocations\tCommand", "rrrrl");
  memprof::detail::marked_text& rows = section.table.rows;
  const auto add = [&](const std::string& name, const other_process& row) {
    rows.add(name).next_cell().add(memprof::detail::short_bytes(row.peak)).next_cell();
    rows.add(memprof::detail::short_bytes(row.at_end)).next_cell().add(memprof::detail::grouped(row.allocations)).next_cell();
  };
  const std::size_t shown = std::min(processes.size(), most_processes);
  for (std::size_t index = 0; index < shown; ++index) {
    const other_process& row = processes[index];
    add(std::to_string(row.process), row);
    if (!row.state.empty()) rows.add("(" + row.state + ") ");
    rows.add_command(row.command).end_line();
  }
  if (processes.size() > shown) {
    other_process rest;
    for (std::size_t index = shown; index < processes.size(); ++index) {
      rest.peak = std::max(rest.peak, processes[index].peak);
      rest.at_end += processes[index].at_end;
      rest.allocations += processes[index].allocations;
    }
    add("", rest);
    rows.add_count(static_cast<std::int64_t>(processes.size() - shown), "further process", "further processes");
    rows.add(", of which the greatest peak").end_line();
  }
  memprof::detail::answer_text text{options};
  text.add_table(section);
  return text.take();
}

}  // namespace memprof_tool
