// A training step as its author wrote it. guarded.cpp is the same with everything of memprof around it.
#include <cstddef>

float forward(const float* weights, const float* inputs, std::size_t count);

extern "C" float train_step(const float* weights, const float* inputs, std::size_t count);

float train_step(const float* weights, const float* inputs, std::size_t count) {
  float loss = 0;
  loss += forward(weights, inputs, count);
  for (std::size_t index = 0; index < count; ++index) loss += weights[index] * inputs[index];
  return loss;
}
