#pragma once

// A trainer whose tensors come from a memory resource.
#include <memory_resource>
#include <vector>

struct gpt_config {};
struct token_batch {};
struct gpt {
  gpt(gpt_config, std::pmr::memory_resource*);
  float forward(token_batch);
  void backward(float);
};
struct adamw {
  adamw(gpt&, std::pmr::memory_resource*);
  void step();
};
inline gpt_config config;
inline std::vector<token_batch> batches;
inline float loss;
