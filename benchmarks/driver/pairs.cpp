#include "groups.hpp"
#include "pairs_program.hpp"

#include <string>
#include <vector>

namespace bench {
namespace {

struct pairs_row {
  std::size_t threads;
  bool hand_over;
  double goal;  ///< nanoseconds of CPU an event that capturing may add
};

constexpr std::array<pairs_row, 5> rows{{{1, false, 12}, {2, false, 40}, {4, false, 50}, {2, true, 40}, {4, true, 50}}};

std::string name_of(const pairs_row& row) {
  std::string name = "whole road, " + std::to_string(row.threads) + (row.threads == 1 ? " thread" : " threads");
  return row.hand_over ? name + ", freed by another" : name;
}

}  // namespace

void measure_pairs(const plan& plan, report& report) {
  for (const pairs_row& row : rows) {
    const std::vector<samples> measured = run_pairs_in_turn({plain_variant, compiled_out_variant, idle_variant, captured_variant},
                                                            {row.threads, plan.scaled(5'000'000), row.hand_over}, plan.rounds);
    const samples& plain = measured[0];
    const auto add = [&](const std::string& name, const samples& variant, std::optional<goal> wanted) {
      result added;
      added.name = name;
      added.unit = "ns/event";
      added.untracked = median(plain);
      added.compiled_out = median(measured[1]);
      added.on = median(variant);
      added.measured = differences(variant, plain);
      added.goal = wanted;
      report.results.push_back(added);
    };
    if (row.threads == 1) {
      add("compiled out (a test compares the object code)", measured[1], {});
      add("hooks present, no capture", measured[2], at_most(1.5));
    }
    add(name_of(row), measured[3], at_most(row.goal));
  }
}

void measure_memory(const plan& plan, report& report) {
  const pairs_run run = run_pairs(captured_variant, {1, plan.scaled(50'000'000), false});
  result grown;
  grown.name = "profiler's memory: growth from 1 M to " + std::to_string(run.recorded / 1'000'000) + " M events";
  grown.unit = "KiB";
  grown.untracked = run.memory_bytes_at_million / 1024;
  grown.on = run.memory_bytes / 1024;
  grown.measured = {(run.memory_bytes - run.memory_bytes_at_million) / 1024};
  if (run.memory_bytes_at_million > 0) grown.goal = at_most(0);
  report.results.push_back(grown);
}

}  // namespace bench
