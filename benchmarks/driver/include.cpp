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

/// Collects the C++ standard headers that a memprof header reaches. System headers (`<unistd.h>`) are memprof's choice and thus
/// its cost, so they are not part of the baseline. Neither is config.hpp's deliberately invalid `#include`.
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

double seconds_to_compile(const fs::path& source, const plan& plan) {
  const std::string work = plan.is_quick ? "-fsyntax-only" : "-O2";
  return run_or_throw({BENCH_COMPILER, "-std=c++20", work, "-I" BENCH_INCLUDE_FOLDER, "-c", source.string(), "-o", "/dev/null"})
      .cpu_seconds;
}

/// Compares a header with the standard headers that it reaches.
void measure_header(const std::string& header, goal wanted, const fs::path& folder, const plan& plan, report& report) {
  const fs::path with = folder / "with.cpp";
  const fs::path without = folder / "without.cpp";
  std::ofstream{with} << "#include <" << header << ">\n";
  std::set<std::string> seen;
  std::set<std::string> standard;
  collect_standard_headers(header, seen, standard);
  std::ofstream headers{without};
  for (const std::string& name : standard) headers << "#include <" << name << ">\n";
  headers.close();

  samples memprof;
  samples headers_alone;
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    headers_alone.push_back(seconds_to_compile(without, plan));
    memprof.push_back(seconds_to_compile(with, plan));
  }
  result row;
  row.name = "#include <" + header + "> / its standard headers";
  row.unit = "times";
  row.untracked = median(headers_alone);
  row.on = median(memprof);
  row.unit_of_columns = "seconds";
  row.measured = ratios(memprof, headers_alone);
  row.goal = wanted;
  report.results.push_back(row);
}

/// A whole unit.
void measure_unit(const std::string& name, const char* text, goal wanted, const fs::path& folder, const plan& plan,
                  report& report) {
  const fs::path source = folder / "unit.cpp";
  std::ofstream{source} << text;
  result row;
  row.name = name;
  row.unit = "seconds";
  for (std::size_t round = 0; round < plan.rounds; ++round) row.measured.push_back(seconds_to_compile(source, plan));
  row.on = median(row.measured);
  row.goal = wanted;
  report.results.push_back(row);
}

constexpr const char* capture_and_report = R"(
#include <memprof/memprof.hpp>
#include <memprof/profile/write_json.hpp>

int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  { auto scope = memprof::track_operation<"forward">(); }
  memprof::snapshot("FORWARD_PASS");
  capture.end();
  memprof::print_memory_usage();
  memprof::write_json(capture.profile(), "memory_profile.json");
}
)";

constexpr const char* only_json = R"(
#include <memprof/profile/write_json.hpp>

void save(const memprof::profile& profile) { memprof::write_json(profile, "memory_profile.json"); }
)";

}  // namespace

void measure_include(const plan& plan, report& report) {
  const temporary_folder folder;
  measure_header("memprof/record.hpp", at_most(1.15), folder.path(), plan, report);
  measure_header("memprof/memprof.hpp", at_most(1.3), folder.path(), plan, report);
  measure_unit("compile: capture, print, write JSON", capture_and_report, at_most(4), folder.path(), plan, report);
  measure_unit("compile: write JSON alone", only_json, at_most(2), folder.path(), plan, report);
}

}  // namespace bench
