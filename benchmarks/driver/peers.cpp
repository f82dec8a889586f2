#include "groups.hpp"
#include "pairs_program.hpp"
#include "temporary_folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
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
};

constexpr std::size_t pairs_of_quick_peers = 1'000'000;
constexpr std::size_t pairs_of_slow_peers = 100'000;

void add_patterns(const plan& plan, std::vector<peer>& peers) {
  peers.push_back({"atomics with a CAS peak", {"bench_pairs_atomic_peak"}, pairs_of_quick_peers, plan.rounds});
  peers.push_back({"mutex + unordered_map", {"bench_pairs_mutex_map"}, pairs_of_quick_peers, plan.rounds});
}

void add_memusage(const plan& plan, report& report, std::vector<peer>& peers) {
  for (const char* folder : {"/usr/lib/" BENCH_ARCHITECTURE "-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib"}) {
    const auto library = std::filesystem::path{folder} / "libmemusage.so";
    if (!std::filesystem::exists(library)) continue;
    peers.push_back(
        {"glibc memusage", {"bench_pairs_plain", {}, {}, {"LD_PRELOAD=" + library.string()}}, pairs_of_quick_peers, plan.rounds});
    return;
  }
  report.skipped.emplace_back("glibc memusage is not installed (Debian: libc-devtools)");
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
  const pairs_cases measured =
      run_pairs_in_turn({{plain_variant, own}, {captured_variant, own}, {peer.variant, setup, false}}, plan);
  const samples& plain = measured.ns_per_event[0];
  const samples& captured = measured.ns_per_event[1];
  const samples& compared = measured.ns_per_event[2];
  result row;
  row.name = peer.name + ", " + std::to_string(setup.threads) + (setup.threads == 1 ? " thread" : " threads");
  row.unit = "x memprof";
  row.untracked = median(plain);
  row.on = median(compared);
  row.unit_of_columns = "ns/event";
  row.measured = ratios(differences(compared, plain), differences(captured, plain));
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
  add_heaptrack(plan, report, folder.path(), peers);
  add_valgrind(plan, report, peers);
  for (const peer& peer : peers) {
    for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
      report.results.push_back(compare(peer, {threads, plan.scaled(peer.pairs), false}, plan.scaled(pairs_of_quick_peers), plan));
    }
  }
}

}  // namespace bench
