#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Small models of kinds that the simulation's rules were not written on. Each has a `loss()` that makes its own batch.

namespace unseen {

namespace nn = torch::nn;
using torch::Tensor;

[[nodiscard]] inline Tensor labels(std::int64_t classes, std::vector<std::int64_t> sizes) {
  return torch::randint(classes, sizes, torch::kLong);
}
[[nodiscard]] inline Tensor classification_loss(const Tensor& logits, std::int64_t classes) {
  return nn::functional::cross_entropy(logits, labels(classes, {logits.size(0)}));
}
[[nodiscard]] inline nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// --- ResNet -----------------------------------------------------------------------------------------------------------

struct residual_blockImpl : nn::Module {
  residual_blockImpl(std::int64_t from, std::int64_t to, std::int64_t stride)
      : body(register_module("body", nn::Sequential(convolution(from, to, 3, stride), nn::BatchNorm2d(to), nn::ReLU(),
                                                    convolution(to, to, 3), nn::BatchNorm2d(to)))) {
    if (from != to) shortcut = register_module("shortcut", nn::Sequential(convolution(from, to, 1, stride), nn::BatchNorm2d(to)));
  }
  Tensor forward(const Tensor& x) { return torch::relu(body->forward(x) + (shortcut ? shortcut->forward(x) : x)); }

  nn::Sequential body;
  nn::Sequential shortcut{nullptr};
};
TORCH_MODULE(residual_block);

struct resnetImpl : nn::Module {
  resnetImpl()
      : body(register_module(
            "body", nn::Sequential(convolution(3, 32, 7, 2), nn::BatchNorm2d(32), nn::ReLU(),
                                   nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), residual_block(32, 32, 1),
                                   residual_block(32, 64, 2), residual_block(64, 128, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                                   nn::Linear(128, 100)))) {}
  Tensor loss() { return classification_loss(body->forward(torch::randn({8, 3, 128, 128})), 100); }

  nn::Sequential body;
};

// --- ViT --------------------------------------------------------------------------------------------------------------

struct vitImpl : nn::Module {
  vitImpl()
      : patches(register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, 128, 16).stride(16)))),
        encoder(register_module(
            "encoder", nn::TransformerEncoder(
                           nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(128, 4).dim_feedforward(512)), 4))),
        head(register_module("head", nn::Linear(128, 100))),
        positions(register_parameter("positions", torch::zeros({197, 1, 128}))),
        summary(register_parameter("summary", torch::zeros({1, 1, 128}))) {}
  Tensor loss() {
    const Tensor x = patches(torch::randn({8, 3, 224, 224})).flatten(2).permute({2, 0, 1});
    const Tensor y = encoder(torch::cat({summary.expand({1, 8, 128}), x}) + positions);
    return classification_loss(head(y[0]), 100);
  }

  nn::Conv2d patches;
  nn::TransformerEncoder encoder;
  nn::Linear head;
  Tensor positions;
  Tensor summary;
};

// --- LSTM -------------------------------------------------------------------------------------------------------------

struct lstm_language_modelImpl : nn::Module {
  lstm_language_modelImpl()
      : tokens(register_module("tokens", nn::Embedding(2000, 128))),
        lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(128, 256).num_layers(2).dropout(0.1)))),
        head(register_module("head", nn::Linear(256, 2000))) {}
  Tensor loss() {
    const Tensor y = std::get<0>(lstm->forward(tokens(labels(2000, {35, 16}))));
    return nn::functional::cross_entropy(head(y).view({-1, 2000}), labels(2000, {35 * 16}));
  }

  nn::Embedding tokens;
  nn::LSTM lstm;
  nn::Linear head;
};

// --- T5-like ----------------------------------------------------------------------------------------------------------

struct encoder_decoderImpl : nn::Module {
  encoder_decoderImpl()
      : tokens(register_module("tokens", nn::Embedding(2000, 128))),
        body(register_module("body", nn::Transformer(nn::TransformerOptions(128, 4, 2, 2).dim_feedforward(512)))),
        head(register_module("head", nn::Linear(nn::LinearOptions(128, 2000).bias(false)))) {
    head->weight = tokens->weight;
  }
  Tensor loss() {
    const Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(48);
    const Tensor y = body->forward(tokens(labels(2000, {64, 8})), tokens(labels(2000, {48, 8})), {}, mask);
    return nn::functional::cross_entropy((head(y) / std::sqrt(128.0)).view({-1, 2000}), labels(2000, {48 * 8}));
  }

  nn::Embedding tokens;
  nn::Transformer body;
  nn::Linear head;
};

// --- UNet -------------------------------------------------------------------------------------------------------------

[[nodiscard]] inline nn::Sequential twice_convolved(std::int64_t from, std::int64_t to) {
  return nn::Sequential(convolution(from, to, 3), nn::GroupNorm(8, to), nn::SiLU(), convolution(to, to, 3), nn::GroupNorm(8, to),
                        nn::SiLU());
}

struct unetImpl : nn::Module {
  unetImpl()
      : down1(register_module("down1", twice_convolved(3, 32))),
        down2(register_module("down2", twice_convolved(32, 64))),
        middle(register_module("middle", twice_convolved(64, 128))),
        up2(register_module("up2", twice_convolved(192, 64))),
        up1(register_module("up1", twice_convolved(96, 32))),
        head(register_module("head", nn::Conv2d(32, 3, 1))) {}
  Tensor loss() {
    const auto larger = [](const Tensor& x) { return torch::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}); };
    const Tensor image = torch::randn({4, 3, 64, 64});
    const Tensor a = down1->forward(image);
    const Tensor b = down2->forward(torch::max_pool2d(a, 2));
    const Tensor c = middle->forward(torch::max_pool2d(b, 2));
    const Tensor d = up2->forward(torch::cat({larger(c), b}, 1));
    return torch::mse_loss(head(up1->forward(torch::cat({larger(d), a}, 1))), image);
  }

  nn::Sequential down1;
  nn::Sequential down2;
  nn::Sequential middle;
  nn::Sequential up2;
  nn::Sequential up1;
  nn::Conv2d head;
};

// --- mixture of experts -----------------------------------------------------------------------------------------------

/// Every token goes to the expert that its router likes best. Experts have a fixed capacity, as on accelerators, so that sizes do
/// not depend on data.
struct mixture_of_expertsImpl : nn::Module {
  static constexpr std::int64_t experts = 4;
  static constexpr std::int64_t capacity = 160;

  mixture_of_expertsImpl()
      : tokens(register_module("tokens", nn::Embedding(1000, 64))),
        router(register_module("router", nn::Linear(64, experts))),
        layers(register_module("layers", nn::ModuleList())),
        head(register_module("head", nn::Linear(64, 1000))) {
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      layers->push_back(nn::Sequential(nn::Linear(64, 256), nn::GELU(), nn::Linear(256, 64)));
    }
  }
  Tensor loss() {
    const Tensor x = tokens(labels(1000, {512}));
    const Tensor weights = torch::softmax(router(x), -1);
    Tensor y = torch::zeros_like(x);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const auto [weight, chosen] = weights.select(1, expert).topk(capacity);
      const Tensor made = layers[static_cast<std::size_t>(expert)]->as<nn::Sequential>()->forward(x.index_select(0, chosen));
      y = y.index_add(0, chosen, made * weight.unsqueeze(1));
    }
    return classification_loss(head(x + y), 1000);
  }

  nn::Embedding tokens;
  nn::Linear router;
  nn::ModuleList layers;
  nn::Linear head;
};

}  // namespace unseen
