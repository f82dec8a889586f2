#pragma once

#include <torch_gpt/train.hpp>

#include <memprof/memprof.hpp>
#include <memprof/trace/trace.hpp>

namespace torch_gpt {

/// A capture of the training from its construction on, real or simulated as the options ask, and what is printed of it.
class memory_report {
 public:
  /// Throws `memprof::error` if there is no such device.
  explicit memory_report(const options& options);

  /// Ends the capture and prints where the memory went, and whether it fits if that was asked.
  void print();

 private:
  [[nodiscard]] memprof::capture_guard begin();
  void print_fit() const;

  const options& options_;
  memprof::trace trace_;  // for `print_fit`
  memprof::capture_guard capture_;
};

}  // namespace torch_gpt
