#include "groups.hpp"
#include "pairs_program.hpp"
#include "temporary_folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace bench {
namespace {

/// Another tool that shows what a program allocates. All of these track blocks or peaks.
struct peer {
  std::string name;
  pairs_variant variant;
  std::size_t pairs;  ///< per thread; fewer for the slow ones
  std::size_t rounds;
  pairs_variant without = plain_variant;  ///< what it is compared with: an allocator's profiler with the allocator alone
};

/// Where the dynamic linker has a library of that name; empty: nowhere.
std::string find_library(const std::string& name) {
  std::istringstream folders{std::getenv("LD_LIBRARY_PATH") == nullptr ? "" : std::getenv("LD_LIBRARY_PATH")};
  std::vector<std::string> all{"/usr/lib/" BENCH_ARCHITECTURE "-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib"};
  for (std::string folder; std::getline(folders, folder, ':');) all.push_back(folder);
  for (const std::filesystem::path folder : all) {
    if (std::filesystem::exists(folder / name)) return (folder / name).string();
  }
  return {};
}

constexpr std::size_t pairs_of_quick_peers = 1'000'000;
constexpr std::size_t pairs_of_slow_peers = 100'000;

void add_patterns(const plan& plan, std::vector<peer>& peers) {
  peers.push_back({"atomics with a CAS peak", {"bench_pairs_atomic_peak"}, pairs_of_quick_peers, plan.rounds});
  peers.push_back({"mutex + unordered_map", {"bench_pairs_mutex_map"}, pairs_of_quick_peers, plan.rounds});
}

void add_memusage(const plan& plan, report& report, std::vector<peer>& peers) {
  const std::string library = find_library("libmemusage.so");
  if (library.empty()) {
    report.skipped.emplace_back("glibc memusage is not installed (Debian: libc-devtools)");
    return;
  }
  peers.push_back(
      {"glibc memusage", {"bench_pairs_plain", {}, {}, {"LD_PRELOAD=" + library}}, pairs_of_quick_peers, plan.rounds});
}

/// The profilers of allocators, which keep stacks: jemalloc's of a sample of the blocks, gperftools' of each.
void add_allocators(const plan& plan, report& report, const std::filesystem::path& folder, std::vector<peer>& peers) {
  struct allocator {
    std::string name;
    std::string library;
    std::vector<std::string> variables;
    std::string package;
    std::size_t pairs;
  };
  const std::vector<allocator> allocators{
      {"jemalloc's profiler",
       "libjemalloc.so.2",
       {"MALLOC_CONF=prof:true,prof_final:true,prof_prefix:" + (folder / "jemalloc").string()},
       "libjemalloc2",
       pairs_of_quick_peers},
      {"tcmalloc's profiler",
       "libtcmalloc.so.4",
       {"HEAPPROFILE=" + (folder / "tcmalloc").string()},
       "libgoogle-perftools4",
       pairs_of_slow_peers}};
  for (const allocator& each : allocators) {
    const std::string library = find_library(each.library);
    if (library.empty()) {
      report.skipped.push_back(each.name + " is not installed (Debian: " + each.package + ")");
      continue;
    }
    const pairs_variant without{"bench_pairs_plain", {}, {}, {"LD_PRELOAD=" + library}};
    pairs_variant with = without;
    with.variables.insert(with.variables.end(), each.variables.begin(), each.variables.end());
    peers.push_back({each.name, with, each.pairs, plan.rounds, without});
  }
}

void add_heaptrack(const plan& plan, report& report, const std::filesystem::path& folder, std::vector<peer>& peers) {
  const auto program = find_program("heaptrack");
  if (!program) {
    report.skipped.emplace_back("heaptrack is not installed (Debian: heaptrack)");
    return;
  }
  const std::string record = (folder / "heaptrack").string();
  peers.push_back({"heaptrack",
                   {"bench_pairs_plain", {}, {*program, "-o", record}},
                   pairs_of_slow_peers,
                   std::min(plan.rounds, std::size_t{3})});
}

void add_valgrind(const plan& plan, report& report, std::vector<peer>& peers) {
  const auto program = find_program("valgrind");
  if (!program) {
    report.skipped.emplace_back("massif and DHAT are not installed (Debian: valgrind)");
    return;
  }
  const std::size_t rounds = std::min(plan.rounds, std::size_t{3});
  peers.push_back({"valgrind massif",
                   {"bench_pairs_plain", {}, {*program, "--tool=massif", "--massif-out-file=/dev/null"}},
                   pairs_of_slow_peers,
                   rounds});
  peers.push_back({"valgrind DHAT",
                   {"bench_pairs_plain", {}, {*program, "--tool=dhat", "--dhat-out-file=/dev/null"}},
                   pairs_of_slow_peers,
                   rounds});
}

/// The time that the peer adds to each event, as a multiple of what memprof adds in the same rounds.
result compare(const peer& peer, const pairs_setup& setup, std::size_t least_pairs, plan plan) {
  plan.rounds = peer.rounds;
  pairs_setup own = setup;
  own.pairs =
      std::max(setup.pairs, least_pairs);  // with as few events as a slow peer gets, the first touch of pages would dominate
  const pairs_cases measured = run_pairs_in_turn(
      {{plain_variant, own}, {captured_variant, own}, {peer.variant, setup, false}, {peer.without, own, false}}, plan);
  const samples& plain = measured.ns_per_event[0];
  const samples& captured = measured.ns_per_event[1];
  const samples& compared = measured.ns_per_event[2];
  result row;
  row.name = peer.name + ", " + std::to_string(setup.threads) + (setup.threads == 1 ? " thread" : " threads");
  row.unit = "x memprof";
  row.untracked = median(measured.ns_per_event[3]);
  row.on = median(compared);
  row.unit_of_columns = "ns/event";
  row.measured = ratios(differences(compared, measured.ns_per_event[3]), differences(captured, plain));
  row.goal = above(1);
  note_threads(row, setup.threads, measured);
  return row;
}

}  // namespace

void measure_peers(const plan& plan, report& report) {
  const temporary_folder folder;
  std::vector<peer> peers;
  add_patterns(plan, peers);
  add_memusage(plan, report, peers);
  add_allocators(plan, report, folder.path(), peers);
  add_heaptrack(plan, report, folder.path(), peers);
  add_valgrind(plan, report, peers);
  for (const peer& peer : peers) {
    for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
      report.results.push_back(compare(peer, {threads, plan.scaled(peer.pairs), false}, plan.scaled(pairs_of_quick_peers), plan));
    }
  }
}

}  // namespace bench
