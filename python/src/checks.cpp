#include "answers.hpp"
#include "core.hpp"
#include "recordings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/baseline_json.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/check_forge.hpp>
#include <memprof/toolkit/analysis/check_json.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;

[[nodiscard]] memprof::check_subject subject_of(const std::string& name) {
  constexpr auto& names = value_names<memprof::check_subject>;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw nb::value_error(("'" + name + "' is none of space, segment, operation").c_str());
  return static_cast<memprof::check_subject>(found - names.begin());
}

/// ("segment", "FORWARD_PASS", 8 << 30)
using limit_argument = std::tuple<std::string, std::string, std::int64_t>;

[[nodiscard]] memprof::check_report check(nb::handle run, const std::vector<limit_argument>& limits,
                                          std::optional<std::int64_t> grow_at_most, const memprof::run_baseline* baseline,
                                          const std::string& baseline_file, const std::string& tolerance,
                                          const std::vector<std::string>& each, bool any_program, const std::string& space) {
  memprof::check_request request;
  request.space = space;
  for (const auto& [subject, name, at_most] : limits)
    request.limits.push_back({.subject = subject_of(subject), .name = name, .at_most = at_most});
  if (grow_at_most) request.growth = memprof::check_limit{.at_most = *grow_at_most};
  request.baseline = baseline;
  request.baseline_file = baseline_file;
  if (!tolerance.empty()) request.tolerance = memprof::parse_tolerance(tolerance);
  if (!each.empty()) request.each.clear();
  for (const std::string& name : each) request.each.push_back(subject_of(name));
  request.any_program = any_program;
  const recording of = recording_of(run);
  const nb::gil_scoped_release without_gil;
  const memprof::profile profile = profile_of(of);
  require_something(profile);
  if (!request.growth || of.trace == nullptr) return memprof::check_run(profile, request);
  const memprof::leak_report leaks =
      with_view(*of.trace, [&](const memprof::trace_source_view& events) { return memprof::find_leaks(events, profile); });
  return memprof::check_run(profile, request, &leaks);
}

}  // namespace

void bind_checks(nb::module_& module) {
  bind_struct<memprof::run_baseline>(module)
      .def(
          "json", [](const memprof::run_baseline& self) { return memprof::detail::dump(to_json(self)) + '\n'; },
          "The file that `memprof check --write-baseline` writes; equal runs give equal text.")
      .def_static(
          "from_json", [](std::string_view text, std::string_view source) { return memprof::parse_baseline(text, source); },
          "text"_a, "source"_a = "JSON text")
      .doc() = "The few numbers of a run that later runs are checked against. In bytes.";
  module.def(
      "_baseline",
      [](nb::handle run) {
        const recording of = recording_of(run);
        const nb::gil_scoped_release without_gil;
        return memprof::reduced(memprof::baseline_of(profile_of(of)));
      },
      "run"_a);
  module.def(
      "_all_numbers",
      [](nb::handle run) {
        const recording of = recording_of(run);
        const nb::gil_scoped_release without_gil;
        return memprof::baseline_of(profile_of(of));
      },
      "run"_a);
  bind_answer<memprof::check_report>(module, "Whether a run keeps within limits, and who brought it over. In bytes.")
      .def("has_passed", &memprof::check_report::has_passed)
      .def("failures", &memprof::check_report::failures, "How many conditions failed.")
      .def("__bool__", &memprof::check_report::has_passed)
      .def("markdown", [](const memprof::check_report& self) { return memprof::to_markdown(self); })
      .def(
          "junit", [](const memprof::check_report& self) { return memprof::to_junit(self); }, "A test suite as XML.")
      .def(
          "annotations",
          [](const memprof::check_report& self, const std::string& forge) {
            if (forge == "github") return memprof::to_github_annotations(self);
            if (forge == "gitlab") return memprof::to_gitlab_code_quality(self);
            throw nb::value_error(("'" + forge + "' is neither 'github' nor 'gitlab'").c_str());
          },
          "forge"_a, nb::sig("def annotations(self, forge: typing.Literal['github', 'gitlab']) -> str"),
          "What a forge shows beside a diff.");
  nb::borrow<nb::class_<memprof::check_condition>>(nb::type<memprof::check_condition>())
      .def("has_passed", &memprof::check_condition::has_passed)
      .def("over", &memprof::check_condition::over, "By how many bytes it failed; negative: what is left.");
  module.def("_check", check, "run"_a, "limits"_a, "grow_at_most"_a, "baseline"_a.none(), "baseline_file"_a, "tolerance"_a,
             "each"_a, "any_program"_a, "space"_a);
}

}  // namespace memprof_python
