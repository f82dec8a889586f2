// Runs the benchmarks, prints one table and writes one JSON file. `./dev bench` calls it.
#include "groups.hpp"
#include "json.hpp"
#include "table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

namespace {

constexpr const char* usage =
    "memprof_bench [--quick] [--only GROUP] [--rounds N] [--torch PROGRAM] [--output FILE]\n"
    "  --quick        run for a few seconds to see that everything works; the numbers are meaningless\n"
    "  --only GROUP   pairs, memory, parts, nano_gpt, trace_file, include, heap, torch or peers\n"
    "  --rounds N     number of rounds in which the variants run in turn (7)\n"
    "  --torch PROGRAM  benchmarks/torch's torch_bench, for the group torch\n"
    "  --output FILE  where to write the results as JSON (bench.json)\n";

struct arguments {
  bench::plan plan;
  std::string output = "bench.json";
};

bool is_group(std::string_view name) {
  return std::any_of(bench::groups.begin(), bench::groups.end(), [&](const bench::group& group) { return group.name == name; });
}

/// Returns false if an argument is invalid.
bool parse(int count, char** words, arguments& result) {
  for (int index = 1; index < count; ++index) {
    const std::string_view word = words[index];
    if (word == "--quick") {
      result.plan.is_quick = true;
      result.plan.rounds = 2;
      continue;
    }
    if (++index == count) return false;
    const std::string_view value = words[index];
    if (word == "--only" && is_group(value)) {
      result.plan.only = value;
    } else if (word == "--rounds" && std::atoi(words[index]) > 0) {
      result.plan.rounds = static_cast<std::size_t>(std::atoi(words[index]));
    } else if (word == "--torch" && !value.empty()) {
      result.plan.torch_bench = value;
    } else if (word == "--output" && !value.empty()) {
      result.output = value;
    } else {
      return false;
    }
  }
  return true;
}

bench::report measure(const bench::plan& plan) {
  bench::report report;
  for (const bench::group& group : bench::groups) {
    if (!plan.only.empty() && plan.only != group.name) continue;
    std::fprintf(stderr, "measuring: %s\n", std::string{group.name}.c_str());
    group.measure(plan, report);
  }
  return report;
}

}  // namespace

int main(int count, char** words) {
  arguments given;
  if (!parse(count, words, given)) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    const bench::report report = measure(given.plan);
    bench::write_json(report, given.plan, given.output);
    std::fputs(bench::to_table(report).c_str(), stdout);
    std::printf("The results are in %s\n", given.output.c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "memprof_bench: %s\n", failure.what());
    return 1;
  }
}
