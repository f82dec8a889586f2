#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>
#include <memprof/toolkit/analysis/value_counts.hpp>
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

namespace detail {
namespace {

/// 3.5 standard deviations of a normal distribution, whose median absolute deviation is 1 / 1.4826 of one.
constexpr double noise_in_deviations = 3.5 * 1.4826;

std::int64_t noise_at_deviation(std::int64_t deviation) {
  constexpr double most = 9e18;
  return static_cast<std::int64_t>(std::min(most, noise_in_deviations * static_cast<double>(deviation)));
}

/// Names devices of one kind alike: "cuda:3" is "cuda:*".
std::string space_family(const space_profile& space) { return without_numbers(space.name); }

/// The space of a family with the greatest peak, or a null pointer.
const space_profile* space_in_family(const profile& of, std::string_view family) {
  const space_profile* found = nullptr;
  for (const space_profile& space : of.spaces) {
    if (space_family(space) == family && (found == nullptr || space.cumulative_peak > found->cumulative_peak)) found = &space;
  }
  return found;
}

/// Ranks in order, and before those without one.
std::uint64_t rank_key(std::int64_t rank, std::size_t source) {
  return (static_cast<std::uint64_t>(rank) & UINT32_MAX) << 32 | (source & UINT32_MAX);
}
std::uint64_t rank_key(const ranked_run& run) { return rank_key(run.rank, run.source); }

bool has_greater_peak(const ranked_run& left, const ranked_run& right) {
  return left.bytes != right.bytes ? left.bytes > right.bytes : rank_key(left) < rank_key(right);
}

ranked_run ranked_run_of(const profile& of, const std::string& file, std::size_t source) {
  ranked_run run;
  run.rank = of.process.rank;
  run.host = of.process.host;
  run.device = of.device;
  run.file = file;
  run.source = source;
  run.steps = steps_of(of).count;
  run.exact = of.exact;
  return run;
}

void set_peak_of_rank(ranked_run& run, const profile& of, const space_profile& space) {
  run.space = space.name;
  run.bytes = std::max<std::int64_t>(0, space.cumulative_peak);
  run.time_ns = space.peak_time_ns;
  const auto index = static_cast<std::size_t>(space.peak_segment);
  if (space.peak_segment < 0 || index >= of.segments.size()) return;
  run.segment = of.segments[index].name;
  run.step = of.segments[index].step;
}

void add_rank_segments(rank_space_fold& fold, const profile& of, const space_profile& space, std::int64_t rank) {
  for (const segments_of_name& each : segments_by_family(segments_by_name(of, space))) {
    const auto is_it = [&](const rank_segment& segment) { return segment.name == each.name; };
    auto found = std::find_if(fold.segments.begin(), fold.segments.end(), is_it);
    if (found == fold.segments.end()) {
      if (fold.segments.size() == rank_merge::most_segments) continue;
      found = fold.segments.insert(found, rank_segment{each.name, 0, 0, 0, 0, -1});
    }
    const std::int64_t bytes = each.peak_live_bytes.greatest;
    if (found->ranks == 0 || bytes < found->least) found->least = bytes;
    if (found->ranks == 0 || bytes > found->greatest ||
        (bytes == found->greatest && rank_key(rank, 0) < rank_key(found->greatest_rank, 0))) {
      found->greatest = bytes;
      found->greatest_rank = rank;
    }
    found->sum = add_saturating(found->sum, bytes);
    ++found->ranks;
  }
}

/// Counts each caveat once a rank; one that differs only in numbers is the same.
void add_rank_remarks(rank_space_fold& fold, const profile& of, const space_profile& space, std::int64_t rank) {
  for (std::string& remark : remarks_on(of, space)) {
    const std::string kind = without_numbers(remark);
    const auto is_it = [&](const rank_remark& each) { return without_numbers(each.text) == kind; };
    const auto found = std::find_if(fold.remarks.begin(), fold.remarks.end(), is_it);
    if (found == fold.remarks.end()) {
      if (fold.remarks.size() < rank_merge::most_alternatives) fold.remarks.push_back({std::move(remark), 1, rank, false});
      continue;
    }
    ++found->ranks;
    if (found->text != remark) found->has_other_numbers = true;
    if (rank_key(rank, 0) < rank_key(found->first_rank, 0)) {
      found->text = std::move(remark);
      found->first_rank = rank;
    }
  }
}

/// Which kinds of memory a rank has: "cpu, cuda:*".
std::string space_families(const profile& of) {
  std::set<std::string> families;
  for (const space_profile& space : of.spaces) families.insert(space_family(space));
  std::string text;
  for (const std::string& family : families) text += (text.empty() ? "" : ", ") + family;
  return text;
}

template <class List, class Value>
void append_at_most(List& list, std::int64_t& count, Value&& value) {
  ++count;
  if (list.size() < rank_merge::most_named) list.push_back(std::forward<Value>(value));
}

}  // namespace
}  // namespace detail

bool rank_merge::is_seen(std::int64_t rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < seen_.size() && seen_[static_cast<std::size_t>(rank)];
}

void rank_merge::see(std::int64_t rank) {
  if (rank < 0 || is_seen(rank)) return;
  if (static_cast<std::size_t>(rank) >= seen_.size()) seen_.resize(static_cast<std::size_t>(rank) + 1);
  seen_[static_cast<std::size_t>(rank)] = true;
  ++seen_count_;
}

void rank_merge::add_value(std::string_view what, const std::string& value, std::int64_t rank) {
  const auto is_it = [&](const rank_difference& each) { return each.what == what; };
  auto found = std::find_if(values_.begin(), values_.end(), is_it);
  if (found == values_.end()) found = values_.insert(found, rank_difference{std::string{what}, {}, 0});
  for (rank_difference::alternative& each : found->values) {
    if (each.value != value) continue;
    ++each.ranks;
    each.least_rank = std::min(each.least_rank, rank);
    return;
  }
  if (found->values.size() == most_alternatives) {
    ++found->other_ranks;
  } else {
    found->values.push_back({value, 1, rank});
  }
}

void rank_merge::add_space(const profile& of, std::string_view family, const ranked_run& run) {
  const space_profile* const space = detail::space_in_family(of, family);
  const auto is_it = [&](const detail::rank_space_fold& fold) { return fold.family == family; };
  auto found = std::find_if(spaces_.begin(), spaces_.end(), is_it);
  if (found == spaces_.end()) {
    if (spaces_.size() == most_spaces) return;
    found = spaces_.insert(found, detail::rank_space_fold{std::string{family}, {}, 0, {}, {}, {}});
  }
  ranked_run row = run;
  detail::set_peak_of_rank(row, of, *space);
  found->peaks.add(row.bytes, detail::rank_key(row));
  found->sum = detail::add_saturating(found->sum, row.bytes);
  detail::add_rank_segments(*found, of, *space, row.rank);
  detail::add_rank_remarks(*found, of, *space, row.rank);
  found->rows.insert(std::upper_bound(found->rows.begin(), found->rows.end(), row, detail::has_greater_peak), std::move(row));
  if (found->rows.size() > most_rows) found->rows.erase(found->rows.begin() + most_rows / 2);
}

bool rank_merge::add(const profile& of, const std::string& file, std::size_t source) {
  const std::int64_t rank = of.process.rank;
  if (rank >= most_ranks || of.process.world_size > most_ranks) {
    detail::raise("'" + file + "' is of rank " + std::to_string(rank) + " of " + std::to_string(of.process.world_size) +
                  ", but at most " + std::to_string(most_ranks) + " ranks can be merged");
  }
  if (is_seen(rank)) {
    if (!of.complete) return false;
    detail::raise("'" + file + "' is a second recording of rank " + std::to_string(rank) +
                  ": these are files of more than one run; name those of one, such as the files of one date");
  }
  see(rank);
  ++profiles_;
  world_size_ = std::max(world_size_, of.process.world_size);
  if (profiles_ == 1) first_host_ = of.process.host;
  has_several_hosts_ = has_several_hosts_ || of.process.host != first_host_;
  const ranked_run run = detail::ranked_run_of(of, file, source);
  if (!of.complete)
    detail::append_at_most(unfinished_, unfinished_count_, unfinished_rank{rank, file, "its capture had not ended"});
  if (!of.exact && ++inexact_count_ && rank >= 0 && inexact_.size() < most_named) inexact_.push_back(rank);
  // Command lines differ in ranks, ports and the like.
  constexpr std::size_t most_letters = 1000;
  const std::string program = detail::without_numbers(of.process.command_line).substr(0, most_letters);
  add_value("program", program.empty() ? std::string{"unknown"} : program, rank);
  add_value("device", of.device.empty() ? std::string{"none named"} : of.device, rank);
  add_value("run mode", std::string{to_string(of.mode)}, rank);
  add_value("memory", detail::space_families(of), rank);
  add_value("processes", of.process.world_size < 0 ? std::string{"unknown"} : std::to_string(of.process.world_size), rank);
  add_value("steps", std::to_string(run.steps), rank);
  std::set<std::string> families;
  for (const space_profile& space : of.spaces) families.insert(detail::space_family(space));
  for (const std::string& family : families) add_space(of, family, run);
  return true;
}

void rank_merge::add_unreadable(std::int64_t rank, const std::string& file, const std::string& reason) {
  if (is_seen(rank)) return;
  if (rank < most_ranks) see(rank);
  detail::append_at_most(unfinished_, unfinished_count_, unfinished_rank{rank, file, reason});
}

merged_ranks rank_merge::result(std::string_view space) const {
  using namespace detail;
  if (spaces_.empty()) raise("no recording has a memory space");
  const rank_space_fold* fold = nullptr;
  std::string known;
  const std::string wanted = without_numbers(space);
  for (const rank_space_fold& each : spaces_) {
    known += (known.empty() ? "" : ", ") + each.family;
    const bool fits =
        space.empty() ? fold == nullptr || has_greater_peak(each.rows.front(), fold->rows.front()) : each.family == wanted;
    if (fits) fold = &each;
  }
  if (fold == nullptr) raise("no rank has a memory space '" + std::string{space} + "'; there are " + known);

  merged_ranks of;
  of.space = fold->family;
  of.ranks = fold->peaks.count();
  of.world_size = world_size_;
  of.has_several_hosts = has_several_hosts_;
  of.sum = fold->sum;
  of.greatest = fold->rows.front().bytes;
  of.least = fold->rows.back().bytes;
  of.rounding = fold->peaks.unit();
  const value_counts::representative median = fold->peaks.median();
  of.median = median.value;
  of.median_source = median.key & UINT32_MAX;
  of.median_rank = static_cast<std::int32_t>(median.key >> 32);
  of.deviation = fold->peaks.median_distance(of.median);
  of.threshold = std::max(noise_at_deviation(of.deviation), of.median / 100);
  of.standing_out = fold->peaks.count_beyond(of.median, of.threshold);
  of.segments = fold->segments;
  of.remarks = fold->remarks;
  for (const rank_difference& each : values_) {
    if (each.values.size() < 2) continue;
    rank_difference& made = of.differences.emplace_back(each);
    std::stable_sort(made.values.begin(), made.values.end(),
                     [](const auto& left, const auto& right) { return left.ranks > right.ranks; });
  }
  for (std::int64_t rank = 0; rank < world_size_; ++rank) {
    if (!is_seen(rank)) append_at_most(of.missing, of.missing_count, rank);
  }
  of.unfinished = unfinished_;
  of.unfinished_count = unfinished_count_;
  of.inexact = inexact_;
  std::sort(of.inexact.begin(), of.inexact.end());
  of.inexact_count = inexact_count_;

  for (const ranked_run& row : fold->rows) {
    if (std::abs(row.bytes - of.median) > of.threshold)
      of.findings.push_back({row, row.bytes - of.median, true, {}, {}, {}, -1, -1});
  }
  std::stable_sort(of.findings.begin(), of.findings.end(), [](const rank_finding& left, const rank_finding& right) {
    return std::abs(left.change) > std::abs(right.change);
  });
  if (of.findings.size() > most_findings) of.findings.resize(most_findings);
  if (of.findings.empty() && of.greatest - of.median > of.median / 100)
    of.findings.push_back({fold->rows.front(), of.greatest - of.median, false, {}, {}, {}, -1, -1});

  of.rows = fold->rows;
  if (of.has_all_rows()) {
    std::sort(of.rows.begin(), of.rows.end(),
              [](const ranked_run& left, const ranked_run& right) { return rank_key(left) < rank_key(right); });
  }
  return of;
}

std::vector<const ranked_run*> merged_ranks::shown_rows(bool all) const {
  constexpr std::size_t most = 20;
  std::vector<const ranked_run*> shown;
  for (const ranked_run& run : rows) shown.push_back(&run);
  if (rows.size() <= most || (all && has_all_rows())) return shown;
  std::sort(shown.begin(), shown.end(),
            [](const auto* left, const auto* right) { return detail::has_greater_peak(*left, *right); });
  if (!all) shown.erase(shown.begin() + most / 2, shown.end() - most / 2);
  return shown;
}

namespace detail {
namespace {

/// The greatest excess of one rank over another in a step of which both profiles keep segments.
struct step_excess {
  std::int64_t step = -1;
  std::int64_t greatest = 0;
  std::string_view segment;  ///< the first with more than the level; empty: none
};

/// `sign` is -1 if the other rank has more.
std::vector<step_excess> excesses(const profile& usual, const space_profile& usual_space, const profile& own,
                                  const space_profile& own_space, std::int64_t sign, std::int64_t level) {
  const segment_steps usual_steps = steps_of(usual);
  const segment_steps own_steps = steps_of(own);
  std::map<std::pair<std::int64_t, std::string_view>, std::int64_t> usual_bytes;
  for (std::size_t index = 0; index < usual.segments.size() && index < usual_space.segments.size(); ++index) {
    usual_bytes.try_emplace({usual_steps.of_segment[index], usual.segments[index].name},
                            usual_space.segments[index].live_at_peak.bytes);
  }
  std::vector<step_excess> steps;
  for (std::size_t index = 0; index < own.segments.size() && index < own_space.segments.size(); ++index) {
    const std::int64_t step = own_steps.of_segment[index];
    const auto other = usual_bytes.find({step, own.segments[index].name});
    if (other == usual_bytes.end()) continue;
    if (steps.empty() || steps.back().step != step) steps.push_back({step, INT64_MIN, {}});
    const std::int64_t excess = sign * (own_space.segments[index].live_at_peak.bytes - other->second);
    steps.back().greatest = std::max(steps.back().greatest, excess);
    if (excess > level && steps.back().segment.empty()) steps.back().segment = own.segments[index].name;
  }
  return steps;
}

/// Since when a rank has been above or below the usual one, up to the peak of the one with more.
void find_departure(rank_finding& finding, const merged_ranks& merged, const profile& usual, const space_profile& usual_space,
                    const profile& own, const space_profile& own_space) {
  const std::int64_t distance = std::abs(finding.change);
  // A rank within the noise departs, too, if it is the greatest: then half of the distance.
  const std::int64_t level = std::max(std::min(noise_at_deviation(merged.deviation), distance / 2), distance / 32);
  const std::int64_t sign = finding.change < 0 ? -1 : 1;
  const std::vector<step_excess> steps = excesses(usual, usual_space, own, own_space, sign, level);
  const profile& with_peak = sign < 0 ? usual : own;
  const std::int64_t peak_index = (sign < 0 ? usual_space : own_space).peak_segment;
  std::int64_t peak_step = INT64_MAX;
  if (peak_index >= 0 && static_cast<std::size_t>(peak_index) < with_peak.segments.size())
    peak_step = steps_of(with_peak).of_segment[static_cast<std::size_t>(peak_index)];
  auto at = std::find_if(steps.rbegin(), steps.rend(), [&](const step_excess& each) { return each.step <= peak_step; });
  for (; at != steps.rend() && at->greatest > level; ++at) {
    finding.since_step = at->step;
    finding.since_segment = at->segment;
  }
  if (finding.since_step >= 0 && at != steps.rend()) finding.last_alike_step = at->step;
}

}  // namespace
}  // namespace detail

void explain(rank_finding& finding, const merged_ranks& merged, const ranked_recording& usual, const ranked_recording& own) {
  const space_profile* const usual_space = detail::space_in_family(usual.of, merged.space);
  const space_profile* const own_space = detail::space_in_family(own.of, merged.space);
  if (usual_space == nullptr || own_space == nullptr) detail::raise("a recording lost its memory space " + merged.space);
  detail::find_departure(finding, merged, usual.of, *usual_space, own.of, *own_space);
  finding.unexplained.clear();
  try {
    finding.difference = compare_runs({compared_run_of("median", usual.of, *usual_space, usual.stacks, compared_moment::peak)},
                                      {compared_run_of("own", own.of, *own_space, own.stacks, compared_moment::peak)});
  } catch (const error& fault) {
    finding.unexplained = fault.what();
  }
}

std::string rank_title(const ranked_run& run) {
  if (run.rank >= 0) return "rank " + std::to_string(run.rank);
  const std::size_t slash = run.file.rfind('/');
  return "'" + (slash == std::string::npos ? run.file : run.file.substr(slash + 1)) + "'";
}

}  // namespace memprof::inline MEMPROF_ABI
