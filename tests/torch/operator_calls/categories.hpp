#pragma once

#include "judge.hpp"

#include <ATen/Parallel.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// @file
/// The calls that are written down, and judging many of them.

namespace operator_calls {

[[nodiscard]] inline bool is_equal(const verdict& found) {
  return found.has_equal_results() && found.has_equal_net() && found.has_equal_peak() && found.has_equal_sum();
}

/// Calls that were judged together.
struct tally {
  std::size_t calls = 0;
  std::size_t equal_results = 0;
  std::size_t equal_net = 0;
  std::size_t equal_peaks = 0;
  std::size_t equal_sums = 0;     ///< of all allocations
  std::size_t equal = 0;          ///< in all four
  std::size_t listed = 0;         ///< in the profile, as estimates
  std::size_t silent_errors = 0;  ///< neither equal nor listed
  std::size_t refused = 0;        ///< by the simulation alone

  void add(const verdict& found) {
    const bool runs = found.simulated.fault.empty();
    ++calls;
    equal_results += found.has_equal_results() ? 1U : 0U;
    equal_net += runs && found.has_equal_net() ? 1U : 0U;
    equal_peaks += runs && found.has_equal_peak() ? 1U : 0U;
    equal_sums += runs && found.has_equal_sum() ? 1U : 0U;
    equal += is_equal(found) ? 1U : 0U;
    listed += found.is_listed ? 1U : 0U;
    silent_errors += runs && !is_equal(found) && !found.is_listed ? 1U : 0U;
    refused += runs ? 0U : 1U;
  }
};

struct written_call {
  std::string name;
  std::string dtype;  ///< of the first tensor, as it is written
  std::string line;
};

/// The type of the first tensor of a line; empty if it has none.
[[nodiscard]] inline std::string first_dtype(const std::string& line) {
  for (std::size_t begin = line.find(' '); begin != std::string::npos; begin = line.find(' ', begin + 1)) {
    const std::size_t end = line.find_first_of(" [", begin + 1);
    if (end != std::string::npos && line[end] == '[' && line[begin + 1] != '"') return line.substr(begin + 1, end - begin - 1);
  }
  return {};
}

[[nodiscard]] inline const std::vector<written_call>& all_calls() {
  static const std::vector<written_call> all = [] {
    std::vector<written_call> calls;
    for (const char* const file : {"calls.txt", "other_calls.txt"}) {
      std::ifstream in{std::string{MEMPROF_SOURCE_DIR "/tests/torch/operator_calls/"} + file};
      for (std::string line; std::getline(in, line);) calls.push_back({line.substr(0, line.find(' ')), first_dtype(line), line});
    }
    return calls;
  }();
  return all;
}

inline constexpr std::size_t every_call = 1000;

/// Operators of packed sequences read their lengths, which must be on the host: a program's data has them.
[[nodiscard]] inline bool reads_lengths(const std::string& name) {
  return name.find("_packed_sequence") != std::string::npos || name.find("_pack_padded") != std::string::npos ||
         (name.size() > 5 && name.compare(name.size() - 5, 5, ".data") == 0);
}

[[nodiscard]] inline bool has_integers(const std::string& line) {
  for (const char* const type : {" i64[", " i32[", " i16[", " i8[", " u8[", " b8["}) {
    if (line.find(type) != std::string::npos) return true;
  }
  return false;
}

/// Which calls, and how they are run.
struct category {
  layout laid_out = layout::as_written;
  knowledge known = knowledge::sizes;
  extent goes = extent::forward;
  std::size_t max_of_a_type = every_call;  ///< calls of one operator with one type of numbers
  laid_out_tensors ones = laid_out_tensors::all;
};

/// Calls `judged(written, call, verdict)` for each call of a category that the real kernel takes.
template <class Judged>
void judge_all(const category& wanted, Judged judged) {
  at::set_num_threads(1);  // scratch memory of kernels may be one piece a thread
  std::map<std::string, std::size_t> counts;
  judge judging;
  for (const written_call& written : all_calls()) {
    if (wanted.goes == extent::training && written.name.find("_backward") != std::string::npos) continue;
    const bool is_forward = wanted.goes == extent::forward;
    if (is_forward && wanted.known == knowledge::indices && !has_integers(written.line)) continue;  // as with sizes alone
    std::size_t& count = counts[written.name + " " + written.dtype];
    if (count >= wanted.max_of_a_type) continue;
    std::optional<operator_call> call{operator_call{written.line}};
    if (wanted.laid_out != layout::as_written) call = call->with(wanted.laid_out, wanted.ones);
    if (!call.has_value()) continue;
    const bool is_known_at_least = wanted.known == knowledge::sizes && reads_lengths(written.name);
    const knowledge known = is_known_at_least ? knowledge::indices : wanted.known;
    if (const std::optional<verdict> found = judging.compare(*call, known, wanted.goes)) {
      ++count;
      judged(written, *call, *found);
    }
  }
}

/// Calls `judged(category)` for each layout that some tensors of a call have and others do not.
template <class Judged>
void for_each_mixture(extent goes, std::size_t max_of_a_type, Judged judged) {
  for (const laid_out_tensors ones : {laid_out_tensors::first, laid_out_tensors::others}) {
    for (const layout laid_out : all_layouts) {
      if (laid_out == layout::as_written) continue;
      const knowledge known = goes == extent::training ? knowledge::indices : knowledge::sizes;
      judged(category{laid_out, known, goes, max_of_a_type, ones});
    }
  }
}

}  // namespace operator_calls
