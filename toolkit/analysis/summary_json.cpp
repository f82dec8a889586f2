#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/simulation_guesses.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/summary_json.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Greatest peak first.
std::vector<const space_profile*> spaces_by_peak(const profile& of) {
  std::vector<const space_profile*> spaces;
  for (const space_profile& space : of.spaces) spaces.push_back(&space);
  std::stable_sort(spaces.begin(), spaces.end(), [](const space_profile* left, const space_profile* right) {
    return left->cumulative_peak > right->cumulative_peak;
  });
  return spaces;
}

const segment* segment_with_peak(const profile& of, const space_profile& space) {
  const auto index = static_cast<std::size_t>(space.peak_segment);
  return space.peak_segment >= 0 && index < of.segments.size() ? &of.segments[index] : nullptr;
}

nlohmann::ordered_json summary_growth(const profile& of, const space_profile& space) {
  const vector<segments_of_name> names = segments_by_name(of, space);
  const segments_of_name* const name = end_of_step(names);
  if (name == nullptr) return nullptr;
  return {{"segment", name->name},
          {"steps", name->count},
          {"clear", is_constant(*name) || name->growth.r_squared >= clear_trend},
          {"bytes_per_step", is_constant(*name) ? 0 : name->growth.per_step},
          {"r_squared", name->growth.r_squared},
          {"first_bytes", name->cumulative_current.first},
          {"last_bytes", name->cumulative_current.last}};
}

nlohmann::ordered_json summary_space(const profile& of, const space_profile& space, const baseline_space& rows) {
  constexpr std::size_t most_summary_owners = 10;
  nlohmann::ordered_json owners = nlohmann::ordered_json::array();
  std::int64_t rest = space.cumulative_peak;
  for (const baseline_operation& row : rows.operations) {
    const std::int64_t bytes = row.all_held();
    if (owners.size() == most_summary_owners || bytes <= 0) break;
    owners.push_back({{"operation", text_or_null(row.operation)}, {"operations", row.operations}, {"bytes", bytes}});
    rest = subtract_saturating(rest, bytes);
  }
  nlohmann::ordered_json categories = nlohmann::ordered_json::array();
  for (const owned_bytes& each : space.live_at_peak.by_category)
    categories.push_back({{"category", each.owner}, {"bytes", each.bytes}});
  const segment* const at = segment_with_peak(of, space);
  const bool has_capacity = space.capacity > 0 && !space.capacity_is_per_core;
  return {{"space", space.name},
          {"peak_bytes", space.cumulative_peak},
          {"segment", at == nullptr ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(at->name)},
          {"step", at == nullptr || at->step < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(at->step)},
          {"operation", text_or_null(space.peak_operation)},
          {"owners", owners},
          {"other_owner_bytes", rest},
          {"categories", categories},
          {"capacity_bytes", has_capacity ? nlohmann::ordered_json(space.capacity) : nullptr},
          {"reserved_peak_bytes", space.reserved.peak},
          {"end_bytes", space.cumulative_current},
          {"growth", summary_growth(of, space)}};
}

/// By how much the results may be off whose sizes a simulated run had to assume; null: it assumed none.
[[nodiscard]] nlohmann::ordered_json assumed_sizes_json(const profile& of) {
  const assumptions guessed = assumptions_of(of);
  if (guessed.sizes == 0) return nullptr;
  std::int64_t too_few = 0;
  bool is_bounded = true;
  for_each_fact<assumed_size>(of.facts, [&](const assumed_size& row) {
    const std::optional<std::int64_t> of_row = bytes_too_few(row);
    is_bounded = is_bounded && of_row.has_value();
    too_few = add_saturating(too_few, of_row.value_or(0));
  });
  return {{"calls", guessed.sizes},
          {"bytes_too_many", guessed.size_bytes},
          {"bytes_too_few", is_bounded ? nlohmann::ordered_json(too_few) : nlohmann::ordered_json(nullptr)},
          {"operator", guessed.most.name},
          {"operation", text_or_null(guessed.most.operation)}};
}

}  // namespace
}  // namespace detail

std::string summary_sentence(const profile& of) {
  using namespace detail;
  if (of.spaces.empty()) return "nothing was recorded";
  const space_profile& space = *spaces_by_peak(of).front();
  std::string text = "peak " + short_and_exact_bytes(space.cumulative_peak) + " of " + on_one_line(space.name);
  if (const segment* const at = segment_with_peak(of, space)) text += " in " + on_one_line(at->name);
  if (!space.peak_operation.empty()) text += ", operation " + on_one_line(space.peak_operation);
  const vector<owned_bytes>& owners = space.live_at_peak.by_operation;
  if (!owners.empty() && space.cumulative_peak > 0) {
    text += "; " + (owners[0].owner.empty() ? std::string{outside_every_operation} : on_one_line(owners[0].owner)) + " held " +
            short_percent(owners[0].bytes, space.cumulative_peak);
  }
  if (space.capacity > 0 && !space.capacity_is_per_core) {
    const std::int64_t left = subtract_saturating(space.capacity, space.cumulative_peak);
    text += left < 0 ? "; does not fit: " + short_bytes(-left) + " over " + short_bytes(space.capacity)
                     : "; fits " + short_bytes(space.capacity) + " with " + short_bytes(left) + " left";
  }
  const vector<segments_of_name> names = segments_by_name(of, space);
  if (const segments_of_name* const name = end_of_step(names)) {
    text += grows(*name)         ? "; grows by " + short_bytes(name->growth.per_step) + " per step"
            : is_constant(*name) ? "; does not grow"
                                 : "; no clear growth";
  }
  return of.exact ? text : text + " (not exact)";
}

nlohmann::ordered_json summary_json(const profile& of) {
  constexpr std::size_t most_spaces = 8;
  const std::vector<const space_profile*> spaces = detail::spaces_by_peak(of);
  const run_baseline rows = reduced(baseline_of(of));
  nlohmann::ordered_json shown = nlohmann::ordered_json::array();
  for (const space_profile* const space : spaces) {
    if (shown.size() < most_spaces) shown.push_back(detail::summary_space(of, *space, *rows.find_space(space->name)));
  }
  return {{"format", summary_json_format},
          {"version", summary_json_version},
          {"verdict", summary_sentence(of)},
          {"caveats", remarks_on(of, spaces)},
          {"file", detail::text_or_null(of.provenance.file)},
          {"mode", to_string(of.mode)},
          {"exact", of.exact},
          {"complete", of.complete},
          {"assumed_sizes", detail::assumed_sizes_json(of)},
          {"device", detail::text_or_null(of.device)},
          {"duration_ns", of.duration_ns},
          {"steps", of.step_count},
          {"segments", detail::count_of_segments(of)},
          {"space_count", of.spaces.size()},
          {"spaces", shown}};
}

}  // namespace memprof::inline MEMPROF_ABI
