#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/nearest_name.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/script_run.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/memory_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// What does not depend on the moment.
compared_run run_without_moment(std::string title, const profile& source, const space_profile& space) {
  compared_run run;
  run.title = std::move(title);
  run.file = source.provenance.file;
  run.space = space.name;
  run.device = source.device;
  run.mode = source.mode;
  run.exact = source.exact;
  run.remarks = remarks_on(source, space);
  run.peak = space.cumulative_peak;
  run.reserved = space.reserved.peak;
  run.timeline = space.timeline;
  run.segments = source.segments;
  if (!is_device_name(space.name)) run.process = process_account_of(source);
  for (const script_run& row : rows_of<script_run>(source.facts)) {
    run.script = row;
    run.training_steps = row.optimizer_steps;
  }
  for (const space_profile& each : source.spaces) run.spaces.push_back({each.name, each.cumulative_peak, 0});
  for (const segments_of_name& each : segments_by_family(segments_by_name(source, space)))
    run.phases.push_back({each.name, each.peak_live_bytes.greatest});
  std::stable_sort(run.phases.begin(), run.phases.end(),
                   [](const phase_peak& left, const phase_peak& right) { return left.bytes > right.bytes; });
  return run;
}

std::string name_of(const compared_run& run) { return run.file.empty() ? run.title : "'" + run.file + "'"; }

void check_sum(const compared_run& run, std::int64_t expected) {
  std::int64_t sum = 0;
  for (const held_bytes& held : run.held) {
    if (held.bytes < 0 || __builtin_add_overflow(sum, held.bytes, &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum == run.bytes && run.bytes == expected) return;
  const std::string_view moment = run.moment == compared_moment::end ? "what is live at the end" : "the peak";
  raise("the operations of " + name_of(run) + " do not add up to " + std::string{moment} + " of " + run.space +
        ": what was live then is missing or was cut");
}

std::vector<std::string> names_of_path(const stack_table& stacks, std::uint32_t operation) {
  std::vector<std::string> names;
  for (const std::uint32_t node : stacks.path(operation)) names.push_back(stacks.operations[node].name);
  return names;
}

void find_segment(compared_run& run, const profile& source, std::int64_t segment) {
  const auto index = static_cast<std::size_t>(segment);
  if (segment < 0 || index >= source.segments.size()) return;
  run.segment = source.segments[index].name;
  run.step = source.segments[index].step;
}

}  // namespace
}  // namespace detail

compared_run compared_run_of(std::string title, const profile& source, const space_profile& space, const stack_table& stacks,
                             compared_moment moment) {
  compared_run run = detail::run_without_moment(std::move(title), source, space);
  run.moment = moment;
  run.has_categories = stacks.has_categories;
  run.has_sizes = stacks.has_sizes;
  run.has_callers = stacks.has_callers;
  const bool is_peak = moment == compared_moment::peak;
  run.bytes = is_peak ? space.cumulative_peak : space.cumulative_current;
  for (const stack_row& row : stacks.rows) {
    if (stacks.spaces[row.space].name != space.name) continue;
    held_bytes& held = run.held.emplace_back();
    held.path = detail::names_of_path(stacks, row.operation);
    held.category = row.category;
    held.bytes = is_peak ? row.peak_bytes : row.end_bytes;
    held.blocks = std::max<std::int64_t>(0, is_peak ? row.peak_blocks : row.end_blocks);
    held.least_size = row.least_size;
    held.caller = row.caller;
    held.allocated = row.total_bytes;
    run.blocks += held.blocks;
  }
  if (is_peak) {
    run.operation = space.peak_operation;
    run.time_ns = space.peak_time_ns;
    run.by_category = {space.live_at_peak.by_category.begin(), space.live_at_peak.by_category.end()};
    detail::find_segment(run, source, space.peak_segment);
  } else {
    run.time_ns = source.segments.empty() ? -1 : source.segments.back().end_ns;
    run.by_category = {space.current_by_category.begin(), space.current_by_category.end()};
  }
  detail::check_sum(run, is_peak && run.bytes != 0 ? space.live_at_peak.bytes : run.bytes);
  return run;
}

compared_run compared_run_of(std::string title, const profile& source, const space_profile& space, const stack_table& stacks,
                             std::string_view name) {
  compared_run run = detail::run_without_moment(std::move(title), source, space);
  run.moment = compared_moment::segment;
  std::int64_t found = -1;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    if (source.segments[index].name != name) continue;
    if (found < 0 ||
        space.segments[index].live_at_peak.bytes > space.segments[static_cast<std::size_t>(found)].live_at_peak.bytes)
      found = static_cast<std::int64_t>(index);
  }
  if (found < 0) {
    std::set<std::string_view> known;
    for (const segment& each : source.segments) known.insert(each.name);
    const std::string missing = "no segment '" + std::string{name} + "' in " + detail::name_of(run);
    if (known.empty()) detail::raise(missing + ", which has none; memprof::snapshot ends one");
    detail::raise(missing + "; the nearest is '" + std::string{detail::nearest_name(name, known)} + "'");
  }
  std::unordered_map<std::string_view, std::int64_t> index_of_path;
  for (std::size_t index = 0; index < source.operations.size(); ++index)
    index_of_path[source.operations[index].path] = static_cast<std::int64_t>(index);
  std::map<std::vector<std::string>, std::int64_t> allocated;
  for (const stack_row& row : stacks.rows) {
    if (stacks.spaces[row.space].name == space.name) allocated[detail::names_of_path(stacks, row.operation)] += row.total_bytes;
  }

  const segment_usage& usage = space.segments[static_cast<std::size_t>(found)];
  detail::find_segment(run, source, found);
  run.operation = usage.peak_operation;
  run.time_ns = usage.peak_time_ns;
  run.bytes = usage.live_at_peak.bytes;
  run.blocks = usage.live_at_peak.blocks;
  run.by_category = {usage.live_at_peak.by_category.begin(), usage.live_at_peak.by_category.end()};
  std::int64_t blocks = 0;
  for (const owned_bytes& owner : usage.live_at_peak.by_operation) {
    held_bytes& held = run.held.emplace_back();
    const auto at = index_of_path.find(owner.owner);
    for (std::int64_t node = at == index_of_path.end() ? -1 : at->second; node >= 0;) {
      const operation_profile& operation = source.operations[static_cast<std::size_t>(node)];
      held.path.insert(held.path.begin(), operation.name);
      node = operation.parent;
    }
    held.bytes = owner.bytes;
    held.blocks = owner.blocks;
    held.allocated = allocated[held.path];
    blocks += owner.blocks;
  }
  if (usage.live_at_peak.remaining_operations != 0) {
    held_bytes& others = run.held.emplace_back();
    others.path = {std::string{folded_operations}};
    others.bytes = usage.live_at_peak.remaining_bytes;
    others.blocks = run.blocks - blocks;
    others.allocated = -1;
  }
  detail::check_sum(run, run.bytes);
  return run;
}

}  // namespace memprof::inline MEMPROF_ABI
