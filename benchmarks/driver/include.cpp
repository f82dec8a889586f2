#include "groups.hpp"
#include "process.hpp"
#include "temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

namespace fs = std::filesystem;

/// The name in `#include <name>`, or empty.
std::string included_name(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#' || line.find("include") == std::string::npos) return {};
  const std::size_t begin = line.find('<');
  const std::size_t end = line.find('>');
  return begin == std::string::npos || end == std::string::npos ? std::string{} : line.substr(begin + 1, end - begin - 1);
}

/// Collects the C++ standard headers that a header of memprof reaches. Those of the system (`<unistd.h>`) are memprof's choice
/// and its cost: they are not part of what it is compared with. Nor is config.hpp's `#include` of what is no name.
void collect_standard_headers(const std::string& name, std::set<std::string>& seen, std::set<std::string>& standard) {
  if (!seen.insert(name).second) return;
  std::ifstream file{fs::path{BENCH_INCLUDE_FOLDER} / name};
  if (!file) throw std::runtime_error{"cannot read " + name + " in " BENCH_INCLUDE_FOLDER};
  for (std::string line; std::getline(file, line);) {
    const std::string included = included_name(line);
    if (included.starts_with("memprof/")) {
      collect_standard_headers(included, seen, standard);
    } else if (!included.empty() && included.find_first_of(". ") == std::string::npos) {
      standard.insert(included);
    }
  }
}

double seconds_to_compile(const fs::path& source) {
  return run_or_throw({BENCH_COMPILER, "-std=c++20", "-O2", "-I" BENCH_INCLUDE_FOLDER, "-c", source.string(), "-o", "/dev/null"})
      .cpu_seconds;
}

}  // namespace

void measure_include(const plan& plan, report& report) {
  const temporary_folder folder;
  const fs::path with = folder.path() / "with.cpp";
  const fs::path without = folder.path() / "without.cpp";
  std::ofstream{with} << "#include <memprof/memprof.hpp>\n";
  std::set<std::string> seen;
  std::set<std::string> standard;
  collect_standard_headers("memprof/memprof.hpp", seen, standard);
  std::ofstream headers{without};
  for (const std::string& name : standard) headers << "#include <" << name << ">\n";
  headers.close();

  samples memprof;
  samples headers_alone;
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    headers_alone.push_back(seconds_to_compile(without));
    memprof.push_back(seconds_to_compile(with));
  }
  result row;
  row.name = "#include <memprof/memprof.hpp> / its standard headers";
  row.unit = "times";
  row.untracked = median(headers_alone);
  row.on = median(memprof);
  row.unit_of_columns = "seconds";
  row.measured = ratios(memprof, headers_alone);
  row.goal = at_most(1.3);
  report.results.push_back(row);
}

}  // namespace bench
