#pragma once

#include <vector>

struct simulated_check {
  bool holds;
  const char* what;
};

/// What a program calls of `memprof::torch_compiled` under NO_DISPATCH.
[[nodiscard]] std::vector<simulated_check> simulated_checks();
