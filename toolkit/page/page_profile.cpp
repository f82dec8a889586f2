#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/page_profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr std::size_t max_page_segments = 512;

constexpr std::size_t max_page_live_sets = 64;  ///< of segments, per space

/// Live bytes at a segment's peak, including blocks of earlier segments.
[[nodiscard]] std::int64_t live_at_peak_of(const segment_usage& usage) noexcept {
  return usage.cumulative_current - usage.segment_change + usage.segment_peak;
}

/// The segments that a page keeps, ascending: all or, if they are too many, the first and the last, those with a peak of the run,
/// and the greatest of each name.
[[nodiscard]] std::vector<std::size_t> segments_for_page(const profile& of) {
  const std::size_t count = of.segments.size();
  std::set<std::size_t> kept;
  const auto keep = [&](std::size_t index) {
    if (kept.size() < max_page_segments) kept.insert(index);
  };
  if (count <= max_page_segments) {
    for (std::size_t index = 0; index < count; ++index) keep(index);
    return {kept.begin(), kept.end()};
  }
  for (std::size_t index = 0; index < max_page_segments / 4; ++index) {
    keep(index);
    keep(count - 1 - index);
  }
  for (const space_profile& space : of.spaces) {
    if (space.peak_segment >= 0) keep(static_cast<std::size_t>(space.peak_segment));
  }
  for (const memory_profile& memory : of.memories) {
    if (memory.peak_segment >= 0) keep(static_cast<std::size_t>(memory.peak_segment));
  }
  for (const space_profile& space : of.spaces) {
    struct greatest {
      std::size_t by_peak;
      std::size_t by_current;
    };
    std::map<std::string_view, greatest> of_name;
    for (std::size_t index = 0; index < space.segments.size(); ++index) {
      const segment_usage& usage = space.segments[index];
      greatest& best = of_name.try_emplace(usage.segment, greatest{index, index}).first->second;
      if (usage.segment_peak > space.segments[best.by_peak].segment_peak) best.by_peak = index;
      if (usage.cumulative_current > space.segments[best.by_current].cumulative_current) best.by_current = index;
    }
    for (const auto& [name, best] : of_name) {
      keep(best.by_peak);
      keep(best.by_current);
    }
  }
  return {kept.begin(), kept.end()};
}

/// Removes all other segments from a profile. Indices of segments are those of the rows that are left; of the others -1.
void keep_segments(profile& of, const std::vector<std::size_t>& kept) {
  const auto cut = [&](auto& rows) {
    if (rows.empty()) return;  // not all spaces have all tables
    std::size_t to = 0;
    for (const std::size_t index : kept) {
      if (to != index) rows[to] = std::move(rows[index]);
      ++to;
    }
    rows.resize(to);
  };
  const auto move_index = [&](std::int64_t& index) {
    if (index < 0) return;
    const auto place = std::lower_bound(kept.begin(), kept.end(), static_cast<std::size_t>(index));
    index = place != kept.end() && *place == static_cast<std::size_t>(index) ? place - kept.begin() : -1;
  };
  cut(of.segments);
  for (space_profile& space : of.spaces) {
    cut(space.segments);
    cut(space.cores.segments);
    cut(space.reserved.segments);
    cut(space.active.segments);
    move_index(space.peak_segment);
    move_index(space.first_shortfall.segment);
    for (auto& failure : space.out_of_memory) move_index(failure.segment);
  }
  for (memory_profile& memory : of.memories) move_index(memory.peak_segment);
}

}  // namespace

page_segments cut_segments(profile& of) {
  const std::vector<std::size_t> kept = segments_for_page(of);
  page_segments result{kept, std::max(of.segments.size(), static_cast<std::size_t>(of.segment_count))};
  keep_segments(of, kept);
  // A profile keeps some segments of a long run, numbered as in the run.
  for (std::size_t index = 0; index < of.segments.size(); ++index) {
    if (of.segments[index].number >= 0) result.numbers[index] = static_cast<std::size_t>(of.segments[index].number);
  }
  return result;
}

nlohmann::ordered_json profile_for_page(const profile& of) {
  nlohmann::ordered_json document = to_json(of);
  for (std::size_t index = 0; index < of.spaces.size(); ++index) {
    const vector<segment_usage>& segments = of.spaces[index].segments;
    if (segments.size() <= max_page_live_sets) continue;
    std::vector<std::int64_t> greatest(segments.size());
    std::transform(segments.begin(), segments.end(), greatest.begin(), live_at_peak_of);
    std::nth_element(greatest.begin(), greatest.begin() + max_page_live_sets, greatest.end(), std::greater{});
    const std::int64_t limit = greatest[max_page_live_sets];
    std::size_t left = max_page_live_sets;
    for (std::size_t segment = 0; segment < segments.size(); ++segment) {
      const bool has_set = live_at_peak_of(segments[segment]) > limit && left > 0;
      if (has_set) {
        --left;
      } else {
        document["spaces"][index]["segments"][segment]["live_at_peak"] = nullptr;
      }
    }
  }
  return document;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
