// plain.cpp with a capture, operations, snapshots and annotations. Compiled out it must be the same instructions.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <cstddef>
#include <string_view>

float forward(const float* weights, const float* inputs, std::size_t count);

extern "C" float train_step(const float* weights, const float* inputs, std::size_t count);

float train_step(const float* weights, const float* inputs, std::size_t count) {
  auto capture = memprof::begin_capture({.ring_capacity = 4096});
  memprof::annotate(weights, {.name = "wte", .shape = "[65, 128]", .dtype = "float32", .category = memprof::category::parameter});
  float loss = 0;
  {
    auto scope = memprof::track_operation<"forward">(memprof::category::activation);
    loss += forward(weights, inputs, count);
  }
  memprof::snapshot("FORWARD_PASS");
  {
    auto scope = memprof::track_operation(std::string_view{"dot_product"});
    for (std::size_t index = 0; index < count; ++index) loss += weights[index] * inputs[index];
  }
  capture.snapshot("DOT_PRODUCT");
  capture.end();
  memprof::print_memory_usage();
  memprof::discard_capture();
  return loss;
}
