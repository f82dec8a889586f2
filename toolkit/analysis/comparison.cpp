#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/memory_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
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
  run.mode = source.mode;
  run.exact = source.exact;
  run.peak = space.cumulative_peak;
  run.reserved = space.reserved.peak;
  if (!is_device_name(space.name)) run.process = process_account_of(source);
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
  for (const compared_bytes& held : run.held) {
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
  run.has_sizes = stacks.has_sizes;
  const bool is_peak = moment == compared_moment::peak;
  run.bytes = is_peak ? space.cumulative_peak : space.cumulative_current;
  for (const stack_row& row : stacks.rows) {
    if (stacks.spaces[row.space].name != space.name) continue;
    compared_bytes& held = run.held.emplace_back();
    held.path = detail::names_of_path(stacks, row.operation);
    held.category = row.category;
    held.bytes = is_peak ? row.peak_bytes : row.end_bytes;
    held.blocks = std::max<std::int64_t>(0, is_peak ? row.peak_blocks : row.end_blocks);
    held.least_size = row.least_size;
    held.allocated = row.total_bytes;
    run.blocks += held.blocks;
  }
  if (is_peak) {
    run.operation = space.peak_operation;
    run.by_category = {space.live_at_peak.by_category.begin(), space.live_at_peak.by_category.end()};
    detail::find_segment(run, source, space.peak_segment);
  } else {
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
  std::string known;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    if (source.segments[index].name != name) continue;
    if (found < 0 ||
        space.segments[index].live_at_peak.bytes > space.segments[static_cast<std::size_t>(found)].live_at_peak.bytes)
      found = static_cast<std::int64_t>(index);
  }
  if (found < 0) {
    for (const named_segments& each : source.segments_by_name) known += (known.empty() ? "" : ", ") + each.name;
    detail::raise("no segment '" + std::string{name} + "' in " + detail::name_of(run) + "; it has " + known);
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
  run.bytes = usage.live_at_peak.bytes;
  run.blocks = usage.live_at_peak.blocks;
  run.by_category = {usage.live_at_peak.by_category.begin(), usage.live_at_peak.by_category.end()};
  std::int64_t blocks = 0;
  for (const owned_bytes& owner : usage.live_at_peak.by_operation) {
    compared_bytes& held = run.held.emplace_back();
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
    compared_bytes& others = run.held.emplace_back();
    others.path = {std::string{folded_operations}};
    others.bytes = usage.live_at_peak.remaining_bytes;
    others.blocks = run.blocks - blocks;
    others.allocated = -1;
  }
  detail::check_sum(run, run.bytes);
  return run;
}

bool comparison::is_equal() const {
  const auto is_same = [](const std::vector<comparison_row>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const comparison_row& row) {
      return row.before == row.after && row.blocks_before == row.blocks_after;
    });
  };
  return before.space == after.space && other_spaces.empty() && is_same(operations) && is_same(categories) && is_same(sizes);
}

namespace detail {
namespace {

/// What one owner had in one run.
struct owner_sum {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t allocated = 0;  ///< -1: unknown
  std::set<std::vector<std::string>> paths;
};

using owner_sums = std::map<std::string, owner_sum>;

owner_change change_of(const owner_sum& before, const owner_sum& after) {
  const auto is_live = [](const owner_sum& of) { return of.bytes != 0 || of.blocks != 0; };
  if (is_live(before) == is_live(after)) {
    return after.bytes > before.bytes   ? owner_change::more
           : after.bytes < before.bytes ? owner_change::less
                                        : owner_change::equal;
  }
  if (is_live(after)) return before.allocated > 0 ? owner_change::moved_in : owner_change::came;
  return after.allocated > 0 ? owner_change::moved_out : owner_change::went;
}

std::vector<comparison_row> rows_of(const owner_sums& before, const owner_sums& after) {
  std::set<std::string> owners;
  for (const owner_sums* const side : {&before, &after}) {
    for (const auto& [owner, sum] : *side) {
      if (sum.bytes != 0 || sum.blocks != 0) owners.insert(owner);
    }
  }
  const auto sum_in = [](const owner_sums& side, const std::string& owner) {
    const auto found = side.find(owner);
    return found == side.end() ? owner_sum{} : found->second;
  };
  std::vector<comparison_row> rows;
  for (const std::string& owner : owners) {
    const owner_sum of_before = sum_in(before, owner);
    const owner_sum of_after = sum_in(after, owner);
    comparison_row& row = rows.emplace_back();
    row.owner = owner;
    row.before = of_before.bytes;
    row.after = of_after.bytes;
    row.blocks_before = of_before.blocks;
    row.blocks_after = of_after.blocks;
    row.operations = static_cast<std::int64_t>(std::max<std::size_t>({1, of_before.paths.size(), of_after.paths.size()}));
    row.what = change_of(of_before, of_after);
  }
  return rows;
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

template <class OwnerOf>
owner_sums sums_of(const compared_run& run, OwnerOf&& owner_of) {
  owner_sums sums;
  for (const compared_bytes& held : run.held) {
    owner_sum& sum = sums[owner_of(held)];
    sum.bytes += held.bytes;
    sum.blocks += held.blocks;
    sum.allocated = sum.allocated < 0 || held.allocated < 0 ? -1 : sum.allocated + held.allocated;
    if (held.bytes != 0 || held.blocks != 0) sum.paths.insert(held.path);
  }
  return sums;
}

owner_sums category_sums(const compared_run& run) {
  owner_sums sums;
  for (const owned_bytes& each : run.by_category) sums[each.owner] = {each.bytes, each.blocks, 0, {}};
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

  const auto operation_of = [](const compared_bytes& held) { return place_of(held.path, category::other).operation; };
  result.operations = with_like_layers_folded(rows_of(sums_of(result.before, operation_of), sums_of(result.after, operation_of)));
  result.categories = rows_of(category_sums(result.before), category_sums(result.after));
  if (result.before.has_sizes && result.after.has_sizes) {
    const auto size_of = [](const compared_bytes& held) { return std::to_string(held.least_size); };
    result.sizes = rows_of(sums_of(result.before, size_of), sums_of(result.after, size_of));
  }
  const auto spaces_of = [](const compared_run& run) {
    owner_sums sums;
    for (const owned_bytes& each : run.spaces) {
      if (each.owner != run.space) sums[each.owner] = {each.bytes, 0, 0, {}};
    }
    return sums;
  };
  for (comparison_row& row : rows_of(spaces_of(result.before), spaces_of(result.after))) {
    if (row.change() != 0 && row.owner != result.before.space && row.owner != result.after.space)
      result.other_spaces.push_back(std::move(row));
  }
  for (std::vector<comparison_row>* const rows : {&result.operations, &result.categories, &result.sizes, &result.other_spaces})
    sort_rows(*rows);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
