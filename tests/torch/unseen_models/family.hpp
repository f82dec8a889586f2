#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

/// @file
/// Families of models that the simulation's rules were not written on, each as a function that makes a model, its batches and its
/// optimizer, and trains for two steps.

namespace unseen {

namespace nn = torch::nn;
namespace fn = torch::nn::functional;
using torch::Tensor;

struct family {
  const char* name;
  void (*train)();
  /// Why the simulated peak may be another; null: it has to be the real one.
  const char* why_off = nullptr;
};

[[nodiscard]] std::vector<family> images();
[[nodiscard]] std::vector<family> generators();
[[nodiscard]] std::vector<family> sequences();
[[nodiscard]] std::vector<family> transformers();
[[nodiscard]] std::vector<family> others();
/// To judge by: no rule may be changed on their account. What is off gets a reason.
[[nodiscard]] std::vector<family> held_out();

// --- what they share --------------------------------------------------------------------------------------------------

inline constexpr int steps = 2;

/// Steps with AdamW of all modules, and of parameters that are in none.
inline void train(const nn::ModuleList& modules, const std::function<Tensor()>& loss, const std::vector<Tensor>& further = {}) {
  std::vector<Tensor> parameters = modules->parameters();
  parameters.insert(parameters.end(), further.begin(), further.end());
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss().backward();
    optimizer.step();
  }
}

[[nodiscard]] inline Tensor parameter(std::vector<std::int64_t> sizes) { return torch::randn(sizes).mul_(0.02).requires_grad_(); }
[[nodiscard]] inline Tensor labels(std::int64_t classes, std::vector<std::int64_t> sizes) {
  return torch::randint(classes, sizes, torch::kLong);
}
[[nodiscard]] inline Tensor classification_loss(const Tensor& logits, std::int64_t classes) {
  return fn::cross_entropy(logits, labels(classes, {logits.size(0)}));
}
/// Of a prediction for each place of a sequence: [batch, place, class].
[[nodiscard]] inline Tensor sequence_loss(const Tensor& logits, const Tensor& expected) {
  return fn::cross_entropy(logits.reshape({-1, logits.size(-1)}), expected.reshape({-1}));
}
[[nodiscard]] inline Tensor mean_of_places(const Tensor& image) { return image.mean(std::vector<std::int64_t>{2, 3}); }

[[nodiscard]] inline nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}
[[nodiscard]] inline nn::Conv2d depthwise(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(channels, channels, kernel).stride(stride).padding(kernel / 2).groups(channels).bias(false));
}
[[nodiscard]] inline nn::ConvTranspose2d doubling(std::int64_t from, std::int64_t to) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(from, to, 4).stride(2).padding(1).bias(false));
}
[[nodiscard]] inline nn::TransformerEncoder encoder(std::int64_t width, std::int64_t heads, std::int64_t layers) {
  return nn::TransformerEncoder(
      nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(4 * width)), layers);
}
/// [batch, place, width] as [batch, head, place, width of a head].
[[nodiscard]] inline Tensor heads_of(const Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}
[[nodiscard]] inline Tensor joined_heads(const Tensor& x) { return x.transpose(1, 2).reshape({x.size(0), x.size(2), -1}); }

}  // namespace unseen
