#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/program_name.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/capture_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// By which a program is known.
struct program_names {
  std::set<std::string> segments;
  std::set<std::string> operations;  ///< layers by their family

  [[nodiscard]] bool are_none() const noexcept { return segments.empty() && operations.empty(); }
};

program_names names_in(const run_baseline& of) {
  program_names names;
  for (const baseline_space& space : of.spaces) {
    for (const baseline_segment& segment : space.segments) {
      if (segment.segment != end_segment_name) names.segments.insert(segment.segment);
    }
    for (const baseline_operation& operation : space.operations) {
      if (!operation.operation.empty()) names.operations.insert(with_folded_layers(operation.operation));
    }
  }
  return names;
}

std::size_t count_of_common(const std::set<std::string>& left, const std::set<std::string>& right) {
  return static_cast<std::size_t>(
      std::count_if(left.begin(), left.end(), [&](const std::string& name) { return right.contains(name); }));
}

/// Rows of the operations that used the space or held something at its peak.
void add_operations(baseline_space& made, const profile& source, const space_profile& space) {
  std::unordered_map<std::string_view, std::size_t> row_of_path;
  const auto row_of = [&](std::string_view path) -> baseline_operation& {
    const auto [found, is_new] = row_of_path.try_emplace(path, made.operations.size());
    if (is_new) made.operations.push_back({std::string{path}, 1, 0, 0});
    return made.operations[found->second];
  };
  for (const operation_profile& operation : source.operations) {
    for (const operation_usage& usage : operation.usage) {
      if (usage.space == space.name) row_of(operation.path).peak_bytes = usage.peak;
    }
  }
  for (const owned_bytes& owner : space.live_at_peak.by_operation) row_of(owner.owner).held_bytes += owner.bytes;
  made.other_operations = space.live_at_peak.remaining_operations;
  made.other_bytes = space.live_at_peak.remaining_bytes;
  std::int64_t held = made.other_bytes;
  for (const baseline_operation& row : made.operations) held = add_saturating(held, row.held_bytes);
  // What a source does not say who held.
  made.other_bytes = add_saturating(made.other_bytes, subtract_saturating(made.peak_bytes, held));
}

/// Adds who held the peak of each name's segments, where the profile keeps the segment that has it.
void add_segment_owners(baseline_space& made, const profile& source, const space_profile& space) {
  std::unordered_map<std::string_view, const live_set*> greatest;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const live_set& live = space.segments[index].live_at_peak;
    const live_set*& known = greatest[source.segments[index].name];
    if (known == nullptr || live.bytes > known->bytes) known = &live;
  }
  for (baseline_segment& row : made.segments) {
    row.other_bytes = row.peak_bytes;
    const auto found = greatest.find(row.segment);
    if (found == greatest.end() || found->second->bytes != row.peak_bytes) continue;
    for (const owned_bytes& owner : found->second->by_operation) {
      row.owners.push_back({owner.owner, 1, owner.bytes});
      row.other_bytes = subtract_saturating(row.other_bytes, owner.bytes);
    }
  }
}

/// The owners of a segment's peak in the form of those of a space.
baseline_space owners_as_space(const baseline_segment& of) {
  baseline_space made;
  made.peak_bytes = of.peak_bytes;
  made.other_bytes = of.other_bytes;
  for (const baseline_owner& owner : of.owners)
    made.operations.push_back({owner.operation, owner.operations, owner.held_bytes, 0});
  return made;
}

/// How large a row is, to sort by.
std::pair<std::int64_t, std::int64_t> rank_of(const baseline_operation& row) { return {row.all_held(), row.peak_bytes}; }

/// Makes one row of the operations that differ only in a number.
vector<baseline_operation> with_equal_layers_folded(const vector<baseline_operation>& rows) {
  using alike = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<alike, std::size_t> row_of;
  vector<baseline_operation> folded;
  for (const baseline_operation& row : rows) {
    const alike key{with_folded_layers(row.operation), row.held_bytes, row.peak_bytes};
    const auto [found, is_new] = row_of.try_emplace(key, folded.size());
    if (is_new) {
      folded.push_back(row);
      continue;
    }
    folded[found->second].operation = std::get<0>(key);
    folded[found->second].operations += row.operations;
  }
  return folded;
}

/// Puts equal layers into one row, and keeps the `most_rows` rows with the most bytes.
void reduce_operations(baseline_space& space, std::size_t most_rows) {
  space.operations = with_equal_layers_folded(space.operations);
  std::stable_sort(
      space.operations.begin(), space.operations.end(),
      [](const baseline_operation& left, const baseline_operation& right) { return rank_of(left) > rank_of(right); });
  while (space.operations.size() > most_rows) {
    const baseline_operation& last = space.operations.back();
    space.other_operations += last.operations;
    space.other_bytes = add_saturating(space.other_bytes, last.all_held());
    space.operations.pop_back();
  }
}

void reduce_owners(baseline_segment& segment) {
  baseline_space space = owners_as_space(segment);
  reduce_operations(space, most_baseline_owners);
  segment.other_bytes = space.other_bytes;
  segment.owners.clear();
  for (const baseline_operation& row : space.operations)
    segment.owners.push_back({row.operation, row.operations, row.held_bytes});
}

}  // namespace
}  // namespace detail

const baseline_space* run_baseline::find_space(std::string_view name) const noexcept {
  const auto found = std::find_if(spaces.begin(), spaces.end(), [&](const baseline_space& each) { return each.space == name; });
  return found == spaces.end() ? nullptr : &*found;
}

run_baseline baseline_of(const profile& source) {
  run_baseline made;
  made.mode = source.mode;
  made.exact = source.exact;
  made.device = source.device;
  made.program = detail::program_in(source.process.command_line);
  for (const space_profile& space : source.spaces) {
    baseline_space& row = made.spaces.emplace_back();
    row.space = space.name;
    row.peak_bytes = space.cumulative_peak;
    row.end_bytes = space.cumulative_current;
    row.operation = space.peak_operation;
    const auto index = static_cast<std::size_t>(space.peak_segment);
    if (space.peak_segment >= 0 && index < source.segments.size()) row.segment = source.segments[index].name;
    for (const detail::segments_of_name& each : detail::segments_by_name(source, space))
      row.segments.push_back({each.name, each.peak_live_bytes.greatest});
    std::stable_sort(row.segments.begin(), row.segments.end(), [](const baseline_segment& left, const baseline_segment& right) {
      return left.peak_bytes > right.peak_bytes;
    });
    detail::add_segment_owners(row, source, space);
    detail::add_operations(row, source, space);
    std::stable_sort(row.operations.begin(), row.operations.end(),
                     [](const baseline_operation& left, const baseline_operation& right) {
                       return detail::rank_of(left) > detail::rank_of(right);
                     });
  }
  return made;
}

run_baseline reduced(const run_baseline& all, std::size_t most_rows) {
  run_baseline result = all;
  for (baseline_space& space : result.spaces) {
    while (space.segments.size() > most_rows) {
      space.segments.pop_back();
      ++space.other_segments;
    }
    for (baseline_segment& segment : space.segments) detail::reduce_owners(segment);
    detail::reduce_operations(space, most_rows);
  }
  return result;
}

namespace detail {
namespace {

/// Finds what the operations of one run held in another, whose equal layers may be one row.
class owner_matcher {
 public:
  explicit owner_matcher(const baseline_space& before) : other_bytes_{before.other_bytes} {
    for (const baseline_operation& row : before.operations) {
      if (row.operations == 1) {
        single_[row.operation] = row.held_bytes;
      } else {
        for (std::int64_t layer = 0; layer < row.operations; ++layer) layers_[row.operation].push_back(row.held_bytes);
      }
    }
  }

  [[nodiscard]] std::vector<baseline_difference> match(const baseline_space& after) {
    take_equal_ones(after);
    baseline_difference others{std::string{folded_operations}, 1, other_bytes_, after.other_bytes};
    for (const baseline_operation& row : after.operations) {
      if (matched_.contains(&row)) continue;
      baseline_difference made{row.operation, 1, 0, row.held_bytes};
      if (!take_single(row, made.before) && !take_layer(row, made.before) && row.held_bytes <= other_bytes_) {
        others.after = add_saturating(others.after, row.held_bytes);  // it may be one of those left out
        continue;
      }
      rows_.push_back(std::move(made));
    }
    for (const auto& [operation, bytes] : single_) rows_.push_back({operation, 1, bytes, 0});
    for (const auto& [family, layers] : layers_) {
      for (const std::int64_t bytes : layers) rows_.push_back({family, 1, bytes, 0});
    }
    rows_.push_back(std::move(others));
    return std::move(rows_);
  }

 private:
  /// Operations of the same name, and layers that hold as much as one of their family did: nothing to say about them.
  void take_equal_ones(const baseline_space& after) {
    for (const baseline_operation& row : after.operations) {
      const auto family = layers_.find(with_folded_layers(row.operation));
      if (single_.contains(row.operation) || family == layers_.end()) continue;
      const auto same = std::find(family->second.begin(), family->second.end(), row.held_bytes);
      if (same == family->second.end()) continue;
      family->second.erase(same);
      matched_.insert(&row);
    }
  }
  bool take_single(const baseline_operation& row, std::int64_t& before) {
    const auto found = single_.find(row.operation);
    if (found == single_.end()) return false;
    before = found->second;
    single_.erase(found);
    return true;
  }
  bool take_layer(const baseline_operation& row, std::int64_t& before) {
    const auto family = layers_.find(with_folded_layers(row.operation));
    if (family == layers_.end() || family->second.empty()) return false;
    before = family->second.front();
    family->second.pop_front();
    return true;
  }

  std::int64_t other_bytes_;
  std::map<std::string, std::int64_t> single_;
  std::map<std::string, std::deque<std::int64_t>> layers_;  ///< what each layer of a family held
  std::unordered_set<const baseline_operation*> matched_;
  std::vector<baseline_difference> rows_;
};

}  // namespace
}  // namespace detail

std::vector<baseline_difference> growth_since(const baseline_space& before, const baseline_space& after) {
  using alike = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<alike, std::size_t> row_of;
  std::vector<baseline_difference> folded;
  for (const baseline_difference& row : detail::owner_matcher{before}.match(after)) {
    if (row.change() == 0) continue;
    const alike key{detail::with_folded_layers(row.operation), row.before, row.after};
    const auto [found, is_new] = row_of.try_emplace(key, folded.size());
    if (is_new) {
      folded.push_back(row);
      continue;
    }
    baseline_difference& sum = folded[found->second];
    sum.operation = std::get<0>(key);
    sum.operations += row.operations;
    sum.before = detail::add_saturating(sum.before, row.before);
    sum.after = detail::add_saturating(sum.after, row.after);
  }
  std::stable_sort(folded.begin(), folded.end(), [](const baseline_difference& left, const baseline_difference& right) {
    return left.change() > right.change();
  });
  return folded;
}

bool seem_different_programs(const run_baseline& left, const run_baseline& right) {
  const detail::program_names own = detail::names_in(left);
  const detail::program_names others = detail::names_in(right);
  if (own.are_none() || others.are_none())
    return left.program != right.program && !left.program.empty() && !right.program.empty();
  if (detail::count_of_common(own.segments, others.segments) != 0) return false;
  const std::size_t common = detail::count_of_common(own.operations, others.operations);
  return common == 0 || (common == 1 && own.operations.size() > 1 && others.operations.size() > 1);
}

std::string why_different(const run_baseline& left, const run_baseline& right) {
  if (!detail::names_in(left).are_none() && !detail::names_in(right).are_none())
    return "have no segment and hardly an operation in common";
  return "are of '" + detail::on_one_line(left.program) + "' and '" + detail::on_one_line(right.program) +
         "', and at least one has neither segments nor operations";
}

std::vector<baseline_difference> growth_since(const baseline_segment& before, const baseline_segment& after) {
  return growth_since(detail::owners_as_space(before), detail::owners_as_space(after));
}

}  // namespace memprof::inline MEMPROF_ABI
