#include "groups.hpp"
#include "pairs_program.hpp"
#include "process.hpp"
#include "temporary_folder.hpp"

#include <memprof/profile/trace_fold.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>
#ifdef BENCH_ZSTD
#include <memprof/trace/trace_zstd.hpp>
#endif

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

void add(report& report, const std::string& name, const std::string& unit, const samples& measured, std::optional<goal> wanted) {
  result row;
  row.name = "trace file, " + name;
  row.unit = unit;
  row.on = median(measured);
  row.measured = measured;
  row.goal = wanted;
  report.results.push_back(row);
}

struct event_counter {
  double events_seen = 0;
  void info(const memprof::extend::capture_info&) {}
  void name(memprof::extend::label, std::string_view) {}
  void space(const memprof::extend::space_definition&) {}
  void facts(memprof::extend::fact_part&&) {}
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t) {
    events_seen += static_cast<double>(last - first);
  }
};

/// The size of a finished file per event, also packed, and how many events per second it feeds to a ledger.
void measure_file(const std::filesystem::path& file, const std::string& name, const plan& plan, report& report) {
  event_counter counted;
  (void)memprof::read_trace(file, counted);
  const auto size_of = [&](const std::filesystem::path& of) {
    return static_cast<double>(std::filesystem::file_size(of)) / counted.events_seen;
  };
  add(report, name + ": size of an event", "bytes", {size_of(file)}, at_most(6));
#ifdef BENCH_ZSTD
  const std::filesystem::path packed = file.string() + ".packed";
  const memprof::detail::file_handle source{std::fopen(file.c_str(), "rb")};
  memprof::repack_trace(source.get(), file, packed);
  add(report, name + ": size of an event, packed", "bytes", {size_of(packed)}, {});
#else
  report.skipped.emplace_back("the size of packed trace files (it needs libzstd)");
#endif
  samples rates;
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    const clock::time_point begin = clock::now();
    memprof::extend::trace_fold folded;
    (void)memprof::read_trace(file, folded);
    const std::chrono::duration<double> seconds = clock::now() - begin;
    rates.push_back(counted.events_seen / seconds.count() / 1e6);
  }
  add(report, name + ": read and folded", "M events/s", rates, at_least(30));
}

void measure_pairs_file(const std::filesystem::path& folder, const plan& plan, report& report) {
  const std::string file = (folder / "pairs.memtrace").string();
  const pairs_variant with_file{"bench_pairs_memprof", {"--capture", "--trace-file=" + file}};
  const pairs_setup setup{1, plan.scaled(5'000'000), false};
  const std::vector<samples> measured = run_pairs_in_turn({{captured_variant, setup}, {with_file, setup}}, plan).ns_per_event;
  result row;
  row.name = "trace file, pairs: more CPU time";
  row.unit = "ns/event";
  row.untracked = median(measured[0]);
  row.on = median(measured[1]);
  row.measured = differences(measured[1], measured[0]);
  row.goal = at_most(8);
  report.results.push_back(row);
  measure_file(file, "pairs", plan, report);
}

#ifdef BENCH_NANO_GPT
/// The time of a step according to nano_gpt's own output: "... in 200 steps of 54.1 ms".
double milliseconds_per_step(const finished_process& finished) {
  constexpr std::string_view before = " steps of ";
  const std::size_t place = finished.output.find(before);
  if (place == std::string::npos) throw std::runtime_error{"nano_gpt does not print the time of its steps"};
  return std::stod(finished.output.substr(place + before.size()));
}

void measure_nano_gpt_file(const std::filesystem::path& folder, const plan& plan, report& report) {
  const std::string file = (folder / "nano_gpt.memtrace").string();
  const std::size_t steps = plan.is_quick ? 2 : 200;
  command without{BENCH_NANO_GPT, "--steps", std::to_string(steps)};
  command with = without;
  with.insert(with.end(), {"--trace-file", file});
  samples wall, cpu, slow, wait;
  const std::size_t rounds = plan.is_quick ? 1 : 10;
  for (std::size_t round = 0; round < rounds; ++round) {
    const finished_process plain = run_or_throw(without);
    const finished_process written = run_or_throw(with);
    const finished_process throttled = run_or_throw(with, {"LD_PRELOAD=" BENCH_SLOW_DISK});
    const auto percent = [](double on, double off) { return (on / off - 1) * 100; };
    wall.push_back(percent(written.wall_seconds, plain.wall_seconds));
    cpu.push_back(percent(written.cpu_seconds, plain.cpu_seconds));
    slow.push_back(percent(milliseconds_per_step(throttled), milliseconds_per_step(plain)));
    const auto beside_steps = [&](const finished_process& finished) {
      return finished.wall_seconds * 1e3 - milliseconds_per_step(finished) * static_cast<double>(steps);
    };
    wait.push_back(beside_steps(throttled) - beside_steps(plain));
  }
  add(report, "nano_gpt: more wall time", "percent", wall, at_most(1));
  add(report, "nano_gpt: more CPU time", "percent", cpu, {});
  add(report, "nano_gpt: more time of a step on a disk of 1 MB/s", "percent", slow, at_most(1));
  add(report, "nano_gpt: wait for that disk at the end", "ms", wait, {});
  (void)run_or_throw(with);
  measure_file(file, "nano_gpt", plan, report);
}
#endif

}  // namespace

void measure_trace_file(const plan& plan, report& report) {
  const temporary_folder folder;
  measure_pairs_file(folder.path(), plan, report);
#ifdef BENCH_NANO_GPT
  measure_nano_gpt_file(folder.path(), plan, report);
#else
  report.skipped.emplace_back("trace files of nano_gpt, which was not built (it needs nlohmann/json)");
#endif
}

}  // namespace bench
