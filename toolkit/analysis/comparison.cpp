#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/owner_sums.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

bool comparison::is_equal() const {
  const auto is_same = [](const std::vector<comparison_row>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const comparison_row& row) {
      return row.before == row.after && row.blocks_before == row.blocks_after;
    });
  };
  return before.space == after.space && other_spaces.empty() && is_same(operations) && is_same(categories) && is_same(sizes) &&
         is_same(callers);
}

namespace detail {
namespace {

owner_change change_of(const owner_sum& before, const owner_sum& after) {
  if (before.is_live() == after.is_live()) {
    return after.bytes > before.bytes   ? owner_change::more
           : after.bytes < before.bytes ? owner_change::less
                                        : owner_change::equal;
  }
  if (after.is_live()) return before.allocated > 0 ? owner_change::moved_in : owner_change::came;
  return after.allocated > 0 ? owner_change::moved_out : owner_change::went;
}

/// Of two runs.
std::vector<comparison_row> rows_of(const owner_sums& sums) {
  std::vector<comparison_row> rows;
  for (const auto& [owner, of] : sums) {
    const owner_sum& before = of[0];
    const owner_sum& after = of[1];
    if (!before.is_live() && !after.is_live()) continue;
    comparison_row& row = rows.emplace_back();
    row.owner = owner;
    row.before = before.bytes;
    row.after = after.bytes;
    row.blocks_before = before.blocks;
    row.blocks_after = after.blocks;
    row.operations = static_cast<std::int64_t>(std::max<std::size_t>({1, before.paths.size(), after.paths.size()}));
    row.what = change_of(before, after);
  }
  return rows;
}

/// A profile knows the bytes of a category at its moments only, so that one may have been there at another.
void doubt_new_categories(std::vector<comparison_row>& rows) {
  for (comparison_row& row : rows) {
    if (row.what == owner_change::came) row.what = owner_change::moved_in;
    if (row.what == owner_change::went) row.what = owner_change::moved_out;
  }
}

void sort_rows(std::vector<comparison_row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const comparison_row& left, const comparison_row& right) {
    const auto rank = [](const comparison_row& row) {
      return std::pair{std::abs(row.change()), std::max(row.before, row.after)};
    };
    return rank(left) > rank(right);
  });
}

/// Makes one row of the operations that differ only in a number, such as the layers of a model, and changed alike.
std::vector<comparison_row> with_like_layers_folded(const std::vector<comparison_row>& rows) {
  using alike = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t, owner_change>;
  std::map<alike, std::size_t> row_of;
  std::vector<comparison_row> folded;
  for (const comparison_row& row : rows) {
    const std::string family = with_folded_layers(row.owner);
    const alike key{family, row.before, row.after, row.blocks_before, row.blocks_after, row.what};
    const auto [found, is_new] = row_of.try_emplace(key, folded.size());
    if (is_new) {
      folded.push_back(row);
      continue;
    }
    comparison_row& sum = folded[found->second];
    sum.owner = family;
    sum.before += row.before;
    sum.after += row.after;
    sum.blocks_before += row.blocks_before;
    sum.blocks_after += row.blocks_after;
    sum.operations += row.operations;
  }
  return folded;
}

/// The peaks of the memory spaces.
owner_sums sums_by_space(const std::vector<const compared_run*>& runs) {
  owner_sums sums;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const owned_bytes& each : runs[run]->spaces) sums_of_owner(sums, each.owner, runs.size())[run].bytes += each.bytes;
  }
  return sums;
}

/// Moves the run with the lower median to the front and removes the others.
number_range take_median(std::vector<compared_run>& runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const compared_run& left, const compared_run& right) { return left.bytes < right.bytes; });
  const std::size_t middle = (runs.size() - 1) / 2;
  const number_range range{static_cast<std::int64_t>(runs.size()), runs.front().bytes, runs[middle].bytes, runs.back().bytes};
  std::swap(runs.front(), runs[middle]);
  runs.resize(1);
  return range;
}

}  // namespace
}  // namespace detail

comparison compare_runs(std::vector<compared_run> before, std::vector<compared_run> after) {
  using namespace detail;
  if (before.empty() || after.empty()) raise("a comparison needs a run on each side");
  comparison result;
  result.runs_before = take_median(before);
  result.runs_after = take_median(after);
  result.before = std::move(before.front());
  result.after = std::move(after.front());

  const std::vector<const compared_run*> runs{&result.before, &result.after};
  const auto operation_of = [](const held_bytes& held) { return place_of(held.path, category::other).operation; };
  result.operations = with_like_layers_folded(rows_of(sums_by(runs, operation_of)));
  result.categories = rows_of(sums_by_category(runs));
  doubt_new_categories(result.categories);
  if (result.before.has_sizes && result.after.has_sizes)
    result.sizes = rows_of(sums_by(runs, [](const held_bytes& held) { return std::to_string(held.least_size); }));
  if (result.before.has_callers && result.after.has_callers)
    result.callers = rows_of(sums_by(runs, [](const held_bytes& held) { return held.caller; }));
  for (comparison_row& row : rows_of(sums_by_space(runs))) {
    if (row.change() != 0 && row.owner != result.before.space && row.owner != result.after.space)
      result.other_spaces.push_back(std::move(row));
  }
  for (std::vector<comparison_row>* const rows :
       {&result.operations, &result.categories, &result.sizes, &result.callers, &result.other_spaces})
    sort_rows(*rows);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
