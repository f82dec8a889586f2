#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The answers: does memory grow from step to step, what is live at the end, and who owns it.

namespace memprof::inline MEMPROF_ABI::detail {

/// The name that ends a step: of the names that occur in most steps, the one that occurred last. Null if no name occurs three
/// times, the fewest points that show a trend.
[[nodiscard, gnu::cold]] inline const segments_of_name* end_of_step(const std::vector<segments_of_name>& names) {
  std::int64_t most = 0;
  for (const segments_of_name& name : names) most = std::max(most, name.count);
  const segments_of_name* last = nullptr;
  for (const segments_of_name& name : names) {
    if (name.count < 3 || name.count < most / 2) continue;
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

/// "+1.00 KiB per step in cpu; live after STEP: first 1.00 KiB, last 0.977 MiB"; `place` is " in cpu" or empty.
[[nodiscard, gnu::cold]] inline page_line growth_line_of(const segments_of_name& name, const page_line& place) {
  const value_summary& live = name.cumulative_current;
  page_line line;
  if (is_constant(name)) {
    line.add("0 B per step", emphasis::strong).append(place).add(": " + short_bytes(live.last) + " live after each ");
    return line.add_name(name.name).add(" (" + grouped(name.count) + ")");
  }
  const std::string slope = signed_short_bytes(name.growth.per_step) + " per step";
  if (name.growth.r_squared >= clear_trend) {
    line.add(slope, grows(name) ? emphasis::caution : emphasis::strong).append(place);
  } else {
    line.add("no clear trend").append(place).add(" (" + slope + ", r\xc2\xb2 " + decimal(name.growth.r_squared, 2) + ")");
  }
  line.add("; live after ").add_name(name.name);
  return line.add(": first " + short_bytes(live.first) + ", last " + short_bytes(live.last));
}

/// What is live after each step, and how much that grows: in the first of `spaces`, named if `names_space`, and in those of the
/// others that grow, the fastest first. At most `most` others have a line; the rest is counted.
[[nodiscard, gnu::cold]] page_section growth_section(const auto& source, const std::vector<const space_profile*>& spaces,
                                                     bool names_space, std::size_t most) {
  page_section section;
  section.heading = "Growth";
  const auto place_of = [](const space_profile& space) { return page_line{" in "}.add_name(space.name); };
  std::vector<segments_of_name> growing;
  std::vector<const space_profile*> spaces_of_growing;
  for (const space_profile* const space : spaces) {
    const std::vector<segments_of_name> names = segments_by_name(source, *space);
    const segments_of_name* const name = end_of_step(names);
    if (name == nullptr) continue;
    if (space != spaces.front()) {
      if (grows(*name)) {
        growing.push_back(*name);
        spaces_of_growing.push_back(space);
      }
      continue;
    }
    const value_summary& live = name->cumulative_current;
    page_line line = growth_line_of(*name, names_space ? place_of(*space) : page_line{});
    const auto add_extreme = [&](const char* what, std::int64_t value) {
      if (!is_constant(*name) && value != live.first && value != live.last) line.add(what + short_bytes(value));
    };
    add_extreme(", min ", live.least);
    add_extreme(", max ", live.greatest);
    section.lines.push_back(line);
  }
  std::vector<std::size_t> order(growing.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  sort_rows(order.data(), order.size(), [&](std::size_t left, std::size_t right) {
    const double growth_of_left = growing[left].growth.per_step;
    const double growth_of_right = growing[right].growth.per_step;
    return growth_of_left != growth_of_right ? growth_of_left > growth_of_right : left < right;
  });
  const std::size_t shown = std::min(most, order.size());
  for (std::size_t index = 0; index < shown; ++index) {
    section.lines.push_back(growth_line_of(growing[order[index]], place_of(*spaces_of_growing[order[index]])));
  }
  if (shown != 0 && shown < order.size()) {
    const auto left_out = static_cast<std::int64_t>(order.size() - shown);
    section.lines.back().add("; " + grouped(left_out, "more grows", "more grow"));
  }
  return section;
}

/// What is live at the end by operation, largest first; bytes outside every operation have an empty path.
[[nodiscard, gnu::cold]] std::vector<std::pair<std::string_view, std::int64_t>> live_owners(const auto& source,
                                                                                            const auto& space) {
  std::vector<std::pair<std::string_view, std::int64_t>> owners;
  std::int64_t outside = space.cumulative_current;
  for (const auto& operation : source.operations) {
    for (const auto& usage : operation.usage) {
      if (usage.space != space.name || usage.live == 0) continue;
      owners.emplace_back(operation.path, usage.live);
      outside = subtract_saturating(outside, usage.live);
    }
  }
  if (outside > 0) owners.emplace_back(std::string_view{}, outside);
  sort_rows(owners.data(), owners.size(), [](const auto& left, const auto& right) {
    return left.second != right.second ? left.second > right.second : left.first < right.first;
  });
  return owners;
}

/// What is live at the end and who owns it: the first `most` operations and the sum of all others. Categories only if
/// `with_categories`.
[[nodiscard, gnu::cold]] page_section end_section(const auto& source, const auto& space, std::size_t most, bool with_categories) {
  page_section section;
  section.heading = source.complete ? "At end" : "Now";
  const std::int64_t live = space.cumulative_current;
  if (live == 0) {
    section.lines.emplace_back("nothing live");
    return section;
  }
  const std::vector<std::pair<std::string_view, std::int64_t>> owners = live_owners(source, space);
  page_line line{short_and_exact_bytes(live) + " live"};
  if (owners.size() == 1) {
    line.add(", all of it from ").append(owner_name(owners.front().first));
  }
  section.lines.push_back(line);
  if (with_categories && has_categories(space.current_by_category))
    section.lines.push_back(category_line(space.current_by_category, live));
  if (owners.size() == 1) return section;
  section.table.columns = {{"Bytes", true}, {"Share", true}, {"Operation", false}};
  // A row that stands for a single operation would say less than the operation itself.
  const std::size_t shown = owners.size() == most + 1 ? owners.size() : std::min(most, owners.size());
  std::int64_t others = 0;
  for (std::size_t index = 0; index < owners.size(); ++index) {
    if (index >= shown) {
      others = add_saturating(others, owners[index].second);
      continue;
    }
    section.table.rows.push_back(
        {short_bytes(owners[index].second), short_percent(owners[index].second, live), owner_name(owners[index].first)});
  }
  if (shown < owners.size()) {
    section.table.rows.push_back({short_bytes(others), short_percent(others, live),
                                  grouped(static_cast<std::int64_t>(owners.size() - shown)) + " further operations"});
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
