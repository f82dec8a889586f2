#pragma once

#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What one operation itself allocated in one memory space; with categories, in one category. Unknown values are -1.
struct stack_row {
  std::uint32_t space = 0;      ///< index into `stack_table::spaces`
  std::uint32_t operation = 0;  ///< index into `stack_table::operations`; 0: allocated outside every operation
  memprof::category category = category::other;
  std::int64_t total_bytes = 0;
  std::int64_t total_blocks = 0;
  std::int64_t peak_bytes = 0;  ///< live at the space's peak
  std::int64_t peak_blocks = 0;
  std::int64_t end_bytes = 0;  ///< live at the end
  std::int64_t end_blocks = -1;
  std::int64_t max_bytes = -1;  ///< the most bytes that this row ever had live
  std::int64_t max_blocks = -1;
  std::int64_t lifetime_us = -1;  ///< of all its blocks together, in microseconds; live ones count until the end
};

/// The columns of a `stack_row` of which most formats show one.
enum class stack_value : std::uint8_t { peak, end, all };

[[nodiscard]] constexpr std::string_view to_string(stack_value value) noexcept {
  constexpr std::string_view names[] = {"peak", "end", "all"};
  return names[static_cast<std::size_t>(value)];
}

/// The bytes of a row in that column.
[[nodiscard]] constexpr std::int64_t bytes_of(const stack_row& row, stack_value value) noexcept {
  return value == stack_value::peak ? row.peak_bytes : value == stack_value::end ? row.end_bytes : row.total_bytes;
}

/// Bytes by memory space and path of operations, for flame graphs. The columns of a space add up to the profile's
/// `cumulative_peak`, `cumulative_current` and `allocations`.
struct stack_table {
  struct space_row {
    std::string name;
    std::int64_t peak_time_ns = 0;
  };
  struct operation_row {
    std::uint32_t parent = 0;
    std::string name;
  };

  process_info process;
  std::int64_t begin_unix_ns = 0;
  std::int64_t duration_ns = 0;
  bool has_categories = false;
  bool has_lifetimes = false;  ///< whether `end_blocks`, `max_bytes`, `max_blocks` and `lifetime_us` are known
  std::vector<space_row> spaces;
  std::vector<operation_row> operations{operation_row{}};  ///< parents before children; the first is "no operation"
  std::vector<stack_row> rows;

  /// The operations from the outermost to `operation`.
  [[nodiscard]] std::vector<std::uint32_t> path(std::uint32_t operation) const {
    std::vector<std::uint32_t> nodes;
    for (; operation != 0; operation = operations[operation].parent) nodes.push_back(operation);
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }
};

/// The frame name of operations that a profile has folded together.
inline constexpr std::string_view folded_operations = "(other operations)";

namespace detail {

/// The row of allocations outside every operation: the space's numbers minus those of the operations.
[[nodiscard]] inline stack_row rest_of_space(const space_profile& space, const std::vector<stack_row>& rows, std::size_t first) {
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

}  // namespace detail

/// The table of a profile, without categories and lifetimes, which need the trace (`stack_fold`). If a peak's segment had not
/// ended, operations beyond `capture_options::owners_per_segment` are one row, `folded_operations`.
[[nodiscard]] inline stack_table stack_table_of(const profile& source) {
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
    stack_row rest = detail::rest_of_space(space, table.rows, first);
    rest.space = space_index;
    if ((rest.total_bytes | rest.total_blocks | rest.end_bytes | rest.peak_bytes | rest.peak_blocks) != 0)
      table.rows.push_back(rest);
  }
  return table;
}

}  // namespace memprof::inline MEMPROF_ABI
