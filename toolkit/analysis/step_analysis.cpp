#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/folded_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/analysis/reserved_causes_text.hpp>
#include <memprof/toolkit/analysis/step_analysis.hpp>
#include <memprof/trace/device_description.hpp>

#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The index of the space that reports lead with.
std::size_t leading_space(const profile& of) {
  if (of.spaces.empty()) detail::raise("the profile has no memory space: nothing was recorded");
  const space_profile* const leading = detail::primary_space(of, {});
  return leading == nullptr ? 0 : static_cast<std::size_t>(leading - of.spaces.data());
}

std::vector<std::size_t> spaces_asked_for(const profile& of, const std::string& asked) {
  const std::size_t leading = leading_space(of);
  if (asked.empty()) return {leading};
  if (asked != "all") return {static_cast<std::size_t>(&of.space(asked) - of.spaces.data())};
  std::vector<std::size_t> all(of.spaces.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

breakdown_options sizes_for(const step_question& question, const profile& of, std::size_t index) {
  const bool is_leading = index == leading_space(of);
  breakdown_options sizes = question.sizes;
  if (question.space == "all" && !is_leading) sizes.device_memory.reset();
  if (!question.device) return sizes;
  const device_space* memory = question.device->find_space(of.spaces[index].name);
  if (memory == nullptr && is_leading) memory = &question.device->tensor_space();
  if (memory != nullptr && memory->capacity != 0 && !memory->is_per_core) sizes.device_memory = memory->capacity;
  return sizes;
}

/// The lines folded, and what has no blank to fold at, as rules and long names, shortened; 0: as they are.
std::string fitted_to_columns(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string{text};
  std::string lines;
  const std::string folded = detail::folded(text, columns);
  for (std::string_view rest = folded; !rest.empty();) {
    std::string_view line = detail::take_until('\n', rest);
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    const bool is_rule = line.find_first_not_of('=') == line.npos;
    lines += is_rule ? std::string{line.substr(0, columns)} : detail::shortened(line, columns);
    lines += '\n';
  }
  return lines;
}

}  // namespace

std::vector<analyzed_space> analyze_spaces(profile of, const step_question& question) {
  const auto shared = std::make_shared<const profile>(std::move(of));
  std::vector<analyzed_space> analyzed;
  for (const std::size_t index : spaces_asked_for(*shared, question.space))
    analyzed.push_back({shared, index, break_down(*shared, shared->spaces[index], sizes_for(question, *shared, index))});
  return analyzed;
}

std::optional<bool> all_fit(const std::vector<analyzed_space>& analyzed) {
  std::optional<bool> fit;
  for (const analyzed_space& each : analyzed) {
    if (each.breakdown.device_memory) fit = fit.value_or(true) && each.breakdown.fits().value_or(false);
  }
  return fit;
}

std::string to_text(const step_analysis& of, const breakdown_options& sizes, std::size_t columns) {
  std::string text = fitted_to_columns(to_text(of.spaces, sizes), columns);
  text_options options;
  if (columns != 0) options.columns = columns;
  for (const file_causes& each : of.causes) {
    text += '\n' + fitted_to_columns(detail::on_one_line(each.file) + '\n', columns);
    for (const reserved_causes& space : each.spaces) text += to_text(space, options);
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
