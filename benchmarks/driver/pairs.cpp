#include "groups.hpp"
#include "pairs_program.hpp"

#include <string>
#include <vector>

namespace bench {
namespace {

struct pairs_row {
  std::size_t threads;
  bool hand_over;
  double goal;  ///< one thread: nanoseconds of CPU time per event that capturing may add; several: as a multiple of that
};

constexpr std::array<pairs_row, 5> rows{{{1, false, 12}, {2, false, 2.5}, {4, false, 2.5}, {2, true, 3.5}, {4, true, 3.5}}};

std::string name_of(const pairs_row& row) {
  std::string name = "whole road, " + std::to_string(row.threads) + (row.threads == 1 ? " thread" : " threads");
  return row.hand_over ? name + ", freed by another" : name;
}

}  // namespace

void measure_pairs(const plan& plan, report& report) {
  const std::size_t pairs = plan.scaled(5'000'000);
  for (const pairs_row& row : rows) {
    const pairs_setup setup{row.threads, pairs, row.hand_over};
    const pairs_setup alone{1, pairs, false};
    const pairs_cases measured = run_pairs_in_turn({{plain_variant, setup},
                                                    {compiled_out_variant, setup},
                                                    {idle_variant, setup},
                                                    {captured_variant, setup},
                                                    {plain_variant, alone},
                                                    {captured_variant, alone}},
                                                   plan);
    const samples& plain = measured.ns_per_event[0];
    const auto add = [&](const std::string& name, const samples& variant, std::optional<goal> wanted) -> result& {
      result added;
      added.name = name;
      added.unit = "ns/event";
      added.untracked = median(plain);
      added.compiled_out = median(measured.ns_per_event[1]);
      added.on = median(variant);
      added.measured = differences(variant, plain);
      added.goal = wanted;
      note_threads(added, row.threads, measured);
      report.results.push_back(added);
      return report.results.back();
    };
    const samples& captured = measured.ns_per_event[3];
    if (row.threads == 1) {
      add("compiled out (a test compares the object code)", measured.ns_per_event[1], {});
      add("hooks present, no capture", measured.ns_per_event[2], at_most(1.5));
      add(name_of(row), captured, at_most(row.goal));
      continue;
    }
    add(name_of(row), captured, {});
    const samples of_one_thread = differences(measured.ns_per_event[5], measured.ns_per_event[4]);
    result& multiple = add(name_of(row) + ": times the cost on one", captured, at_most(row.goal));
    multiple.unit = "x";
    multiple.unit_of_columns = "ns/event";
    multiple.measured = ratios(multiple.measured, of_one_thread);
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
