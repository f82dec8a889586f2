#include "groups.hpp"
#include "pairs_program.hpp"

#include <string>
#include <vector>

namespace bench {
namespace {

struct pairs_row {
  std::size_t threads;
  bool hand_over;
  double goal;  ///< nanoseconds of CPU time per event that capturing may add
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
  const pairs_run some = run_pairs(captured_variant, {1, plan.scaled(600'000), false});
  const pairs_run many = run_pairs(captured_variant, {1, plan.scaled(50'000'000), false});
  const auto add = [&](const std::string& name, double bytes, std::optional<goal> wanted) {
    result row;
    row.name = "profiler's memory, " + name;
    row.unit = "KiB";
    row.on = bytes / 1024;
    row.measured = {bytes / 1024};
    row.goal = wanted;
    report.results.push_back(row);
  };
  const auto millions = [](const pairs_run& run) { return std::to_string(run.recorded / 1'000'000) + " M events"; };
  add("when 1 M events were applied", many.memory_bytes_at_million, {});
  // Ending a capture always takes some pages for its last segment, so only ends are compared with each other.
  add("at the end of " + millions(some), some.memory_bytes, {});
  add("at the end of " + millions(many), many.memory_bytes, at_most(some.memory_bytes / 1024));
}

}  // namespace bench
