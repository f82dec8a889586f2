#include "answers.hpp"
#include "core.hpp"
#include "path_argument.hpp"
#include "recordings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>
#include <memprof/toolkit/analysis/rank_merge_json.hpp>
#include <memprof/toolkit/analysis/rank_merge_text.hpp>
#include <memprof/toolkit/page/comparison_html.hpp>
#include <memprof/toolkit/page/html.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;

/// What of two sides is compared.
struct asked_comparison {
  std::string space;
  std::string segment;
  bool at_end = false;
  bool any_program = false;
};

void require_comparable(const memprof::profile& first, const memprof::profile& other, const asked_comparison& asked) {
  const std::string names = recording_name(first, "the first recording") + " and " + recording_name(other, "another one");
  const memprof::run_baseline first_numbers = memprof::baseline_of(first);
  const memprof::run_baseline other_numbers = memprof::baseline_of(other);
  if (!asked.any_program && seem_different_programs(first_numbers, other_numbers)) {
    memprof::detail::raise("the recordings seem to be of different programs: " + names + ' ' +
                           why_different(first_numbers, other_numbers) + "; any_program=True compares them all the same");
  }
  if (first.device != other.device && !first.device.empty() && !other.device.empty() && asked.space.empty()) {
    memprof::detail::raise("the recordings are of different devices: " + names + " of '" +
                           memprof::detail::on_one_line(first.device) + "' and '" + memprof::detail::on_one_line(other.device) +
                           "'; space= compares one memory space of both");
  }
}

[[nodiscard]] memprof::compared_run run_of(const asked_comparison& asked, const recording& from, const read_stacks& read,
                                           const char* title, const std::string& space) {
  const memprof::space_profile& of = read.profile.space(space);
  if (!asked.segment.empty()) return memprof::compared_run_of(title, read.profile, of, read.stacks, asked.segment);
  const auto moment = asked.at_end ? memprof::compared_moment::end : memprof::compared_moment::peak;
  try {
    return memprof::compared_run_of(title, read.profile, of, read.stacks, moment);
  } catch (const memprof::error&) {
    if (from.trace == nullptr) throw;
    // A trace of limited size lacks its first events; its profile counts them, but not the sizes of blocks.
    return memprof::compared_run_of(title, read.profile, of, memprof::stack_table_of(read.profile), moment);
  }
}

[[nodiscard]] memprof::comparison compare(const recording_list& before_objects, const recording_list& after_objects,
                                          const asked_comparison& asked) {
  const std::vector<recording> before = recordings_of(before_objects);
  const std::vector<recording> after = recordings_of(after_objects);
  const nb::gil_scoped_release without_gil;
  if (before.empty() || after.empty())
    memprof::detail::raise("a side of the comparison has no recording: give at least one for each");
  const read_stacks first = stacks_of(before.front());
  const std::string space = chosen_space(first.profile, asked.space).name;
  std::vector<memprof::compared_run> runs_before{run_of(asked, before.front(), first, "before", space)};
  std::vector<memprof::compared_run> runs_after;
  const auto add = [&](std::vector<memprof::compared_run>& to, const recording& from, const char* title) {
    const read_stacks other = stacks_of(from);
    (void)other.profile.space(space);  // raises, with those that there are
    require_comparable(first.profile, other.profile, asked);
    to.push_back(run_of(asked, from, other, title, space));
  };
  for (std::size_t index = 1; index < before.size(); ++index) add(runs_before, before[index], "before");
  for (const recording& each : after) add(runs_after, each, "after");
  return memprof::compare_runs(std::move(runs_before), std::move(runs_after));
}

/// Of a profile, of a trace with more segments, to find the step in which two ranks depart.
constexpr std::uint32_t full_segments = 4096;

void explain(memprof::rank_finding& finding, const memprof::merged_ranks& merged, const std::vector<recording>& ranks) {
  const read_stacks usual = stacks_of(ranks[merged.median_source], full_segments);
  const read_stacks own = stacks_of(ranks[finding.run.source], full_segments);
  explain(finding, merged, {usual.profile, usual.stacks}, {own.profile, own.stacks});
  if (finding.difference) return;
  // A trace of limited size lacks its first events; its profile counts them.
  explain(finding, merged, {usual.profile, memprof::stack_table_of(usual.profile)},
          {own.profile, memprof::stack_table_of(own.profile)});
}

/// The rank, the file and why it cannot be read.
using unreadable_rank = std::tuple<std::int64_t, std::string, std::string>;

[[nodiscard]] memprof::merged_ranks merge(const recording_list& objects, const std::vector<std::string>& names,
                                          const std::vector<unreadable_rank>& unreadable, const std::string& space) {
  const std::vector<recording> ranks = recordings_of(objects);
  const nb::gil_scoped_release without_gil;
  memprof::rank_merge all;
  for (std::size_t index = 0; index < ranks.size(); ++index) {
    const memprof::profile profile = profile_of(ranks[index]);
    require_something(profile);
    all.add(profile, names[index], index);
  }
  for (const auto& [rank, file, reason] : unreadable) all.add_unreadable(rank, file, reason);
  if (all.profiles() == 0) memprof::detail::raise("there is no recording of a rank to merge");
  memprof::merged_ranks merged = all.result(space);
  for (memprof::rank_finding& finding : merged.findings) explain(finding, merged, ranks);
  return merged;
}

}  // namespace

void bind_comparisons(nb::module_& module) {
  bind_answer<memprof::comparison>(module, "By how much two runs differ, and whose bytes make the difference. In bytes.")
      .def("change", &memprof::comparison::change, "By how many bytes the later run has more; negative: less.")
      .def("is_equal", &memprof::comparison::is_equal, "Whether nothing differs.")
      .def(
          "markdown", [](const memprof::comparison& self) { return memprof::to_markdown(self); },
          "The verdict and a table, for a pull request.")
      .def(
          "write_html", [](const memprof::comparison& self, const path_argument& path) { memprof::write_html(self, path); },
          "path"_a, "Writes a page with both runs on one axis.");
  module.def(
      "_compare",
      [](const recording_list& before, const recording_list& after, std::string space, std::string segment, bool at_end,
         bool any_program) {
        return compare(before, after, {std::move(space), std::move(segment), at_end, any_program});
      },
      "before"_a, "after"_a, "space"_a, "segment"_a, "at_end"_a, "any_program"_a);
  bind_answer<memprof::merged_ranks>(module, "The ranks of one job seen together: which stand out, and why. In bytes.")
      .def("mean", &memprof::merged_ranks::mean)
      .def("imbalance", &memprof::merged_ranks::imbalance, "The greatest peak over the mean, less 1.")
      .def(
          "markdown", [](const memprof::merged_ranks& self) { return memprof::to_markdown(self); },
          "The verdict and the table of ranks.");
  module.def("_merge", merge, "ranks"_a, "names"_a, "unreadable"_a, "space"_a);
}

}  // namespace memprof_python
