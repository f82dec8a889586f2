#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_frames.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/step_survey.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The steps that get a frame of their own, the most important first: the one with the peak, the first, the last, and one of each
/// pattern. Empty if the frame of the whole run shows a step well enough.
[[nodiscard]] std::vector<single_step> steps_with_frames(const run_survey& survey, const std::vector<std::uint8_t>& spaces,
                                                         const profile& of, const frame_limits& limits) {
  constexpr std::size_t least_buckets = 64;
  const step_survey& steps = survey.steps();
  if (steps.rows().empty() || survey.event_count() <= limits.buckets || steps.step_count() * least_buckets <= limits.buckets)
    return {};
  std::size_t largest = 0;
  for (std::size_t index = 0; index < spaces.size(); ++index) {
    if (of.spaces[index].cumulative_peak > of.spaces[largest].cumulative_peak) largest = index;
  }
  std::vector<single_step> chosen;
  const std::size_t max_frames = spaces.size() <= 4 ? 16 : std::max<std::size_t>(64 / spaces.size(), 1);
  const auto choose = [&](const single_step& step) {
    const bool is_chosen =
        std::any_of(chosen.begin(), chosen.end(), [&](const single_step& each) { return each.number == step.number; });
    if (!is_chosen && chosen.size() < max_frames) chosen.push_back(step);
  };
  if (!spaces.empty() && !steps.highest(spaces[largest]).peaks.empty()) choose(steps.highest(spaces[largest]));
  choose(steps.first());
  choose(steps.last());
  std::vector<std::size_t> by_frequency(steps.patterns().size());
  for (std::size_t index = 0; index < by_frequency.size(); ++index) by_frequency[index] = index;
  std::stable_sort(by_frequency.begin(), by_frequency.end(), [&](std::size_t left, std::size_t right) {
    return steps.patterns()[left].steps > steps.patterns()[right].steps;
  });
  for (const std::size_t index : by_frequency) choose(steps.first_of_pattern()[index]);
  return chosen;
}

}  // namespace

std::vector<page_frame> frames_for_page(const run_survey& survey, const std::vector<std::uint8_t>& spaces,
                                        const page_owners& owners, const profile& of) {
  const frame_limits limits = frame_limits{}.for_spaces(spaces.size());
  const frame_limits limits_of_step = frame_limits{1024, 4000, 4000}.for_spaces(spaces.size());
  std::vector<page_frame> frames;
  std::vector<page_frame::space_outline> outlines(spaces.size());
  for (std::size_t index = 0; index < spaces.size(); ++index) {
    outlines[index] = {owners.of_space(spaces[index]).size(), of.spaces[index].cumulative_peak, survey.activity(spaces[index])};
  }
  const std::uint64_t begin = survey.fold().info().begin_stamp;
  const moment end{survey.event_count(), std::max(survey.last_stamp(), begin)};
  frames.emplace_back(moment{0, begin}, end, -1, outlines, limits);
  for (const single_step& step : steps_with_frames(survey, spaces, of, limits)) {
    for (std::size_t index = 0; index < spaces.size(); ++index) {
      const std::size_t id = spaces[index];
      outlines[index].peak = id < step.peaks.size() ? step.peaks[id] : 0;
      outlines[index].activity = id < step.activity.size() ? step.activity[id] : 0;
    }
    const auto row = static_cast<std::int64_t>(survey.steps().row_of(step));
    frames.emplace_back(step.begin, step.end, row, outlines, limits_of_step);
  }
  return frames;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
