#include "groups.hpp"
#include "process.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <utility>

namespace bench {
namespace {

/// All repetitions of all benchmarks in a Google Benchmark executable, by name, from its JSON output.
using repetitions = std::map<std::string, std::vector<nlohmann::json>>;

repetitions run_google_benchmark(const plan& plan) {
  command line{std::string{BENCH_PROGRAMS} + "/bench_parts", "--benchmark_format=json",
               "--benchmark_enable_random_interleaving=true", "--benchmark_repetitions=" + std::to_string(plan.rounds)};
  if (plan.is_quick) {
    line.emplace_back("--benchmark_min_time=0.001");
    line.emplace_back("--benchmark_filter=-long_run/1000000");
  }
  const auto document = nlohmann::json::parse(run_or_throw(line).output);
  repetitions result;
  for (const auto& run : document.at("benchmarks")) {
    if (run.value("run_type", "") == "iteration") result[run.at("run_name").get<std::string>()].push_back(run);
  }
  return result;
}

samples values(const repetitions& runs, const std::string& name, const char* field, double scale = 1) {
  samples result;
  for (const auto& run : runs.at(name)) result.push_back(run.at(field).get<double>() * scale);
  return result;
}

void add_operation(const repetitions& runs, report& report, const std::string& variant, const std::string& name, double goal) {
  // Repetitions are shuffled, so each is compared with the median of the empty loop, not with an adjacent one.
  const double without = median(values(runs, "track_operation/none", "cpu_time"));
  const samples with = values(runs, "track_operation/" + variant, "cpu_time");
  result row;
  row.name = name;
  row.unit = "ns";
  row.untracked = without;
  row.on = median(with);
  for (const double value : with) row.measured.push_back(value - without);
  row.goal = at_most(goal);
  report.results.push_back(row);
}

void add_snapshot(const repetitions& runs, report& report) {
  result row;
  row.name = "snapshot, 1,000,000 live blocks";
  row.unit = "us";
  row.measured = values(runs, "snapshot/1000000/iterations:200/manual_time", "real_time");
  row.on = median(row.measured);
  row.goal = at_most(50);
  report.results.push_back(row);
}

void add_replay(const repetitions& runs, report& report, const std::string& variant, const std::string& name, double goal) {
  result row;
  row.name = name;
  row.unit = "M events/s";
  row.measured = values(runs, "ledger_replay/" + variant + "/iterations:1/manual_time", "items_per_second", 1e-6);
  row.on = median(row.measured);
  row.goal = at_least(goal);
  report.results.push_back(row);
}

void add_trace(const repetitions& runs, report& report) {
  result row;
  row.name = "trace of a training, size of an event";
  row.unit = "bytes";
  row.measured = values(runs, "trace/encode/iterations:1/manual_time", "bytes_per_event");
  row.on = median(row.measured);
  row.goal = at_most(6);
  report.results.push_back(row);
  row.name = "trace of a training, to encode an event";
  row.unit = "ns";
  row.measured.clear();
  for (const double rate : values(runs, "trace/encode/iterations:1/manual_time", "items_per_second"))
    row.measured.push_back(1e9 / rate);
  row.on = median(row.measured);
  row.goal = at_most(8);
  report.results.push_back(row);
  row.name = "trace of a training, read and folded";
  row.unit = "M events/s";
  row.measured = values(runs, "trace/fold/iterations:1/manual_time", "items_per_second", 1e-6);
  row.on = median(row.measured);
  row.goal = at_least(30);
  report.results.push_back(row);
}

/// A run with so many steps that anything growing with them would be visible.
void add_long_run(const repetitions& runs, report& report, bool is_quick) {
  const std::string steps = is_quick ? "10,000 steps" : "1,000,000 steps";
  const std::string name = is_quick ? "long_run/10000/iterations:1/manual_time" : "long_run/1000000/iterations:1/manual_time";
  const auto add = [&](const std::string& what, const char* unit, const samples& measured) {
    result row;
    row.name = steps + ", " + what;
    row.unit = unit;
    row.measured = measured;
    row.on = median(measured);
    return row;
  };
  const result first = add("the first", "us", values(runs, name, "first_step_us"));
  report.results.push_back(first);
  result last = add("the last", "us", values(runs, name, "last_step_us"));
  last.goal = at_most(1.1 * median(first.measured));  // it costs the same; the rest is noise
  report.results.push_back(last);
  const result early = add("memory after 1,000", "KB", values(runs, name, "bytes_after_1000_steps", 1.0 / 1024));
  report.results.push_back(early);
  result growth = add("memory more at the end", "KB", {});
  growth.measured = {median(values(runs, name, "bytes_at_the_end", 1.0 / 1024)) - median(early.measured)};
  growth.on = growth.measured.front();
  growth.goal = at_most(64);
  report.results.push_back(growth);
  result at_the_end = add("memory at the end", "KB", values(runs, name, "bytes_at_the_end", 1.0 / 1024));
  at_the_end.goal = at_most(4096);
  report.results.push_back(at_the_end);
  result json = add("the profile as JSON", "KB", values(runs, name, "json_bytes", 1.0 / 1024));
  json.goal = at_most(2048);
  report.results.push_back(json);
  result profile = add("the profile", "ms", values(runs, name, "profile_ms"));
  profile.goal = at_most(50);
  report.results.push_back(profile);
}

void add_page(const repetitions& runs, report& report) {
  const auto add = [&](const char* name, const char* unit, samples measured, double goal) {
    result row;
    row.name = name;
    row.unit = unit;
    row.measured = std::move(measured);
    row.on = median(row.measured);
    row.goal = at_most(goal);
    report.results.push_back(row);
  };
  const std::string page = "page/iterations:1/manual_time";
  samples seconds;
  for (const double rate : values(runs, page, "items_per_second")) seconds.push_back(1e7 / rate);
  add("page of a training, for ten million events", "s", std::move(seconds), 5);
  add("page of a training of 100,000 steps, memory", "MB", values(runs, page, "memory_mb"), 500);
  add("page of a training of 100,000 steps, size", "MB", values(runs, page, "page_mb"), 5);
}

void add_allocator_model(const repetitions& runs, report& report, const std::string& variant, const std::string& name) {
  result row;
  row.name = name;
  row.unit = "ns";
  for (const double rate : values(runs, "caching_allocator/" + variant + "/iterations:1/manual_time", "items_per_second")) {
    row.measured.push_back(1e9 / rate);
  }
  row.on = median(row.measured);
  report.results.push_back(row);
}

}  // namespace

void measure_parts(const plan& plan, report& report) {
  const repetitions runs = run_google_benchmark(plan);
  add_operation(runs, report, "idle", "track_operation, no capture", 1.5);
  add_operation(runs, report, "literal", "track_operation<\"name\">, enter and exit", 25);
  add_operation(runs, report, "by_name", "track_operation(name), enter and exit", 25);
  add_snapshot(runs, report);
  add_replay(runs, report, "lifo_like", "ledger replay, 100,000 live, LIFO-like", 50);
  add_replay(runs, report, "random", "ledger replay, 100,000 live, random", 25);
  add_trace(runs, report);
  add_long_run(runs, report, plan.is_quick);
  add_page(runs, report);
  add_allocator_model(runs, report, "training", "caching allocator's model, training");
  add_allocator_model(runs, report, "expandable", "caching allocator's model, training, expandable segments");
  add_allocator_model(runs, report, "random", "caching allocator's model, 5,000 live, random");
}

}  // namespace bench
