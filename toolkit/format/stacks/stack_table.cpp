#include <memprof/config.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The row of allocations outside every operation: the space's numbers minus those of the operations.
stack_row rest_of_space(const space_profile& space, const std::vector<stack_row>& rows, std::size_t first) {
  stack_row rest;
  rest.total_bytes = space.allocations;
  rest.total_blocks = space.allocation_count;
  rest.end_bytes = space.cumulative_current;
  rest.peak_bytes = space.live_at_peak.bytes;
  rest.peak_blocks = space.live_at_peak.blocks;
  for (std::size_t index = first; index < rows.size(); ++index) {
    rest.total_bytes -= rows[index].total_bytes;
    rest.total_blocks -= rows[index].total_blocks;
    rest.end_bytes -= rows[index].end_bytes;
    rest.peak_bytes -= rows[index].peak_bytes;
    rest.peak_blocks -= rows[index].peak_blocks;
  }
  return rest;
}

}  // namespace

std::vector<std::uint32_t> stack_table::path(std::uint32_t operation) const {
  std::vector<std::uint32_t> nodes;
  for (; operation != 0; operation = operations[operation].parent) nodes.push_back(operation);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

void set_peak_segments(stack_table& table, const profile& of) {
  for (stack_table::space_row& row : table.spaces) {
    const space_profile* const space = of.find_space(row.name);
    if (space == nullptr || space->peak_segment < 0 || static_cast<std::size_t>(space->peak_segment) >= of.segments.size())
      continue;
    const segment& at_peak = of.segments[static_cast<std::size_t>(space->peak_segment)];
    row.peak_segment = at_peak.name;
    row.peak_step = at_peak.step;
  }
}

stack_table stack_table_of(const profile& source) {
  stack_table table;
  table.process = source.process;
  table.begin_unix_ns = source.begin_unix_ns;
  table.duration_ns = source.duration_ns;
  std::unordered_map<std::string_view, std::uint32_t> node_of_path;
  for (const operation_profile& operation : source.operations) {
    node_of_path[operation.path] = static_cast<std::uint32_t>(table.operations.size());
    table.operations.push_back({static_cast<std::uint32_t>(operation.parent + 1), operation.name});
  }
  for (const space_profile& space : source.spaces) {
    const auto space_index = static_cast<std::uint32_t>(table.spaces.size());
    table.spaces.push_back({space.name, space.peak_time_ns});
    const std::size_t first = table.rows.size();
    std::unordered_map<std::uint32_t, std::size_t> row_of_node;
    const auto row_of = [&](std::uint32_t node) -> stack_row& {
      const auto [found, is_new] = row_of_node.try_emplace(node, table.rows.size());
      if (is_new) table.rows.push_back({space_index, node});
      return table.rows[found->second];
    };
    for (std::size_t index = 0; index < source.operations.size(); ++index) {
      for (const operation_usage& usage : source.operations[index].usage) {
        if (usage.space != space.name) continue;
        stack_row& row = row_of(static_cast<std::uint32_t>(index + 1));
        row.total_bytes = usage.self_allocated;
        row.total_blocks = usage.allocation_count;
        row.end_bytes = usage.live;
      }
    }
    for (const owned_bytes& owner : space.live_at_peak.by_operation) {
      const auto node = node_of_path.find(owner.owner);
      if (node == node_of_path.end()) continue;  // no operation
      stack_row& row = row_of(node->second);
      row.peak_bytes = owner.bytes;
      row.peak_blocks = owner.blocks;
    }
    if (space.live_at_peak.remaining_bytes != 0) {
      stack_row& row = row_of(static_cast<std::uint32_t>(table.operations.size()));
      table.operations.push_back({0, std::string{folded_operations}});
      row.peak_bytes = space.live_at_peak.remaining_bytes;
      row.peak_blocks = 0;
    }
    stack_row rest = rest_of_space(space, table.rows, first);
    rest.space = space_index;
    if ((rest.total_bytes | rest.total_blocks | rest.end_bytes | rest.peak_bytes | rest.peak_blocks) != 0)
      table.rows.push_back(rest);
  }
  set_peak_segments(table, source);
  return table;
}

}  // namespace memprof::inline MEMPROF_ABI
