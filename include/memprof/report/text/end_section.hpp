#pragma once

#include <memprof/analysis/segments_by_name.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
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
[[nodiscard]] inline const segments_of_name* end_of_step(const std::vector<segments_of_name>& names) {
  std::int64_t most = 0;
  for (const segments_of_name& name : names) most = std::max(most, name.count);
  const segments_of_name* last = nullptr;
  for (const segments_of_name& name : names) {
    if (name.count < 3 || name.count < most / 2) continue;
    if (last == nullptr || name.last_number > last->last_number) last = &name;
  }
  return last;
}

/// What is live after each step, and how much that grows.
[[nodiscard]] page_section growth_section(const auto& names) {
  page_section section;
  section.heading = "Growth";
  const segments_of_name* const name = end_of_step(names);
  if (name == nullptr) return section;
  const value_summary& live = name->cumulative_current;
  page_line line;
  if (live.least == live.greatest) {
    line.add("0 B per step", emphasis::strong).add(": " + short_bytes(live.last) + " live after each ").add_name(name->name);
    line.add(" (" + grouped(name->count) + ")");
    section.lines.push_back(line);
    return section;
  }
  constexpr double clear = 0.9;  // share of the variation that a straight line must explain
  const std::string slope = signed_short_bytes(name->growth.per_step) + " per step";
  if (name->growth.r_squared >= clear) {
    line.add(slope, name->growth.per_step > 0 ? emphasis::caution : emphasis::strong);
  } else {
    line.add("no clear trend").add(" (" + slope + ", r\xc2\xb2 " + decimal(name->growth.r_squared, 2) + ")");
  }
  line.add("; live after ")
      .add_name(name->name)
      .add(": first " + short_bytes(live.first) + ", last " + short_bytes(live.last) + ", min " + short_bytes(live.least) +
           ", max " + short_bytes(live.greatest));
  section.lines.push_back(line);
  return section;
}

/// What is live at the end by operation, largest first; bytes outside every operation have an empty path.
[[nodiscard]] std::vector<std::pair<std::string_view, std::int64_t>> live_owners(const auto& source, const auto& space) {
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
  std::sort(owners.begin(), owners.end(), [](const auto& left, const auto& right) {
    return left.second != right.second ? left.second > right.second : left.first < right.first;
  });
  return owners;
}

/// What is live at the end and who owns it: the first `most` operations and the sum of all others. Categories only if
/// `with_categories`.
[[nodiscard]] page_section end_section(const auto& source, const auto& space, std::size_t most, bool with_categories) {
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
