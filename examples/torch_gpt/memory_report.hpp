#pragma once

#include <torch_gpt/train.hpp>

#include <memprof/memprof.hpp>
#include <memprof/trace/trace.hpp>

namespace torch_gpt {

/// Captures the training from construction on, real or simulated depending on the options, and prints a report.
class memory_report {
 public:
  /// Throws `memprof::error` if there is no such device.
  explicit memory_report(const options& options);

  /// Ends the capture and prints where the memory went and, if requested, whether it fits.
  void print();

 private:
  [[nodiscard]] memprof::capture_guard begin();
  void print_fit() const;

  const options& options_;
  memprof::trace trace_;  // for `print_fit`
  memprof::capture_guard capture_;
};

}  // namespace torch_gpt
