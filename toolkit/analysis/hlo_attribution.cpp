#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

hlo_class_rules default_hlo_class_rules() {
  constexpr auto kind = std::regex::ECMAScript | std::regex::optimize;
  hlo_class_rules rules;
  rules.classes.push_back(
      {"kv_cache", hlo_group::parameter, std::regex{R"(^init_carry\[[23]\]$)", kind}, category::kv_cache, true});
  rules.classes.push_back({"model_params", hlo_group::parameter, std::regex{R"(^params\[')", kind}, category::parameter, true});
  rules.classes.push_back(
      {"other_carry_state", hlo_group::parameter, std::regex{R"(^init_carry\[)", kind}, category::other, false});
  rules.classes.push_back({"other_parameter", hlo_group::parameter, std::regex{""}, category::input, false});
  rules.markers =
      std::regex{R"(\bgrad(ient)?s?\b|backward|optimizer|adam|momentum|rmsprop|weight_decay)", kind | std::regex::icase};
  return rules;
}

namespace detail {

bool is_found(const std::regex& pattern, std::string_view text) {
  constexpr std::size_t longest = 2048;
  text = text.substr(0, longest);
  return std::regex_search(text.begin(), text.end(), pattern);
}

}  // namespace detail

std::size_t class_of(const hlo_class_rules& rules, hlo_group group, std::string_view op_name) {
  const auto found = std::find_if(rules.classes.begin(), rules.classes.end(), [&](const hlo_class_rule& rule) {
    return (!rule.group || *rule.group == group) && detail::is_found(rule.op_name, op_name);
  });
  return static_cast<std::size_t>(found - rules.classes.begin());
}

category category_of(const hlo_class_rules& rules, hlo_group group, std::string_view op_name) {
  const std::size_t found = class_of(rules, group, op_name);
  if (found < rules.classes.size()) return rules.classes[found].category;
  return group == hlo_group::temporary ? category::temporary : group == hlo_group::parameter ? category::input : category::other;
}

namespace detail {
namespace {

/// Compares the sums of rows with those of the simulation.
void check_sums(const hlo_memory& memory, hlo_attribution& found) {
  const heap_simulation& simulated = found.simulation;
  std::int64_t rows = found.small;
  for (const std::int64_t bytes : found.groups) rows += bytes;
  const std::int64_t missing = simulated.peak - rows;
  if (std::abs(missing) > simulated.peak / 1'000'000 + 1024) {
    // Memory that lives from begin to end counts with its allocation, but its row counts with the largest value in it.
    std::int64_t unused = 0;
    for (const hlo_live_buffer& live : simulated.live_at_peak) {
      const hlo_buffer& buffer = memory.program().buffers[live.owner];
      if (live.is_indefinite) unused += memory.program().allocations[buffer.allocation].bytes - buffer.bytes;
    }
    const std::string sums = "blocks at the peak add up to " + std::to_string(rows) + " bytes, but the peak is " +
                             std::to_string(simulated.peak) + ": ";
    found.remarks.push_back(
        sums + (missing == unused ? "allocations are larger than the largest value in them" : "the program contradicts itself"));
  }
  const std::int64_t parameters = simulated.parameters - found.group(hlo_group::parameter);
  if (parameters < 0 || parameters > found.small)
    found.remarks.push_back("listed parameters add up to " + std::to_string(found.group(hlo_group::parameter)) +
                            " bytes, but the allocations of parameters to " + std::to_string(simulated.parameters) +
                            ": more is missing than small blocks hold");
}

}  // namespace
}  // namespace detail

hlo_attribution attribute(const hlo_memory& memory, std::int64_t space, const hlo_class_rules& rules) {
  hlo_attribution found;
  found.simulation = memory.simulate(space);
  found.classes.resize(rules.classes.size());
  for (const hlo_live_buffer& live : found.simulation.live_at_peak) {
    const std::int64_t bytes = memory.program().buffers[live.shown].bytes;
    if (bytes < small_hlo_block) {
      found.small += bytes;
      continue;
    }
    hlo_block block = memory.block(live.shown);
    found.groups[static_cast<std::size_t>(block.group)] += bytes;
    const std::size_t of_class = class_of(rules, block.group, block.op_name);
    if (of_class < rules.classes.size()) found.classes[of_class] += bytes;
    if (detail::is_found(rules.markers, block.instruction) || detail::is_found(rules.markers, block.op_name) ||
        detail::is_found(rules.markers, block.shape))
      ++found.markers;
    found.rows.push_back({std::move(block), of_class});
  }
  std::stable_sort(found.rows.begin(), found.rows.end(), [](const hlo_attributed_block& left, const hlo_attributed_block& right) {
    return left.block.bytes > right.block.bytes;
  });
  detail::check_sums(memory, found);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
