#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/page/comparison_html.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/page.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// What the chart draws of a run: viewer/src/data/comparison.ts.
nlohmann::ordered_json curve_value(const compared_run& run) {
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  for (const timeline_point& point : run.timeline.points) {
    times.push_back(point.time_ns);
    peaks.push_back(point.peak);
  }
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  for (const segment& each : run.segments)
    segments.push_back({{"name", each.name}, {"begin_ns", each.begin_ns}, {"end_ns", each.end_ns}});
  return {{"moment_ns", run.time_ns < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(run.time_ns)},
          {"times_ns", times},
          {"peaks", peaks},
          {"segments", segments}};
}

}  // namespace
}  // namespace detail

void write_html(const comparison& of, const std::filesystem::path& path, const html_options& options) {
  detail::page_data data{to_json(of), {}};
  data.run["title"] = options.title.empty() ? "Comparison" : options.title;
  data.run["notes"] = options.notes;
  data.run["curves"] = {detail::curve_value(of.before), detail::curve_value(of.after)};
  data.run["detail"] = nullptr;  // no columns
  detail::write_page(data, path, options);
}

}  // namespace memprof::inline MEMPROF_ABI
