#include "groups.hpp"
#include "process.hpp"

namespace bench {

#ifdef BENCH_NANO_GPT

void measure_nano_gpt(const plan& plan, report& report) {
  command plain{BENCH_NANO_GPT_PLAIN};
  command captured{BENCH_NANO_GPT};
  std::size_t rounds = 10;
  if (plan.is_quick) {
    rounds = 1;
    for (command* line : {&plain, &captured}) line->insert(line->end(), {"--steps", "2"});
  }
  samples plain_wall, plain_cpu, captured_wall, captured_cpu;
  for (std::size_t round = 0; round < rounds; ++round) {
    const finished_process without = run_or_throw(plain);
    const finished_process with = run_or_throw(captured);
    plain_wall.push_back(without.wall_seconds);
    plain_cpu.push_back(without.cpu_seconds);
    captured_wall.push_back(with.wall_seconds);
    captured_cpu.push_back(with.cpu_seconds);
  }
  const auto add = [&](const char* name, const samples& without, const samples& with, std::optional<goal> wanted) {
    result row;
    row.name = name;
    row.unit = "percent";
    row.unit_of_columns = "seconds";
    row.untracked = median(without);
    row.on = median(with);
    row.measured = combine(with, without, [](double on, double off) { return (on / off - 1) * 100; });
    row.goal = wanted;
    report.results.push_back(row);
  };
  add("nano_gpt, more wall time", plain_wall, captured_wall, at_most(1));
  add("nano_gpt, more CPU time", plain_cpu, captured_cpu, {});
}

#else

void measure_nano_gpt(const plan&, report& report) {
  report.skipped.emplace_back("nano_gpt was not built (it needs nlohmann/json)");
}

#endif

}  // namespace bench
