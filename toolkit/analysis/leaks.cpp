#include <memprof/config.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/growth.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

void step_count::on_segment_end(const replay_state& at, label name) {
  const std::string_view text = at.names.text(name);
  auto found = names_.find(text);
  if (found == names_.end()) {
    found = names_.emplace(std::string{text}, counted{}).first;
    found->second.order = static_cast<std::int64_t>(names_.size());
  }
  ++found->second.count;
}

std::string step_count::segment() const {
  std::string best;
  counted most{1, 0};
  for (const auto& [name, each] : names_) {
    if (each.count == 1 || std::pair{each.count, each.order} < std::pair{most.count, most.order}) continue;
    most = each;
    best = name;
  }
  return best;
}

std::int64_t step_count::count_of(const std::string& segment) const {
  const auto found = names_.find(segment);
  return found == names_.end() ? 0 : found->second.count;
}

leak_fold::leak_fold(std::string segment, std::int64_t steps, std::int64_t allocations_per_step)
    : segment_{std::move(segment)}, steps_{steps}, allocations_per_step_{allocations_per_step} {}

leak_fold::row_state& leak_fold::row_of(std::uint8_t space, std::uint32_t operation) {
  const std::uint64_t key = std::uint64_t{operation} << 8 | space;
  const auto [found, is_new] = row_of_key_.try_emplace(key, rows_.size());
  if (is_new) rows_.push_back({space, operation, 0, growth_series{steps_}});
  return rows_[found->second];
}

void leak_fold::change(std::uint8_t space, std::uint32_t operation, std::int64_t bytes) {
  row_state& row = row_of(space, operation);
  row.series.add(row.live, step_);
  row.live += bytes;
  spaces_[space].live += bytes;
  spaces_[space].is_used = true;
}

void leak_fold::on_allocation(const replay_state&, const replayed_block& block) {
  change(block.space, block.operation, static_cast<std::int64_t>(block.bytes));
  spaces_[block.space].allocated = block.ordinal;
  if (allocations_per_step_ != 0 && ++allocations_ % allocations_per_step_ == 0 && step_ < steps_) end_step();
}

void leak_fold::on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t) {
  change(block.space, block.operation, -static_cast<std::int64_t>(block.bytes));
}

void leak_fold::on_segment_end(const replay_state& at, label name) {
  if (allocations_per_step_ == 0 && at.names.text(name) == segment_) end_step();
}

void leak_fold::on_allocator_event(const replay_state&, const event& happened, std::uint32_t) {
  if (happened.kind != event_kind::reserve && happened.kind != event_kind::release) return;
  space_state& space = spaces_[happened.space];
  space.is_used = true;
  if (space.reserved == nullptr) space.reserved = std::make_unique<reserved_ledger>();
  (void)(happened.kind == event_kind::reserve ? space.reserved->reserve(happened.address, happened.bytes)
                                              : space.reserved->release(happened.address, happened.bytes));
}

void leak_fold::end_step() {
  ++step_;
  for (space_state& space : spaces_) {
    if (!space.is_used) continue;
    if (space.totals.empty()) space.totals.assign(2, growth_series{steps_});
    // A space that was first used in a later step had no bytes before.
    space.totals[0].add(0, step_ - 1);
    space.totals[1].add(0, step_ - 1);
    const std::int64_t idle = space.reserved == nullptr ? 0 : std::max<std::int64_t>(0, space.reserved->current() - space.live);
    space.totals[0].add(space.live, step_);
    space.totals[1].add(idle, step_);
    space.line.add(step_, space.live + idle);
    space.allocated_at_end.resize(static_cast<std::size_t>(step_ - 1));
    space.allocated_at_end.push_back(space.allocated);
  }
  if (step_ != steps_) return;
  if (stacks_) find_growth();
  for (std::size_t space = 0; space < any_space; ++space) {
    if (spaces_[space].is_used)
      for_each_live_(static_cast<std::uint8_t>(space), [&](const replayed_block& block) { note_live(block); });
  }
}

/// Notes from which block on each row that grows has grown.
void leak_fold::find_growth() {
  for (row_state& row : rows_) {
    row.series.add(row.live, steps_);
    const growth trend = row.series.judge();
    if (trend.kind != growth_kind::grows) continue;
    const std::vector<std::uint64_t>& ends = spaces_[row.space].allocated_at_end;
    row.grown_from = trend.since_step == 0 ? 1 : ends[static_cast<std::size_t>(trend.since_step) - 1] + 1;
  }
}

void leak_fold::note_live(const replayed_block& block) {
  row_state& row = row_of(block.space, block.operation);
  const auto bytes = static_cast<std::int64_t>(block.bytes);
  if (row.blocks == 0 || block.ordinal < row.oldest) {
    row.oldest = block.ordinal;
    row.oldest_bytes = bytes;
  }
  if (row.blocks == 0 || block.ordinal > row.newest) {
    row.newest = block.ordinal;
    row.newest_bytes = bytes;
  }
  ++row.blocks;
  if (row.grown_from == 0 || block.ordinal < row.grown_from || block.call_stack == 0) return;
  if (const double chance = chance_of_stack(bytes, *stacks_); chance > 0)
    row.asked_bytes[block.call_stack] += static_cast<double>(bytes) / chance;
}

std::int64_t leak_fold::step_of(const space_state& space, std::uint64_t ordinal) const {
  return std::lower_bound(space.allocated_at_end.begin(), space.allocated_at_end.end(), ordinal) - space.allocated_at_end.begin();
}

growing_owner leak_fold::found_in(const replay_state& at, const row_state& row) const {
  growing_owner found;
  found.space = at.space_name(row.space);
  std::vector<std::uint32_t> path;
  for (std::uint32_t node = row.operation; node != 0; node = at.operations()[node].parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  for (const std::uint32_t node : path) append_operation(found.operation, at.names.text(at.operations()[node].name));
  found.blocks = row.blocks;
  if (row.blocks == 0) return found;
  found.oldest_step = step_of(spaces_[row.space], row.oldest);
  found.newest_step = step_of(spaces_[row.space], row.newest);
  found.oldest_bytes = row.oldest_bytes;
  found.newest_bytes = row.newest_bytes;
  return found;
}

namespace {

/// The one who asked for most bytes.
void set_caller(growing_owner& owner, const std::map<label, double>& by_stack, named_stacks& stacks) {
  std::map<std::string, double> by_caller;
  double all = 0;
  for (const auto& [stack, bytes] : by_stack) {
    by_caller[stacks.caller(stack)] += bytes;
    all += bytes;
  }
  double most = 0;
  for (const auto& [caller, bytes] : by_caller) {
    if (bytes <= most || caller.empty()) continue;
    most = bytes;
    owner.caller = caller;
    owner.caller_share = bytes / all;
  }
}

/// What was live after the last segment of that name. The trace itself lacks blocks.
std::int64_t live_after_last(const profile& of, const space_profile& space, const std::string& segment) {
  for (std::size_t index = std::min(of.segments.size(), space.segments.size()); index-- > 0;) {
    if (of.segments[index].name == segment) return space.segments[index].cumulative_current;
  }
  return space.cumulative_current;
}

/// Adds what another layer has.
void add_layer(growing_owner& sum, const growing_owner& layer) {
  ++sum.operations;
  sum.trend.per_step += layer.trend.per_step;
  sum.trend.first += layer.trend.first;
  sum.trend.last += layer.trend.last;
  if (layer.blocks != 0 && (sum.blocks == 0 || layer.oldest_step < sum.oldest_step)) {
    sum.oldest_step = layer.oldest_step;
    sum.oldest_bytes = layer.oldest_bytes;
  }
  if (layer.blocks != 0 && (sum.blocks == 0 || layer.newest_step > sum.newest_step)) {
    sum.newest_step = layer.newest_step;
    sum.newest_bytes = layer.newest_bytes;
  }
  sum.blocks += layer.blocks;
}

/// Makes one row of the layers of a model that grew alike. Their callers are alike, too, as far as they are known.
std::vector<growing_owner> with_like_layers_folded(const std::vector<growing_owner>& owners) {
  using alike = std::tuple<std::string, std::string, std::int64_t, std::int64_t, double, std::int64_t, std::string>;
  std::map<alike, std::size_t> row_of;
  std::vector<growing_owner> folded;
  for (const growing_owner& owner : owners) {
    const std::string family = with_folded_layers(owner.operation);
    const growth& trend = owner.trend;
    const auto [found, is_new] = row_of.try_emplace(
        alike{owner.space, family, trend.since_step, trend.until_step, trend.per_step, trend.last, owner.caller}, folded.size());
    if (is_new) {
      folded.push_back(owner);
      continue;
    }
    growing_owner& sum = folded[found->second];
    sum.operation = family;
    add_layer(sum, owner);
  }
  return folded;
}

/// Counts its steps from the first of the run.
void add_missing(growing_owner& owner, std::int64_t steps) {
  owner.trend.since_step += steps;
  owner.trend.until_step += steps;
  if (owner.oldest_step >= 0) owner.oldest_step += steps;
  if (owner.newest_step >= 0) owner.newest_step += steps;
}

}  // namespace

leak_report leak_fold::report(const replay_state& at, const profile& of) {
  leak_report found;
  found.segment = segment_;
  found.steps = steps_;
  found.exact = of.exact;
  found.remarks = remarks_on(of);
  for (const named_segments& each : of.segments_by_name) {
    if (each.name == segment_ && !segment_.empty()) found.missing_steps = std::max<std::int64_t>(0, each.count - steps_);
  }
  found.is_by_count = allocations_per_step_ != 0;
  std::array<double, any_space + 1> per_step{};
  const auto add = [&](growing_owner owner, const growth& trend, std::size_t space) {
    if (trend.kind == growth_kind::level) return;
    owner.trend = trend;
    if (trend.kind == growth_kind::grows) per_step[space] += trend.per_step;
    (trend.kind == growth_kind::grows     ? found.growing
     : trend.kind == growth_kind::unclear ? found.unclear
                                          : found.levelled)
        .push_back(std::move(owner));
  };
  named_stacks stacks{at.names};
  for (row_state& row : rows_) {
    row.series.add(row.live, steps_);
    const growth trend = row.series.judge();
    if (trend.kind == growth_kind::level) continue;
    growing_owner owner = found_in(at, row);
    // The first step's segment may end where such blocks are freed, as gradients are by zero_grad() in the next step.
    const bool is_made_anew = owner.oldest_step == steps_ - 1;
    if (trend.kind == growth_kind::levels_off && trend.is_after_first && is_made_anew) continue;
    set_caller(owner, row.asked_bytes, stacks);
    add(std::move(owner), trend, row.space);
  }
  for (std::size_t index = 0; index < any_space; ++index) {
    const space_state& space = spaces_[index];
    if (!space.is_used) continue;
    const std::string name{at.space_name(static_cast<std::uint8_t>(index))};
    const space_profile* const known = of.find_space(name);
    leak_report::space_row& row = found.spaces.emplace_back();
    row.name = name;
    row.capacity = known == nullptr || known->capacity_is_per_core ? 0 : known->capacity;
    if (space.totals.empty()) continue;
    row.last = space.totals[0].judge().last + space.totals[1].judge().last;
    growing_owner idle;
    idle.space = name;
    idle.operation = reserved_beyond_blocks;
    if (space.reserved != nullptr) add(std::move(idle), space.totals[1].judge(), index);
    const growth together = space.totals[0].judge();
    if (per_step[index] == 0 && together.kind == growth_kind::grows) {
      growing_owner all;
      all.space = name;
      all.operation = many_operations;
      add(std::move(all), together, index);
    }
    row.per_step = per_step[index];
    const linear_fit line = space.line.line();
    row.is_made_up_for = row.per_step > 0 && stays_or_falls(line.per_step == 0 && line.r_squared == 1, line);
    if (found.missing_steps != 0 && known != nullptr) row.last = live_after_last(of, *known, segment_);
  }
  if (found.missing_steps != 0) {
    for (std::vector<growing_owner>* const owners : {&found.growing, &found.levelled, &found.unclear}) {
      for (growing_owner& owner : *owners) add_missing(owner, found.missing_steps);
    }
  }
  for (std::vector<growing_owner>* const owners : {&found.growing, &found.levelled, &found.unclear})
    *owners = with_like_layers_folded(*owners);
  std::stable_sort(found.growing.begin(), found.growing.end(),
                   [](const auto& left, const auto& right) { return left.trend.per_step > right.trend.per_step; });
  for (std::vector<growing_owner>* const owners : {&found.levelled, &found.unclear}) {
    std::stable_sort(owners->begin(), owners->end(),
                     [](const auto& left, const auto& right) { return left.trend.last > right.trend.last; });
  }
  return found;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
