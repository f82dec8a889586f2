#pragma once

#include <chrono>
#include <cstddef>

namespace nano_gpt {

/// Says on stderr how training goes: one line that is rewritten on a terminal, about ten lines elsewhere. It is silent on
/// stdout, so that what stands there can be read by programs.
class progress {
 public:
  explicit progress(std::size_t steps);

  /// To be called after each step, with its loss, which is not shown if nothing was dispatched.
  void show(double loss);
  /// To be called after the last step: ends the rewritten line and prints the result to stdout.
  void finish() const;

 private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] double milliseconds_per_step() const;

  std::size_t steps_;
  std::size_t done_ = 0;
  bool terminal_;
  double first_loss_ = 0;
  double last_loss_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point last_shown_ = start_;
};

}  // namespace nano_gpt
