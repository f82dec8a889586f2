#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_replay.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The request that failed, and what the device had.
struct refused_request {
  std::int64_t limit = 0;  ///< 0: unknown
  std::int64_t bytes = 0;
  std::size_t end = 0;  ///< the number of steps before it
};

[[nodiscard]] setting_trial try_setting(const allocation_sequence& sequence, std::string setting,
                                        const refused_request& refused) {
  setting_trial trial;
  caching_allocator_options options = parse_cuda_alloc_conf(setting);
  trial.setting = std::move(setting);
  {
    detail::allocation_replay replay{sequence, options};
    (void)replay.run();
    trial.reserved_peak = replay.allocator().stats().reserved_bytes.peak;
  }
  if (refused.limit == 0) return trial;
  options.capacity = refused.limit;
  detail::allocation_replay replay{sequence, options};
  const std::uint16_t stream = refused.end == 0 ? 0 : static_cast<std::uint16_t>(sequence.steps()[refused.end - 1].stream);
  trial.serves_failure =
      replay.run_to(refused.end) == refused.end && replay.request(static_cast<std::uint64_t>(refused.bytes), stream) != nullptr;
  return trial;
}

/// The options of a setting, apart: commas in brackets belong to a value.
[[nodiscard]] std::vector<std::string> options_in(std::string_view setting) {
  std::vector<std::string> options{""};
  int depth = 0;
  for (const char letter : setting) {
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      options.emplace_back();
    } else {
      options.back() += letter;
    }
  }
  std::erase(options, "");
  return options;
}

/// Each option by itself, and those that the model knows to help in some programs.
[[nodiscard]] std::vector<std::string> candidates(std::string_view now, std::int64_t limit) {
  std::vector<std::string> all{"",
                               "expandable_segments:True",
                               "max_split_size_mb:32",
                               "max_split_size_mb:128",
                               "max_split_size_mb:512",
                               "roundup_power2_divisions:4",
                               "roundup_power2_divisions:8",
                               "expandable_segments:True,roundup_power2_divisions:8"};
  // Without a limit, nothing is collected.
  if (limit != 0) all.emplace_back("garbage_collection_threshold:0.8,per_process_memory_fraction:0.99");
  for (std::string& option : options_in(now)) all.push_back(std::move(option));
  std::vector<std::string> distinct;
  for (std::string& each : all) {
    if (each != now && std::find(distinct.begin(), distinct.end(), each) == distinct.end()) distinct.push_back(std::move(each));
  }
  return distinct;
}

[[nodiscard]] std::vector<setting_trial> try_others(const allocation_sequence& sequence, std::string_view now,
                                                    const refused_request& refused) {
  std::vector<setting_trial> trials;
  for (std::string& setting : candidates(now, refused.limit)) {
    try {
      trials.push_back(try_setting(sequence, std::move(setting), refused));
    } catch (const error&) {  // an option of the run's that makes no sense without the others
    }
  }
  std::stable_sort(trials.begin(), trials.end(), [](const setting_trial& left, const setting_trial& right) {
    if (left.serves_failure != right.serves_failure) return left.serves_failure.value_or(false);
    return left.reserved_peak < right.reserved_peak;
  });
  return trials;
}

/// What a snapshot of PyTorch says of its settings.
[[nodiscard]] std::optional<std::string> recorded_setting(const profile& of) {
  for (const torch_setting_fact& row : rows_of<torch_setting_fact>(of.facts)) {
    if (row.name == "PYTORCH_CUDA_ALLOC_CONF" || row.name == "PYTORCH_ALLOC_CONF") return row.value;
  }
  return std::nullopt;
}

[[nodiscard]] bool is_valid(const std::string& setting) {
  try {
    (void)caching_allocator{parse_cuda_alloc_conf(setting)};
    return true;
  } catch (const error&) {
    return false;
  }
}

/// The division in the model, with which a simulated run was made.
[[nodiscard]] recorded_fragmentation modelled(const allocation_sequence& sequence, const std::string& setting,
                                              const recorded_fragmentation& recorded, const refused_request& refused) {
  recorded_fragmentation result;
  caching_allocator_options options = parse_cuda_alloc_conf(setting);
  options.capacity = refused.limit;
  result.at_peak = {recorded.at_peak.event, 0, {}, fragmentation_at_peak(sequence, options)};
  if (!recorded.at_failure) return result;
  detail::allocation_replay replay{sequence, options};
  (void)replay.run_to(refused.end);
  (void)replay.request(static_cast<std::uint64_t>(refused.bytes), 0);  // which gives back what it can
  result.at_failure = {recorded.at_failure->event, recorded.at_failure->requested, {}, fragmentation_of(replay.allocator())};
  return result;
}

[[nodiscard]] refused_request refused_in(const allocation_sequence& sequence, const recorded_fragmentation& found,
                                         const space_profile& space) {
  if (!found.at_failure || space.out_of_memory.empty()) return {};
  const out_of_memory_failure& failed = space.out_of_memory.front();
  const auto& steps = sequence.steps();
  const auto end = std::partition_point(steps.begin(), steps.end(),
                                        [&](const allocation_step& step) { return step.event < found.at_failure->event; });
  const std::int64_t limit = failed.device_free < 0 ? 0 : failed.reserved_bytes + failed.device_free;
  return {limit, failed.requested, static_cast<std::size_t>(end - steps.begin())};
}

/// The setting that reserves most nearly as much as was recorded; of equals, the defaults.
[[nodiscard]] std::string likely_setting(const allocation_sequence& sequence, std::int64_t reserved,
                                         const refused_request& refused) {
  const auto distance = [&](const setting_trial& trial) { return std::abs(trial.reserved_peak - reserved); };
  const setting_trial defaults = try_setting(sequence, "", {});
  const setting_trial expandable = try_setting(sequence, "expandable_segments:True", {});
  // A device that was full reserved less than there was need for.
  if (refused.limit != 0) return "";
  return distance(expandable) < distance(defaults) ? expandable.setting : "";
}

[[nodiscard]] bool is_worth_a_verdict(const recorded_fragmentation& found) noexcept {
  const auto is_notable = [](const fragmentation& parts) { return is_notable_gap(parts.unused(), parts.reserved); };
  return is_notable(found.at_peak.parts) || (found.at_failure && is_notable(found.at_failure->parts));
}

}  // namespace

const setting_trial* reserved_causes::help() const noexcept {
  if (trials.empty()) return nullptr;
  const setting_trial& first = trials.front();
  const bool rescues = first.serves_failure.value_or(false) && !as_it_was.serves_failure.value_or(false);
  const bool saves = is_notable_gap(as_it_was.reserved_peak - first.reserved_peak, as_it_was.reserved_peak);
  return rescues || saves ? &first : nullptr;
}

std::vector<setting_trial> try_settings(const allocation_sequence& sequence, std::string_view now, std::int64_t limit,
                                        std::int64_t failed, std::size_t end) {
  return try_others(sequence, now, {limit, failed, end});
}

std::optional<reserved_causes> reserved_causes_in(const trace_source_view& source, const profile& of,
                                                  const space_profile& space) {
  if (space.reserved.peak == 0) return std::nullopt;
  reserved_causes causes;
  causes.space = space.name;
  const std::optional<std::string> recorded = recorded_setting(of);
  causes.is_setting_recorded = recorded && is_valid(*recorded);
  if (causes.is_setting_recorded) causes.setting = *recorded;
  const std::optional<recorded_fragmentation> found = fragmentation_in(source, space.name, parse_cuda_alloc_conf(causes.setting));
  if (!found || !is_worth_a_verdict(*found)) return std::nullopt;
  causes.found = *found;

  allocation_sequence sequence{std::string_view{space.name}};
  source.visit(sequence);
  causes.is_modelled = found->outside > (found->at_peak.parts.live + found->outside) / 100;
  causes.is_too_long = sequence.steps().size() > most_replayed_steps;
  if (causes.is_too_long) return causes.is_modelled ? std::nullopt : std::optional{causes};
  const refused_request refused = refused_in(sequence, *found, space);
  if (!causes.is_setting_recorded) causes.setting = likely_setting(sequence, space.reserved.peak, refused);
  causes.as_it_was = try_setting(sequence, causes.setting, refused);
  if (causes.is_modelled) causes.found = modelled(sequence, causes.setting, *found, refused);
  if (!is_worth_a_verdict(causes.found)) return std::nullopt;
  causes.trials = try_others(sequence, causes.setting, refused);
  return causes;
}

namespace {

/// Whether the causes can be notable, by the profile alone: what is unused at the peak is at least what was never live.
bool may_be_notable(const space_profile& space) {
  const auto is_notable = [](std::int64_t reserved, std::int64_t live) {
    return reserved > 0 && is_notable_gap(detail::subtract_saturating(reserved, live), reserved);
  };
  return is_notable(space.reserved.peak, space.cumulative_peak) ||
         (!space.out_of_memory.empty() &&
          is_notable(space.out_of_memory.front().reserved_bytes, space.out_of_memory.front().live_bytes));
}

}  // namespace

std::vector<reserved_causes> all_reserved_causes_in(const trace_source_view& source, const profile& of) {
  constexpr std::size_t most_spaces = 4;
  std::vector<const space_profile*> spaces;
  for (const space_profile& space : of.spaces) {
    if (may_be_notable(space)) spaces.push_back(&space);
  }
  std::stable_sort(spaces.begin(), spaces.end(),
                   [](const auto* left, const auto* right) { return left->reserved.peak > right->reserved.peak; });
  if (spaces.size() > most_spaces) spaces.resize(most_spaces);
  std::vector<reserved_causes> all;
  for (const space_profile* space : spaces) {
    std::optional<reserved_causes> found = reserved_causes_in(source, of, *space);
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace memprof::inline MEMPROF_ABI
