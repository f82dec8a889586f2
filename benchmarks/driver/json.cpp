#include "json.hpp"

#include <memprof/version.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/utsname.h>

namespace bench {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const goal& goal) {
  switch (goal.wanted) {
    case goal::sense::at_most: return {{"at_most", goal.value}};
    case goal::sense::at_least: return {{"at_least", goal.value}};
    default: return {{"above", goal.value}};
  }
}

ordered_json to_json(const std::optional<double>& value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

ordered_json to_json(const result& result) {
  const double value = median(result.measured);
  ordered_json row;
  row["name"] = result.name;
  row["unit"] = result.unit;
  row["measured"] = value;
  row["min"] = least(result.measured);
  row["max"] = greatest(result.measured);
  row["goal"] = result.goal ? to_json(*result.goal) : ordered_json(nullptr);
  row["met"] = result.has_verdict() ? ordered_json(result.goal->is_met(value)) : ordered_json(nullptr);
  row["threads_ran"] = to_json(result.threads_ran);
  row["unit_of_columns"] = result.unit_of_columns.empty() ? result.unit : result.unit_of_columns;
  row["untracked"] = to_json(result.untracked);
  row["compiled_out"] = to_json(result.compiled_out);
  row["on"] = to_json(result.on);
  row["samples"] = result.measured;
  return row;
}

/// The processor's name according to Linux, such as "AMD EPYC"; empty elsewhere.
std::string processor_name() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return {};
}

ordered_json machine() {
  utsname system{};
  ::uname(&system);
  return {{"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()},
          {"system", std::string{system.sysname} + " " + system.release},
          {"architecture", system.machine}};
}

}  // namespace

void write_json(const report& report, const plan& plan, const std::filesystem::path& path) {
  ordered_json document;
  document["format"] = "memprof-benchmarks";
  document["version"] = 1;
  document["library_version"] = memprof::version_string;
  document["quick"] = plan.is_quick;
  document["rounds"] = plan.rounds;
  document["machine"] = machine();
  document["compiler"] = BENCH_COMPILER_NAME;
  document["flags"] = BENCH_COMPILER_FLAGS;
  document["results"] = ordered_json::array();
  for (const result& result : report.results) document["results"].push_back(to_json(result));
  document["skipped"] = report.skipped;

  std::ofstream file{path};
  file << document.dump(2) << "\n";
  file.close();
  if (!file) throw std::runtime_error{"cannot write " + path.string() + "; name a file in a folder that exists (--output FILE)"};
}

}  // namespace bench
