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

/// Runs all variants in turn, `rounds` times. Returns the nanoseconds per event of each variant, one value per round.
[[nodiscard]] std::vector<samples> run_pairs_in_turn(const std::vector<pairs_variant>& variants, const pairs_setup& setup,
                                                     std::size_t rounds);

}  // namespace bench
