#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>
#include <memprof/profile/operation_profile.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/check_limits.hpp>
#include <memprof/report/check_writer.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Limits as functions of a profile, for tests: is the peak low enough, does memory grow, does a scope allocate or leave
/// anything. All take time linear in the profile and throw nothing but what strings throw. What a limit names and the profile
/// lacks fails: a misspelt name must not let a test pass.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

[[gnu::cold]] inline void check_segment_peak(const profile& source, const space_profile& space, const peak_limit& limit,
                                             check_writer& writer) {
  vector<std::string_view> known;
  const vector<segments_of_name> names = segments_by_name(source, space);
  for (const segments_of_name& name : names) {
    known.push_back(name.name);
    if (name.name != limit.segment) continue;
    const live_set* greatest = nullptr;
    for (std::size_t index = 0; index < std::min(source.segments.size(), space.segments.size()); ++index) {
      const live_set& live = space.segments[index].live_at_peak;
      if (source.segments[index].name == limit.segment && (greatest == nullptr || live.bytes > greatest->bytes)) greatest = &live;
    }
    writer.judge("peak of " + on_one_line(space.name) + " in " + on_one_line(name.name), name.peak_live_bytes.greatest,
                 limit.at_most, greatest == nullptr ? std::string{} : largest_owners(*greatest));
    return;
  }
  writer.fail_missing("segment", limit.segment, known);
}

/// The growth of a space in which no operation grows by itself, as where each step has operations of its own: judged by the same
/// rule, which needs all steps.
[[nodiscard, gnu::cold]] inline double growth_without_owner(const profile& source, const space_profile& space,
                                                            const segments_of_name& name) {
  std::array<part_bytes, step_ends::max_parts> parts;
  std::size_t count = 0;
  for (std::size_t index = 0; index < std::min(source.segments.size(), space.segments.size()); ++index) {
    if (source.segments[index].name != name.name) continue;
    if (count == parts.size()) return 0;
    const std::int64_t live = std::max<std::int64_t>(0, space.segments[index].cumulative_current);
    parts[count++] = {live, live};
  }
  if (static_cast<std::int64_t>(count) != name.count) return 0;
  const growth_stretch trend = judge_parts(parts.data(), count);
  return trend.kind == growth_kind::grows ? static_cast<double>(trend.bytes) / static_cast<double>(trend.end - trend.start) : 0;
}

[[gnu::cold]] inline void check_growth_of(const profile& source, const space_profile& space, std::int64_t at_most,
                                          check_writer& writer) {
  constexpr std::int64_t least_steps = 8;
  const std::string what = on_one_line(space.name);
  const vector<segments_of_name> names = segments_by_name(source, space);
  const segments_of_name* const name = end_of_step(names);
  if (name == nullptr || name->count < least_steps) {
    writer.fail("growth of " + what + " cannot be judged: at least eight steps are needed, each with a segment of one name");
    return;
  }
  std::string who;
  if (!space.growing.empty()) {
    const std::string& owner = space.growing.front().owner;
    who = owner.empty() ? "what is outside every operation" : on_one_line(owner);
  }
  const double per_step = who.empty() ? growth_without_owner(source, space, *name) : growth_of_owners(space);
  const std::string rate = growth_rate(per_step) + " per step";
  if (!who.empty() && stays_or_falls(is_constant(*name), name->growth)) {
    writer.pass(what + " does not grow: " + who + " does, by " + rate + ", and as much or more of other memory is freed");
  } else if (per_step <= static_cast<double>(at_most)) {
    writer.pass(what + " grows by " + rate + ", within " + short_bytes(at_most));
  } else {
    writer.fail(what + " grows by " + rate + (who.empty() ? "" : ", most of it by " + who) + ", over " + short_bytes(at_most) +
                "; live after " + on_one_line(name->name) + ": first " + short_and_exact_bytes(name->cumulative_current.first) +
                ", last " + short_and_exact_bytes(name->cumulative_current.last));
  }
}

/// The operations with the most allocations.
[[nodiscard, gnu::cold]] inline std::string most_allocating(vector<owned_bytes>& owners) {
  constexpr std::size_t most = 3;
  std::stable_sort(owners.begin(), owners.end(),
                   [](const owned_bytes& left, const owned_bytes& right) { return left.blocks > right.blocks; });
  std::string text;
  for (std::size_t index = 0; index < std::min(most, owners.size()); ++index) {
    const owned_bytes& owner = owners[index];
    text += (index == 0 ? ": " : ", ") + on_one_line(owner.owner) + " " + grouped(owner.blocks) + " (" +
            short_bytes(owner.bytes) + ")";
  }
  return text;
}

}  // namespace detail

/// Whether the peak is at most `limit.at_most` bytes.
///
/// @code
/// REQUIRE(memprof::check_peak(capture.profile(), {.space = "cpu", .at_most = 64_MiB}));
/// @endcode
[[nodiscard, gnu::cold]] inline check_result check_peak(const profile& source, const peak_limit& limit) {
  detail::check_writer writer{source};
  if (!limit.operation.empty() && !limit.segment.empty()) {
    writer.fail("a limit for both segment '" + detail::on_one_line(limit.segment) + "' and operation '" +
                detail::on_one_line(limit.operation) + "': name one of them");
    return writer.result();
  }
  if (!limit.operation.empty() && !detail::require_operation(source, limit.operation, writer)) return writer.result();
  if (source.spaces.empty() && limit.space.empty() && detail::require_segment(source, limit.segment, writer))
    writer.pass("no allocation was recorded");
  detail::for_each_checked_space(source, limit.space, writer, [&](const space_profile& space) {
    if (!limit.operation.empty()) {
      std::int64_t peak = 0;
      for (const operation_usage& usage : source.find_operation(limit.operation)->usage) {
        if (usage.space == space.name) peak = usage.peak;
      }
      writer.judge("peak of operation " + detail::on_one_line(limit.operation) + " in " + detail::on_one_line(space.name), peak,
                   limit.at_most);
    } else if (!limit.segment.empty()) {
      detail::check_segment_peak(source, space, limit, writer);
    } else {
      writer.judge("peak of " + detail::on_one_line(space.name), space.cumulative_peak, limit.at_most,
                   detail::largest_owners(space.live_at_peak));
    }
  });
  return writer.result();
}

/// Whether what is live at the ends of the steps grows by at most `limit.at_most` bytes per step. Only a clear trend counts: what
/// rises and falls again, or is made once in the first steps, is none.
[[nodiscard, gnu::cold]] inline check_result check_growth(const profile& source, const growth_limit& limit = {}) {
  detail::check_writer writer{source};
  if (source.spaces.empty() && limit.space.empty()) writer.fail("growth cannot be judged: no allocation was recorded");
  detail::for_each_checked_space(source, limit.space, writer, [&](const space_profile& space) {
    detail::check_growth_of(source, space, limit.at_most, writer);
  });
  return writer.result();
}

/// Whether there were at most `limit.at_most` allocations. A capture in which nothing was recorded has none.
[[nodiscard, gnu::cold]] inline check_result check_allocations(const profile& source, const allocation_limit& limit = {}) {
  detail::check_writer writer{source};
  const bool is_missing = !limit.operation.empty() && !detail::require_operation(source, limit.operation, writer);
  if (is_missing) return writer.result();
  std::int64_t count = 0;
  vector<owned_bytes> owners;
  const auto add = [&](const std::string& path, std::int64_t bytes, std::int64_t allocations) {
    if (allocations == 0) return;
    count = detail::add_saturating(count, allocations);
    owners.push_back({path, bytes, allocations});
  };
  if (limit.operation.empty()) {
    const auto add_space = [&](const space_profile& space) {
      add("in " + space.name, space.allocations, space.allocation_count);
    };
    if (source.spaces.empty()) {
      writer.pass("no allocation was recorded");
    } else {
      detail::for_each_checked_space(source, limit.space, writer, add_space);
    }
  } else {
    detail::for_each_usage_within(source, limit.operation, limit.space,
                                  [&](const operation_profile& operation, const operation_usage& usage) {
                                    add(operation.path, usage.self_allocated, usage.allocation_count);
                                  });
  }
  const std::string where = limit.operation.empty() ? std::string{} : " in operation " + detail::on_one_line(limit.operation);
  const std::string found =
      detail::grouped(count, "allocation", "allocations") + where + ", at most " + detail::grouped(limit.at_most);
  if (count <= limit.at_most) {
    writer.pass(found);
  } else {
    writer.fail(found + " allowed" + detail::most_allocating(owners));
  }
  return writer.result();
}

/// Whether at most `limit.at_most` bytes were left behind; with 0, whether all that was allocated was freed.
[[nodiscard, gnu::cold]] inline check_result check_leftover(const profile& source, const leftover_limit& limit = {}) {
  detail::check_writer writer{source};
  if (!limit.operation.empty() && !detail::require_operation(source, limit.operation, writer)) return writer.result();
  if (source.spaces.empty() && limit.space.empty()) writer.pass("no allocation was recorded");
  detail::for_each_checked_space(source, limit.space, writer, [&](const space_profile& space) {
    const std::string in_space = " in " + detail::on_one_line(space.name);
    if (limit.operation.empty()) {
      writer.judge("what is live at the end" + in_space, std::max<std::int64_t>(0, space.cumulative_current), limit.at_most);
      return;
    }
    std::int64_t live = 0;
    std::int64_t greatest = 0;
    detail::for_each_usage_within(source, limit.operation, space.name,
                                  [&](const operation_profile& operation, const operation_usage& usage) {
                                    live = detail::add_saturating(live, usage.live);
                                    if (operation.path == limit.operation) greatest = usage.max_delta;
                                  });
    writer.judge("what operation " + detail::on_one_line(limit.operation) + " left" + in_space, std::max(live, greatest),
                 limit.at_most);
  });
  return writer.result();
}

}  // namespace memprof::inline MEMPROF_ABI
