#include "groups.hpp"
#include "process.hpp"

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

/// What torch_bench prints of one case: nanoseconds a call, by variant, in its order.
struct torch_case {
  std::string name;
  std::vector<std::pair<std::string, samples>> variants;
};

std::vector<torch_case> parse(const std::string& output) {
  std::vector<torch_case> cases;
  std::istringstream lines{output};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields{line};
    std::string name, variant;
    if (!std::getline(fields, name, '\t') || !std::getline(fields, variant, '\t')) {
      throw std::runtime_error{"torch_bench printed a line without fields: " + line};
    }
    samples values;
    for (double value = 0; fields >> value;) values.push_back(value);
    if (cases.empty() || cases.back().name != name) cases.push_back({name, {}});
    cases.back().variants.emplace_back(variant, values);
  }
  return cases;
}

/// Of tensors so small that nothing else takes time.
bool is_small(const std::string& name) { return name.find("8 x 8") != std::string::npos; }

/// The row of a variant beside that without a capture.
result row_of(const torch_case& measured, std::size_t variant) {
  const samples& off = measured.variants.front().second;
  const auto& [name, on] = measured.variants[variant];
  result row;
  row.name = measured.name + ", " + name;
  row.unit = "percent";
  row.unit_of_columns = "ns";
  row.untracked = median(off);
  row.on = median(on);
  row.measured = combine(on, off, [](double with, double without) { return (with / without - 1) * 100; });
  if (name == "torch_backend" && is_small(measured.name)) row.goal = at_most(15);
  return row;
}

}  // namespace

void measure_torch(const plan& plan, report& report) {
  if (plan.torch_bench.empty()) {
    report.skipped.emplace_back("torch: no libtorch (./dev install --torch)");
    return;
  }
  command line{plan.torch_bench, std::to_string(plan.rounds)};
  if (plan.is_quick) line.emplace_back("quick");
  for (const torch_case& measured : parse(run_or_throw(line).output)) {
    for (std::size_t variant = 1; variant < measured.variants.size(); ++variant) {
      report.results.push_back(row_of(measured, variant));
    }
  }
}

}  // namespace bench
