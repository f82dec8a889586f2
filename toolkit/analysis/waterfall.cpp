#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/owner_sums.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

bool differ(std::span<const std::int64_t> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [&](std::int64_t each) { return each != bytes.front(); });
}

std::int64_t greatest_change(std::span<const std::int64_t> bytes) {
  std::int64_t greatest = 0;
  for (std::size_t column = 1; column < bytes.size(); ++column) greatest = std::max(greatest, std::abs(change_at(bytes, column)));
  return greatest;
}

std::vector<std::int64_t> waterfall::total() const {
  std::vector<std::int64_t> peaks;
  for (const compared_run& column : columns) peaks.push_back(column.bytes);
  return peaks;
}

namespace detail {
namespace {

/// Collects the rows of a waterfall.
class waterfall_builder {
 public:
  waterfall_builder(const std::vector<compared_run>& columns, const std::vector<part_rule>& rules)
      : columns_{columns}, rules_{rules}, has_categories_{std::all_of(columns.begin(), columns.end(), [](const auto& column) {
          return column.has_categories;
        })} {
    find_layers();
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      for (const held_bytes& held : columns_[column].held) {
        const operation_place at = place(held);
        sums_of_owner(parts_[at.part], at.operation, columns_.size())[column].add(held);
      }
    }
  }

  [[nodiscard]] std::vector<waterfall_part> parts() const {
    std::vector<waterfall_part> result;
    for (const auto& [name, sums] : parts_) {
      waterfall_part part;
      part.name = name;
      part.bytes.resize(columns_.size());
      for (const auto& [operation, of] : sums) {
        if (std::none_of(of.begin(), of.end(), [](const owner_sum& sum) { return sum.is_live(); })) continue;
        waterfall_row& row = part.rows.emplace_back();
        row.operation = operation;
        for (std::size_t column = 0; column < columns_.size(); ++column) {
          row.bytes.push_back(of[column].bytes);
          row.blocks.push_back(of[column].blocks);
          row.paths.push_back(static_cast<std::int64_t>(of[column].paths.size()));
          part.bytes[column] += of[column].bytes;
        }
      }
      if (part.rows.empty()) continue;
      sort_rows(part.rows);
      result.push_back(std::move(part));
    }
    sort_rows(result);
    return result;
  }

 private:
  [[nodiscard]] operation_place place(const held_bytes& held) const {
    operation_place found = place_of(held.path, has_categories_ ? held.category : category::other, rules_);
    for (std::string* const name : {&found.part, &found.operation}) {
      if (const std::string folded = with_folded_layers(*name); layers_.count(folded) != 0) *name = folded;
    }
    return found;
  }

  /// Finds names that differ only in a number within one column.
  void find_layers() {
    for (const compared_run& column : columns_) {
      std::map<std::string, std::string> first_of;
      for (const held_bytes& held : column.held) {
        if (held.bytes == 0 && held.blocks == 0) continue;
        const operation_place found = place_of(held.path, has_categories_ ? held.category : category::other, rules_);
        for (const std::string& name : {found.part, found.operation}) {
          const std::string folded = with_folded_layers(name);
          if (first_of.try_emplace(folded, name).first->second != name) layers_.insert(folded);
        }
      }
    }
  }

  template <class Row>
  static void sort_rows(std::vector<Row>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& left, const Row& right) {
      const std::int64_t of_left = greatest_change(left.bytes);
      const std::int64_t of_right = greatest_change(right.bytes);
      if (of_left != of_right) return of_left > of_right;
      return *std::max_element(left.bytes.begin(), left.bytes.end()) > *std::max_element(right.bytes.begin(), right.bytes.end());
    });
  }

  const std::vector<compared_run>& columns_;
  const std::vector<part_rule>& rules_;
  bool has_categories_;
  std::set<std::string> layers_;
  std::map<std::string, owner_sums> parts_;
};

}  // namespace
}  // namespace detail

waterfall make_waterfall(std::vector<compared_run> columns, const std::vector<part_rule>& rules) {
  if (columns.size() < 2) detail::raise("a waterfall needs at least two columns");
  waterfall result;
  result.columns = std::move(columns);
  result.parts = detail::waterfall_builder{result.columns, rules}.parts();
  std::vector<const compared_run*> runs;
  for (const compared_run& column : result.columns) runs.push_back(&column);
  for (const auto& [name, of] : detail::sums_by_category(runs)) {
    waterfall_category& row = result.categories.emplace_back();
    row.name = name;
    for (const detail::owner_sum& sum : of) row.bytes.push_back(sum.bytes);
  }
  std::stable_sort(result.categories.begin(), result.categories.end(),
                   [](const waterfall_category& left, const waterfall_category& right) { return left.bytes > right.bytes; });
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
