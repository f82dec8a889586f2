#include "groups.hpp"
#include "pairs_program.hpp"
#include "process.hpp"
#include "temporary_folder.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

/// What a program gets in its environment from `memprof run`, so that it can be measured without the command around it. Empty
/// `stacks`: none.
std::vector<std::string> preloaded([[maybe_unused]] const std::filesystem::path& folder,
                                   [[maybe_unused]] const std::string& stacks = {}) {
#ifdef BENCH_MEMPROF
  std::vector<std::string> variables{"LD_PRELOAD=" BENCH_PRELOAD, "RUN_BY_MEMPROF_FOLDER=" + folder.string(),
                                     "RUN_BY_MEMPROF_PROCESS=0", "RUN_BY_MEMPROF_CHILDREN=1"};
  if (!stacks.empty()) variables.push_back("RUN_BY_MEMPROF_STACKS=" + stacks);
  return variables;
#else
  return {};
#endif
}

void measure_events(std::size_t threads, const plan& plan, report& report) {
  const temporary_folder folder;
  const pairs_setup setup{threads, plan.scaled(1'000'000), false};
  std::vector<pairs_case> cases{{plain_variant, setup},
                                {idle_variant, setup},
                                {captured_variant, setup},
                                {{"bench_pairs_malloc"}, setup},
                                {{"bench_pairs_malloc", {"--capture"}}, setup}};
#ifdef BENCH_MEMPROF
  for (const char* const stacks : {"", "sampled", "all"})
    cases.push_back({{"bench_pairs_plain", {}, {}, preloaded(folder.path(), stacks)}, setup});
#endif
  const pairs_cases measured = run_pairs_in_turn(cases, plan);
  const auto add = [&](const std::string& name, std::size_t variant, std::size_t base, std::optional<goal> wanted) {
    if (variant >= measured.ns_per_event.size()) return;
    result row;
    row.name = name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    row.unit = "ns/event";
    row.untracked = median(measured.ns_per_event[0]);
    row.on = median(measured.ns_per_event[variant]);
    row.measured = differences(measured.ns_per_event[variant], measured.ns_per_event[base]);
    row.goal = wanted;
    note_threads(row, threads, measured);
    report.results.push_back(row);
  };
  add("malloc.hpp, no capture", 3, 0, at_most(1.5));
  add("malloc.hpp, capturing: more than new_delete.hpp", 4, 2, at_most(4));
  add("memprof run: more than new_delete.hpp, capturing", 5, 2, at_most(4));
  add("memprof run", 5, 0, {});
  add("memprof run --stacks", 6, 0, {});
  add("memprof run --stacks=all", 7, 0, {});
}

/// A compilation by g++'s cc1plus; empty if there is none.
command compilation([[maybe_unused]] const std::filesystem::path& folder) {
  const finished_process asked = run({BENCH_COMPILER, "-print-prog-name=cc1plus"});
  const std::string compiler = asked.output.substr(0, asked.output.find('\n'));
  if (asked.status != 0 || !std::filesystem::path{compiler}.is_absolute()) return {};
  const std::string source = (folder / "words.cpp").string();
  std::ofstream{source} << "#include <map>\n#include <string>\nint main() {\n  std::map<std::string, int> words;\n"
                           "  for (const char* each : {\"a\", \"b\", \"a\"}) ++words[each];\n  return words[\"a\"];\n}\n";
  const finished_process machine = run({BENCH_COMPILER, "-print-multiarch"});
  return {compiler,
          "-quiet",
          "-O1",
          "-imultiarch",
          machine.output.substr(0, machine.output.find('\n')),
          "-D_GNU_SOURCE",
          source,
          "-o",
          (folder / "words.s").string()};
}

void measure_compilation(const plan& plan, report& report) {
  const temporary_folder folder;
  const command plain = compilation(folder.path());
  if (plain.empty()) {
    report.skipped.emplace_back("the compiler has no cc1plus (g++ has one)");
    return;
  }
  struct way {
    std::string name;
    std::vector<std::string> variables;
    command launcher;
    std::optional<goal> wanted;
    samples seconds = {};
  };
  std::vector<way> ways{{"", {}, {}, {}}};
#ifdef BENCH_MEMPROF
  ways.push_back({"memprof run, the program alone", preloaded(folder.path()), {}, at_most(1.15)});
  ways.push_back({"memprof run --stacks, the program alone", preloaded(folder.path(), "sampled"), {}, at_most(1.2)});
  ways.push_back({"memprof run --stacks=all, the program alone", preloaded(folder.path(), "all"), {}, at_most(1.8)});
  ways.push_back({"memprof run, with its summary", {}, {BENCH_MEMPROF, "run", "--"}, {}});
  ways.push_back({"memprof run --stacks=all, with its summary", {}, {BENCH_MEMPROF, "run", "--stacks=all", "--"}, {}});
#endif
  if (const auto heaptrack = find_program("heaptrack"))
    ways.push_back({"heaptrack", {}, {*heaptrack, "-o", (folder.path() / "heaptrack").string()}, {}});
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    for (way& each : ways) {
      command line = each.launcher;
      line.insert(line.end(), plain.begin(), plain.end());
      each.seconds.push_back(run_or_throw(line, each.variables).cpu_seconds);
    }
  }
  const samples& without = ways.front().seconds;
  for (std::size_t index = 1; index < ways.size(); ++index) {
    result row;
    row.name = "cc1plus, CPU time: " + ways[index].name;
    row.unit = "x";
    row.unit_of_columns = "seconds";
    row.untracked = median(without);
    row.on = median(ways[index].seconds);
    row.measured = ratios(ways[index].seconds, without);
    row.goal = ways[index].wanted;
    report.results.push_back(row);
  }
}

}  // namespace

void measure_heap(const plan& plan, report& report) {
#ifndef BENCH_MEMPROF
  report.skipped.emplace_back("memprof run was not built (MEMPROF_TOOLS=ON)");
#endif
  for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) measure_events(threads, plan, report);
  measure_compilation(plan, report);
}

}  // namespace bench
