#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/space_kind.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The answers: does memory grow from step to step, what is live at the end, and who owns it.

namespace memprof::inline MEMPROF_ABI::detail {

/// The name that ends a step: of the names that occur in most steps, the one that occurred last. Null if no name occurs three
/// times, the fewest points that show a trend. The row of all names beyond the limit ends none.
[[nodiscard, gnu::cold]] inline const segments_of_name* end_of_step(const vector<segments_of_name>& names) {
  std::int64_t most = 0;
  for (const segments_of_name& name : names) {
    if (!name.stands_for_others) most = std::max(most, name.count);
  }
  const segments_of_name* last = nullptr;
  for (const segments_of_name& name : names) {
    if (name.stands_for_others || name.count < 3 || name.count < most / 2) continue;
    if (last == nullptr || name.last_number > last->last_number) last = &name;
  }
  return last;
}

/// The share of the variation that a straight line must explain to be a trend.
inline constexpr double clear_trend = 0.9;

[[nodiscard, gnu::cold]] inline bool is_constant(const segments_of_name& name) {
  return name.cumulative_current.least == name.cumulative_current.greatest;
}

[[nodiscard, gnu::cold]] inline bool grows(const segments_of_name& name) {
  return !is_constant(name) && name.growth.r_squared >= clear_trend && name.growth.per_step > 0;
}

/// Whether what grows in a space is made up for by what shrinks: live bytes stay or fall, clearly.
[[nodiscard, gnu::cold]] inline bool stays_or_falls(bool stays, const linear_fit& line) {
  constexpr double hardly_noise = 0.5;
  return stays || (line.per_step < 0 && line.r_squared >= hardly_noise);
}

/// What all growing owners of a space add in a step.
[[nodiscard, gnu::cold]] inline double growth_of_owners(const space_profile& space) {
  double sum = 0;
  for (const owner_growth& owner : space.growing) sum += owner.per_step;
  return sum;
}

/// " by log_metrics, since step 1", or, behind the growth of several, ", 100 B of it by log_metrics, since about step 65".
[[gnu::cold]] inline void add_growing_owner(marked_text& line, const vector<owner_growth>& growing) {
  const owner_growth& most = growing.front();
  if (growing.size() > 1) line.add(", " + growth_rate(most.per_step) + " of it");
  if (most.owner == reserved_beyond_blocks) {
    line.add(" reserved, but in no block");
  } else {
    add_owner(line.add(most.owner.empty() ? " " : " by "), most.owner);
  }
  if (most.since_step < 0) return;
  line.add(most.since_step == 0 || most.within_steps == 1 ? ", since step " : ", since about step ");
  line.add_count(add_saturating(most.since_step, 1));
}

/// "+1.00 KiB per step in cpu by log_metrics, since step 1; live after STEP: first 1.00 KiB, last 0.977 MiB"; the space only if
/// there are several. If no single owner grows, the slope is that of all that is live.
[[gnu::cold]] inline void add_growth(marked_text& line, const segments_of_name& name, const space_profile& space,
                                     bool names_space) {
  const value_summary& live = name.cumulative_current;
  const bool has_owner = !space.growing.empty();
  const bool is_trend = has_owner || is_constant(name) || name.growth.r_squared >= clear_trend;
  const std::string slope = (has_owner           ? "+" + growth_rate(growth_of_owners(space))
                             : is_constant(name) ? "0 B"
                                                 : signed_short_bytes(name.growth.per_step)) +
                            " per step";
  if (is_trend) {
    line.add(slope, has_owner || grows(name) ? emphasis::caution : emphasis::strong);
  } else {
    line.add("no clear trend");
  }
  if (names_space) line.add(" in ").add_name(space.name);
  if (has_owner) add_growing_owner(line, space.growing);
  if (is_constant(name) && !has_owner) {
    line.add(": ").add_bytes(live.last).add(" live after each ").add_name(name.name).add(" (").add_count(name.count).add(")");
    return;
  }
  if (!is_trend) line.add(" (" + slope + ", r\xc2\xb2 " + decimal(name.growth.r_squared, 2) + ")");
  line.add("; live after ").add_name(name.name);
  line.add(": first ").add_bytes(live.first).add(", last ").add_bytes(live.last);
}

/// What is live after each step, and how much that grows: in the topic's space, and in those of the others that grow, the fastest
/// first. The others have their own answer if all spaces are shown; else those beyond the limit are counted.
[[gnu::cold]] inline void growth_section(summary_section& section, const answer_topic& topic) {
  const bool names_space = are_several(topic.source, topic.space_order, topic.options);
  marked_text& lines = section.lines;
  vector<segments_of_name> growing;
  vector<std::size_t> spaces_of_growing;
  bool has_line = false;
  for (const std::size_t number : topic.space_order) {
    const space_profile& space = topic.source.spaces[number];
    if (&space != topic.space && topic.options.all_spaces) continue;
    const vector<segments_of_name> names = segments_by_name(topic.source, space);
    const segments_of_name* const name = end_of_step(names);
    if (name == nullptr) continue;
    if (&space != topic.space) {
      if (!grows(*name) && space.growing.empty()) continue;
      growing.push_back(*name);
      spaces_of_growing.push_back(number);
      continue;
    }
    has_line = true;
    add_growth(lines, *name, space, names_space);
    const value_summary& live = name->cumulative_current;
    const auto is_extreme = [&](std::int64_t value) { return !is_constant(*name) && value != live.first && value != live.last; };
    if (is_extreme(live.least)) lines.add(", min ").add_bytes(live.least);
    if (is_extreme(live.greatest)) lines.add(", max ").add_bytes(live.greatest);
  }
  const auto rate_of = [&](std::size_t index) {
    const space_profile& space = topic.source.spaces[spaces_of_growing[index]];
    return space.growing.empty() ? growing[index].growth.per_step : growth_of_owners(space);
  };
  const vector<std::size_t> order =
      row_order(growing.size(), [&](std::size_t left, std::size_t right) { return rate_of(left) > rate_of(right); });
  const std::size_t shown = std::min(topic.limits.growing_spaces, order.size());
  for (std::size_t index = 0; index < shown; ++index) {
    if (has_line) lines.end_line();
    has_line = true;
    add_growth(lines, growing[order[index]], topic.source.spaces[spaces_of_growing[order[index]]], true);
  }
  if (shown != 0 && shown < order.size())
    lines.add("; ").add_count(static_cast<std::int64_t>(order.size() - shown), "more grows", "more grow");
  if (has_line) lines.end_line();
}

/// What is live at the end by operation, largest first; bytes outside every operation have an empty path.
[[nodiscard, gnu::cold]] inline vector<owned_bytes> live_owners(const profile& source, const space_profile& space) {
  vector<owned_bytes> owners;
  std::int64_t outside = space.cumulative_current;
  for (const operation_profile& operation : source.operations) {
    for (const operation_usage& usage : operation.usage) {
      if (usage.space != space.name || usage.live == 0) continue;
      owners.push_back({operation.path, usage.live, 0});
      outside = subtract_saturating(outside, usage.live);
    }
  }
  if (outside > 0) owners.push_back({{}, outside, 0});
  vector<owned_bytes> sorted;
  for (const std::size_t number : row_order(owners.size(), [&](std::size_t left, std::size_t right) {
         if (owners[left].bytes != owners[right].bytes) return owners[left].bytes > owners[right].bytes;
         return owners[left].owner < owners[right].owner;
       })) {
    sorted.push_back(owners[number]);
  }
  return sorted;
}

/// What is live at the end and who owns it: the first operations and the sum of all others.
[[gnu::cold]] inline void end_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  section.heading = topic.source.complete ? "At end" : "Now";
  const std::int64_t live = space.cumulative_current;
  if (live == 0) {
    section.lines.add("nothing live").end_line();
    return;
  }
  const vector<owned_bytes> owners = live_owners(topic.source, space);
  section.lines.add_total(live).add(" live");
  if (owners.size() == 1) add_owner(section.lines.add(", all of it from "), owners.front().owner);
  section.lines.end_line();
  if (!topic.limits.are_tight()) add_categories(section.lines, space.current_by_category, live);
  if (owners.size() == 1) return;
  section.table.set_columns("Bytes\tShare\tOperation", "rrl");
  // A row that stands for a single operation would say less than the operation itself.
  const std::size_t most = std::min(topic.options.owners, topic.limits.owners_at_end);
  const std::size_t shown = owners.size() == most + 1 ? owners.size() : std::min(most, owners.size());
  marked_text& rows = section.table.rows;
  std::int64_t others = 0;
  for (std::size_t index = 0; index < owners.size(); ++index) {
    if (index >= shown) {
      others = add_saturating(others, owners[index].bytes);
      continue;
    }
    rows.add_bytes(owners[index].bytes).next_cell().add_share(owners[index].bytes, live).next_cell();
    add_owner(rows, owners[index].owner).end_line();
  }
  if (shown == owners.size()) return;
  rows.add_bytes(others).next_cell().add_share(others, live).next_cell();
  rows.add_count(static_cast<std::int64_t>(owners.size() - shown)).add(" further operations").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
