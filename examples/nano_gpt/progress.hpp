#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace nano_gpt {

/// Shows the progress of training on stderr: one line that is rewritten on a terminal, about ten lines elsewhere. Prints nothing
/// to stdout meanwhile, so that programs can read the output.
class progress {
 public:
  /// For a training of so many steps, which begins now.
  explicit progress(std::size_t steps);

  /// Call after each step with its loss, which is not shown if nothing was dispatched at the start.
  void show(double loss);
  /// Call after the last step: ends the rewritten line and prints the result to stdout.
  void finish() const;

 private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] std::string to_text(double loss) const;
  [[nodiscard]] double milliseconds_per_step() const;

  std::size_t steps_;
  std::size_t done_ = 0;
  bool terminal_;
  bool has_losses_;  ///< what is dispatched may change while the training runs
  double first_loss_ = 0;
  double last_loss_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point last_shown_ = start_;
};

}  // namespace nano_gpt
