#pragma once

#include <functional>
#include <vector>

/// One part of a training.
struct phase {
  const char* name;
  std::function<void()> run;
};

/// The parts, in order; they use a model that lives as long as they do. `size` scales the data, 1 for a run of seconds.
[[nodiscard]] std::vector<phase> training(double size);
