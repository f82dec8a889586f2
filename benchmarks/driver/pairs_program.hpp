#pragma once

#include "process.hpp"
#include "result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// What a variant of benchmarks/pairs/ prints about its run.
struct pairs_run {
  double ns_per_event = 0;  ///< CPU time of all threads
  double threads_ran = 0;   ///< share of the time in which they ran, of that in which they did not wait for each other's blocks
  std::uint64_t recorded = 0;
  double memory_bytes = 0;
  double memory_bytes_at_million = 0;
};

/// How the program runs; the same for all variants to compare.
struct pairs_setup {
  std::size_t threads = 1;
  std::size_t pairs = 5'000'000;  ///< per thread
  bool hand_over = false;
};

/// An executable of benchmarks/pairs/, optionally with a launcher and environment variables.
struct pairs_variant {
  std::string program;
  std::vector<std::string> arguments = {};
  command launcher = {};
  std::vector<std::string> variables = {};
};

inline const pairs_variant plain_variant{"bench_pairs_plain"};
inline const pairs_variant compiled_out_variant{"bench_pairs_compiled_out"};
inline const pairs_variant idle_variant{"bench_pairs_memprof"};
inline const pairs_variant captured_variant{"bench_pairs_memprof", {"--capture"}};

/// Runs one variant once. Throws `std::runtime_error` if it fails.
[[nodiscard]] pairs_run run_pairs(const pairs_variant& variant, const pairs_setup& setup);

/// Threads ran at the same time if they ran for at least this share of the time: otherwise other work had taken their cores, and
/// they took turns, which is a different measurement.
inline constexpr double least_threads_ran = 0.85;

/// One variant with one setup, run in turn with others.
struct pairs_case {
  pairs_variant variant;
  pairs_setup setup;
  bool must_run_at_once = true;  ///< false for a program that makes its threads wait, such as valgrind
};

/// What the cases gave.
struct pairs_cases {
  std::vector<samples> ns_per_event;  ///< of each case, one value per round
  double threads_ran = 1;             ///< the least share in any run that counts
};

/// Runs all cases in turn, `plan.rounds` times. A round in which threads took turns is repeated, up to 3 times on a machine with
/// a core for each thread; if it cannot be had, the last attempt counts, and `threads_ran` says so.
[[nodiscard]] pairs_cases run_pairs_in_turn(const std::vector<pairs_case>& cases, const plan& plan);

/// Enters into a row of several threads whether they ran at the same time.
inline void note_threads(result& row, std::size_t threads, const pairs_cases& measured) {
  if (threads == 1) return;
  row.threads_ran = measured.threads_ran;
  row.took_turns = measured.threads_ran < least_threads_ran;
}

}  // namespace bench
