#include "pairs_program.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include <sched.h>

namespace bench {
namespace {

/// Cores that this process may use.
std::size_t usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&allowed));
}

/// Runs each case once.
std::vector<pairs_run> run_round(const std::vector<pairs_case>& cases) {
  std::vector<pairs_run> runs;
  for (const pairs_case& each : cases) runs.push_back(run_pairs(each.variant, each.setup));
  return runs;
}

/// The least share of the time in which the threads of a round ran.
double threads_ran_in(const std::vector<pairs_case>& cases, const std::vector<pairs_run>& runs) {
  double share = 1;
  for (std::size_t index = 0; index < cases.size(); ++index) {
    if (cases[index].must_run_at_once && cases[index].setup.threads > 1) share = std::min(share, runs[index].threads_ran);
  }
  return share;
}

}  // namespace

pairs_run run_pairs(const pairs_variant& variant, const pairs_setup& setup) {
  command line = variant.launcher;
  line.push_back(std::string{BENCH_PROGRAMS} + "/" + variant.program);
  line.push_back("--threads=" + std::to_string(setup.threads));
  line.push_back("--pairs=" + std::to_string(setup.pairs));
  if (setup.hand_over) line.push_back("--hand-over");
  line.insert(line.end(), variant.arguments.begin(), variant.arguments.end());

  const std::string output = run_or_throw(line, variant.variables).output;
  // Launchers may print something before and after it.
  const std::size_t begin = output.find('{');
  const std::size_t end = output.find('}', begin == std::string::npos ? 0 : begin);
  if (end == std::string::npos) throw std::runtime_error{variant.program + " printed no result"};
  const auto printed = nlohmann::json::parse(output.substr(begin, end - begin + 1));
  pairs_run result;
  result.ns_per_event = printed.at("cpu_ns").get<double>() / printed.at("events").get<double>();
  const double threads = static_cast<double>(setup.threads);
  result.threads_ran = printed.at("cpu_ns").get<double>() /
                       std::max(1.0, threads * printed.at("wall_ns").get<double>() - printed.at("waited_ns").get<double>());
  result.recorded = printed.value("recorded", std::uint64_t{0});
  result.memory_bytes = printed.value("memory_bytes", 0.0);
  result.memory_bytes_at_million = printed.value("memory_bytes_at_million", 0.0);
  return result;
}

pairs_cases run_pairs_in_turn(const std::vector<pairs_case>& cases, const plan& plan) {
  std::size_t threads = 1;
  for (const pairs_case& each : cases) threads = std::max(threads, each.setup.threads);
  const std::size_t attempts = plan.is_quick || usable_cores() < threads ? 1 : 4;

  pairs_cases result;
  result.ns_per_event.resize(cases.size());
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    std::vector<pairs_run> runs;
    double share = 0;
    for (std::size_t attempt = 0; attempt < attempts && share < least_threads_ran; ++attempt) {
      runs = run_round(cases);
      share = threads_ran_in(cases, runs);
    }
    result.threads_ran = std::min(result.threads_ran, share);
    for (std::size_t index = 0; index < cases.size(); ++index) result.ns_per_event[index].push_back(runs[index].ns_per_event);
  }
  return result;
}

}  // namespace bench
