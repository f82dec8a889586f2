#pragma once

#include "samples.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// The limit for a measured value: at most or at least this much.
struct goal {
  enum class sense { at_most, at_least, above };
  sense wanted;
  double value;

  [[nodiscard]] bool is_met(double measured) const {
    switch (wanted) {
      case sense::at_most: return measured <= value;
      case sense::at_least: return measured >= value;
      default: return measured > value;
    }
  }
};

[[nodiscard]] constexpr goal at_most(double value) { return {goal::sense::at_most, value}; }
[[nodiscard]] constexpr goal at_least(double value) { return {goal::sense::at_least, value}; }
[[nodiscard]] constexpr goal above(double value) { return {goal::sense::above, value}; }

/// One row of the table. The three columns are medians for the program untracked, compiled out and on, if they make sense;
/// `measured` is what the goal refers to, one value per round.
struct result {
  std::string name;
  std::string unit;  ///< of every number in the row, goal included
  std::optional<double> untracked;
  std::optional<double> compiled_out;
  std::optional<double> on;
  samples measured;
  std::optional<bench::goal> goal;
  std::string unit_of_columns;  ///< of the three columns if they are not in `unit`
  /// Share of the time in which the row's threads ran; absent for a row of one thread.
  std::optional<double> threads_ran;
  bool took_turns = false;  ///< they did not run at the same time, so the row says nothing about its goal

  [[nodiscard]] bool has_verdict() const { return goal && !took_turns; }
};

/// What was measured and what could not be.
struct report {
  std::vector<result> results;
  std::vector<std::string> skipped;
};

/// How much is measured.
struct plan {
  std::size_t rounds = 7;
  bool is_quick = false;    ///< only to see that everything runs; the numbers are meaningless
  std::string_view only;    ///< a group's name, or empty for all
  std::string torch_bench;  ///< the program, or empty if there is none

  /// A number, reduced to a hundredth in a quick run.
  [[nodiscard]] std::size_t scaled(std::size_t full) const { return is_quick ? (full + 99) / 100 : full; }
};

}  // namespace bench
