#include "trace_analyses.hpp"

#include "answers.hpp"
#include "core.hpp"
#include "recordings.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/leaks_json.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_text.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_json.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

[[nodiscard]] memprof::leak_report leaks_of(const recorded_trace& self) {
  const memprof::profile profile = profile_of(self);
  require_something(profile);
  return with_view(self, [&](const memprof::trace_source_view& events) { return memprof::find_leaks(events, profile); });
}

[[nodiscard]] std::optional<memprof::peak_callers> callers_of(const recorded_trace& self, std::size_t largest_blocks) {
  const std::optional<memprof::heap_stacks> stacks = memprof::recorded_stacks_of(profile_of(self));
  if (!stacks) return std::nullopt;
  return with_view(
      self, [&](const memprof::trace_source_view& events) { return memprof::peak_callers_of(events, *stacks, largest_blocks); });
}

[[nodiscard]] memprof::block_history history_of(const recorded_trace& self, const std::string& space, bool with_calls) {
  const memprof::profile profile = profile_of(self);
  const memprof::space_profile& of = chosen_space(profile, space);
  memprof::block_history history = with_view(
      self, [&](const memprof::trace_source_view& events) { return memprof::read_block_history(events, of.name, with_calls); });
  history.exact = profile.exact;
  history.remarks = memprof::remarks_on(profile, of);
  return history;
}

/// "bf16", "fp32:bf16".
[[nodiscard]] memprof::what_if_change::retyping retyping_of(const std::string& owner, const std::string& types) {
  const std::size_t colon = types.find(':');
  if (colon == std::string::npos) return {owner, "", types};
  return {owner, types.substr(0, colon), types.substr(colon + 1)};
}

[[nodiscard]] memprof::what_if_result what_if(const recorded_trace& self, const std::vector<std::string>& without,
                                              const std::vector<std::string>& categories,
                                              const std::map<std::string, std::string>& dtypes, std::optional<double> batch,
                                              std::int64_t batch_size, const recorded_trace* batch_run,
                                              const std::vector<std::string>& recompute, const std::vector<std::string>& offload,
                                              bool free_at_last_use, const std::string& space) {
  memprof::what_if_change change{
      .without = without, .recompute = recompute, .offload = offload, .free_at_last_use = free_at_last_use};
  for (const std::string& category : categories)
    change.without_categories.push_back(category_of(category).value_or(memprof::category::other));
  for (const auto& [owner, types] : dtypes) change.types.push_back(retyping_of(owner, types));
  if (batch_run != nullptr && !batch) memprof::detail::raise("batch_run says what scales; batch says by how much: give both");
  const nb::gil_scoped_release no_gil;
  const memprof::block_history run = history_of(self, space, !recompute.empty() || !offload.empty() || free_at_last_use);
  std::optional<memprof::block_history> other;
  if (batch) {
    change.batch = memprof::what_if_change::batching{.factor = *batch, .batch_size = batch_size};
    if (batch_run != nullptr) change.batch->other = &other.emplace(history_of(*batch_run, run.space, false));
  }
  return memprof::what_if(run, change);
}

[[nodiscard]] memprof::target_answer target_of(const recorded_trace& self, std::int64_t target, const std::string& space) {
  const memprof::block_history run = history_of(self, space, false);
  memprof::target_answer answer = memprof::find_target(run, target);
  if (answer.is_possible()) return answer;
  memprof::detail::raise("the peak of " + run.space + " cannot be below " + memprof::detail::short_and_exact_bytes(answer.least) +
                         ": parameters, gradients, optimizer state, inputs, caches of keys and values, and what no operation "
                         "allocated stay");
}

void bind_leaks(nb::module_& module) {
  nb::class_<memprof::leak_report> bound =
      bind_answer<memprof::leak_report>(module, "Who grows from step to step, and who has filled up and stopped. In bytes.");
  bound
      .def(
          "text",
          [](const memprof::leak_report& self, std::size_t columns, bool all_rows, std::optional<std::int64_t> more_steps) {
            return to_text(self, more_steps.value_or(self.steps), {.columns = columns}, all_rows);
          },
          "columns"_a = 100, "all_rows"_a = false, "more_steps"_a = nb::none(),
          "The report for people; it says what will be live `more_steps` after the last, by default as many as there were.")
      .def("__str__", [](const memprof::leak_report& self) { return to_text(self, self.steps); })
      .def("is_long_enough", &memprof::leak_report::is_long_enough, "Whether there were enough steps for a verdict.");
}

}  // namespace

void bind_answers_of_traces(nb::module_& module) {
  bind_leaks(module);
  bind_answer<memprof::what_if_result>(module, "The peak that a run would have had with a change. In bytes.")
      .def("saved", &memprof::what_if_result::saved, "By how much the peak falls; negative: rises.");
  bind_answer<memprof::owner_ranking>(module, "Owners by what the peak would be without each. In bytes.");
  bind_answer<memprof::target_answer>(module, "The fewest owners without which the peak is low enough. In bytes.");
  bind_struct<memprof::peak_callers>(module)
      .def(
          "text",
          [](const memprof::peak_callers& self, std::size_t columns, std::size_t rows) {
            return to_text(self, {.columns = columns, .owners = rows});
          },
          "columns"_a = 100, "rows"_a = 10, "A table of who asked, most bytes first; empty if there is nothing to say.")
      .def("__str__", [](const memprof::peak_callers& self) { return to_text(self); })
      .doc() = "Who asked for what was live at the peak of the C++ heap. In bytes.";
}

void bind_analyses(nb::class_<recorded_trace>& trace) {
  const std::vector<std::string> none;
  trace
      .def("leaks", leaks_of, without_gil{},
           "Who grows from step to step. Three passes over the trace; fewer than 8 steps have no verdict.")
      .def("peak_callers", callers_of, "largest_blocks"_a = 0, without_gil{},
           "Who asked for what was live at the peak; None for a trace without stacks (`memprof run --stacks`).")
      .def("what_if", what_if, nb::kw_only(), "without"_a = none, "categories"_a = none,
           "dtypes"_a = std::map<std::string, std::string>{}, "batch"_a = nb::none(), "batch_size"_a = 0,
           "batch_run"_a.none() = nb::none(), "recompute"_a = none, "offload"_a = none, "free_at_last_use"_a = false,
           "space"_a = "",
           "Replays the run with all changes together (docs/what_if.md). Owners are operations, whose names may be globs: blocks "
           "of "
           "`without` and of `categories` were never allocated; `dtypes` has the type of an owner's real numbers, "
           "{'forward': 'bf16'} or, for blocks whose type is not known, {'forward': 'fp32:bf16'}; the batch is `batch` times as "
           "large, of `batch_size` samples before, and what scales is what differs in `batch_run`, or what shapes say.")
      .def(
          "rank_owners",
          [](const recorded_trace& self, const std::string& space) {
            return memprof::rank_owners(history_of(self, space, false));
          },
          nb::kw_only(), "space"_a = "", without_gil{}, "By how much the peak would fall without each owner.")
      .def("find_target", target_of, "target"_a, nb::kw_only(), "space"_a = "", without_gil{},
           "The fewest owners without which the peak is at most `target` bytes.");
}

}  // namespace memprof_python
