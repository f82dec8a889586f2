#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

bool waterfall_bytes::differs() const {
  return std::any_of(bytes.begin(), bytes.end(), [&](std::int64_t each) { return each != bytes.front(); });
}

std::int64_t waterfall_bytes::greatest_change() const {
  std::int64_t greatest = 0;
  for (std::size_t column = 1; column < bytes.size(); ++column) greatest = std::max(greatest, std::abs(change(column)));
  return greatest;
}

waterfall_bytes waterfall::total() const {
  waterfall_bytes peaks;
  for (const waterfall_column& column : columns) peaks.bytes.push_back(column.peak);
  return peaks;
}

waterfall_column column_of(std::string title, const profile& source, const space_profile& space, const stack_table& stacks) {
  waterfall_column column;
  column.title = std::move(title);
  column.file = source.provenance.file;
  column.space = space.name;
  column.mode = source.mode;
  column.peak = space.cumulative_peak;
  column.operation = space.peak_operation;
  column.has_categories = stacks.has_categories;
  column.by_category = space.live_at_peak.by_category;
  if (!detail::is_device_name(space.name)) column.process = process_account_of(source);
  const auto segment = static_cast<std::size_t>(space.peak_segment);
  if (space.peak_segment >= 0 && segment < source.segments.size()) column.segment = source.segments[segment].name;
  std::int64_t sum = 0;
  for (const stack_row& row : stacks.rows) {
    if (stacks.spaces[row.space].name != space.name || (row.peak_blocks | row.peak_bytes) == 0) continue;
    held_bytes& held = column.held.emplace_back();
    for (const std::uint32_t node : stacks.path(row.operation)) held.path.push_back(stacks.operations[node].name);
    held.category = row.category;
    held.bytes = row.peak_bytes;
    held.blocks = row.peak_blocks;
    if (row.peak_bytes < 0 || __builtin_add_overflow(sum, row.peak_bytes, &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum == column.peak && (column.peak == 0 || space.live_at_peak.bytes == column.peak)) return column;
  detail::raise("the operations of " + (column.file.empty() ? column.title : "'" + column.file + "'") +
                " do not add up to the peak of " + space.name + ": what was live then is missing or was cut");
}

namespace detail {
namespace {

/// Collects the rows of a waterfall.
class waterfall_builder {
 public:
  waterfall_builder(const std::vector<waterfall_column>& columns, const std::vector<part_rule>& rules)
      : columns_{columns}, rules_{rules}, has_categories_{std::all_of(columns.begin(), columns.end(), [](const auto& column) {
          return column.has_categories;
        })} {
    find_layers();
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      for (const held_bytes& held : columns_[column].held) add(column, held);
    }
  }

  [[nodiscard]] std::vector<waterfall_part> parts() const {
    std::vector<waterfall_part> result;
    for (const auto& [name, rows] : parts_) {
      waterfall_part& part = result.emplace_back();
      part.name = name;
      part.bytes.resize(columns_.size());
      for (const auto& [operation, found] : rows) {
        waterfall_row& row = part.rows.emplace_back(found.row);
        for (const auto& paths : found.paths) row.paths.push_back(static_cast<std::int64_t>(paths.size()));
        for (std::size_t column = 0; column < columns_.size(); ++column) part.bytes[column] += row.bytes[column];
      }
      sort_rows(part.rows);
    }
    sort_rows(result);
    return result;
  }

 private:
  struct collected {
    waterfall_row row;
    std::vector<std::set<std::vector<std::string>>> paths;
  };

  [[nodiscard]] operation_place place(const held_bytes& held) const {
    operation_place found = place_of(held.path, has_categories_ ? held.category : category::other, rules_);
    for (std::string* const name : {&found.part, &found.operation}) {
      if (const std::string folded = with_folded_layers(*name); layers_.count(folded) != 0) *name = folded;
    }
    return found;
  }

  /// Finds names that differ only in a number within one column.
  void find_layers() {
    for (const waterfall_column& column : columns_) {
      std::map<std::string, std::string> first_of;
      for (const held_bytes& held : column.held) {
        const operation_place found = place_of(held.path, has_categories_ ? held.category : category::other, rules_);
        for (const std::string& name : {found.part, found.operation}) {
          const std::string folded = with_folded_layers(name);
          if (first_of.try_emplace(folded, name).first->second != name) layers_.insert(folded);
        }
      }
    }
  }

  void add(std::size_t column, const held_bytes& held) {
    const operation_place at = place(held);
    collected& found = parts_[at.part][at.operation];
    if (found.paths.empty()) {
      found.row.operation = at.operation;
      found.row.bytes.resize(columns_.size());
      found.row.blocks.resize(columns_.size());
      found.paths.resize(columns_.size());
    }
    found.row.bytes[column] += held.bytes;
    found.row.blocks[column] += held.blocks;
    found.paths[column].insert(held.path);
  }

  template <class Row>
  static void sort_rows(std::vector<Row>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& left, const Row& right) {
      const std::int64_t of_left = left.greatest_change();
      const std::int64_t of_right = right.greatest_change();
      if (of_left != of_right) return of_left > of_right;
      return *std::max_element(left.bytes.begin(), left.bytes.end()) > *std::max_element(right.bytes.begin(), right.bytes.end());
    });
  }

  const std::vector<waterfall_column>& columns_;
  const std::vector<part_rule>& rules_;
  bool has_categories_;
  std::set<std::string> layers_;
  std::map<std::string, std::map<std::string, collected>> parts_;
};

}  // namespace
}  // namespace detail

waterfall make_waterfall(std::vector<waterfall_column> columns, const std::vector<part_rule>& rules) {
  if (columns.size() < 2) detail::raise("a waterfall needs at least two columns");
  waterfall result;
  result.columns = std::move(columns);
  result.parts = detail::waterfall_builder{result.columns, rules}.parts();
  for (std::size_t column = 0; column < result.columns.size(); ++column) {
    for (const owned_bytes& held : result.columns[column].by_category) {
      auto row = std::find_if(result.categories.begin(), result.categories.end(),
                              [&](const waterfall_category& known) { return known.name == held.owner; });
      if (row == result.categories.end()) {
        row = result.categories.emplace(row);
        row->name = held.owner;
        row->bytes.resize(result.columns.size());
      }
      row->bytes[column] += held.bytes;
    }
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
