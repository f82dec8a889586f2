#include "family.hpp"

#include <cstdint>
#include <vector>

namespace unseen {

namespace {

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

void resnet() {
  nn::Sequential body(convolution(3, 32, 7, 2), nn::BatchNorm2d(32), nn::ReLU(),
                      nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), residual_block(32, 32, 1),
                      residual_block(32, 64, 2), residual_block(64, 128, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                      nn::Linear(128, 100));
  train(nn::ModuleList(body), [&] { return classification_loss(body->forward(torch::randn({8, 3, 128, 128})), 100); });
}

void vit() {
  nn::Conv2d patches(nn::Conv2dOptions(3, 128, 16).stride(16));
  nn::TransformerEncoder body = encoder(128, 4, 4);
  nn::Linear head(128, 100);
  const Tensor positions = parameter({197, 1, 128});
  const Tensor summary = parameter({1, 1, 128});
  train(nn::ModuleList(patches, body, head),
        [&] {
          const Tensor x = patches(torch::randn({8, 3, 224, 224})).flatten(2).permute({2, 0, 1});
          const Tensor y = body(torch::cat({summary.expand({1, 8, 128}), x}) + positions);
          return classification_loss(head(y[0]), 100);
        },
        {positions, summary});
}

void vgg() {
  nn::Sequential body(convolution(3, 32, 3), nn::ReLU(), convolution(32, 32, 3), nn::ReLU(), nn::MaxPool2d(2),
                      convolution(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 64, 256), nn::ReLU(),
                      nn::Dropout(0.5), nn::Linear(256, 10));
  train(nn::ModuleList(body), [&] { return classification_loss(body->forward(torch::randn({8, 3, 32, 32})), 10); });
}

void densenet() {
  nn::ModuleList layers;
  for (std::int64_t layer = 0; layer < 4; ++layer) {
    layers->push_back(nn::Sequential(nn::BatchNorm2d(16 + 12 * layer), nn::ReLU(), convolution(16 + 12 * layer, 12, 3)));
  }
  nn::Conv2d stem = convolution(3, 16, 3);
  nn::Linear head(64, 10);
  train(nn::ModuleList(layers, stem, head), [&] {
    Tensor x = stem(torch::randn({8, 3, 32, 32}));
    for (const auto& layer : *layers) x = torch::cat({x, layer->as<nn::Sequential>()->forward(x)}, 1);
    return classification_loss(head(mean_of_places(x)), 10);
  });
}

void mobilenet() {
  nn::Sequential body(convolution(3, 16, 3, 2), nn::BatchNorm2d(16), nn::ReLU6(), depthwise(16, 3), nn::BatchNorm2d(16),
                      nn::ReLU6(), convolution(16, 64, 1), nn::BatchNorm2d(64), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                      nn::Linear(64, 10));
  train(nn::ModuleList(body), [&] { return classification_loss(body->forward(torch::randn({8, 3, 64, 64})), 10); });
}

void squeeze_excitation() {
  nn::Conv2d stem = convolution(3, 32, 3, 2);
  nn::Sequential gate(nn::AdaptiveAvgPool2d(1), nn::Conv2d(32, 8, 1), nn::SiLU(), nn::Conv2d(8, 32, 1), nn::Sigmoid());
  nn::Linear head(32, 10);
  train(nn::ModuleList(stem, gate, head), [&] {
    const Tensor x = torch::silu(stem(torch::randn({8, 3, 64, 64})));
    return classification_loss(head(mean_of_places(x * gate->forward(x))), 10);
  });
}

void inception() {
  nn::Conv2d one = convolution(3, 16, 1);
  nn::Conv2d three = convolution(3, 16, 3);
  nn::Conv2d five = convolution(3, 16, 5);
  nn::Linear head(51, 10);
  train(nn::ModuleList(one, three, five, head), [&] {
    const Tensor x = torch::randn({8, 3, 32, 32});
    const Tensor y = torch::cat({one(x), three(x), five(x), torch::max_pool2d(x, 3, 1, 1)}, 1);
    return classification_loss(head(torch::relu(y).amax(std::vector<std::int64_t>{2, 3})), 10);
  });
}

void convnext() {
  nn::Conv2d patches(nn::Conv2dOptions(3, 32, 4).stride(4));
  nn::Conv2d wide = depthwise(32, 7);
  nn::LayerNorm norm(nn::LayerNormOptions({32}));
  nn::Sequential mlp(nn::Linear(32, 128), nn::GELU(), nn::Linear(128, 32));
  nn::Linear head(32, 10);
  train(nn::ModuleList(patches, wide, norm, mlp, head), [&] {
    const Tensor x = patches(torch::randn({8, 3, 64, 64}));
    const Tensor y = mlp->forward(norm(wide(x).permute({0, 2, 3, 1}))).permute({0, 3, 1, 2});
    return classification_loss(head(mean_of_places(x + y)), 10);
  });
}

void window_attention() {
  nn::Linear qkv(64, 192);
  nn::Linear head(64, 10);
  train(nn::ModuleList(qkv, head), [&] {
    const Tensor x = torch::roll(torch::randn({8, 16, 16, 64}), {-2, -2}, {1, 2});
    const Tensor windows = x.view({8, 4, 4, 4, 4, 64}).permute({0, 1, 3, 2, 4, 5}).reshape({128, 16, 64});
    const auto parts = qkv(windows).chunk(3, -1);
    const Tensor scores = torch::softmax(torch::matmul(heads_of(parts[0], 4), heads_of(parts[1], 4).transpose(-2, -1)), -1);
    const Tensor y = torch::matmul(scores, heads_of(parts[2], 4)).transpose(1, 2).reshape({8, 256, 64});
    return classification_loss(head(y.mean(1)), 10);
  });
}

void mlp_mixer() {
  nn::Sequential tokens(nn::Linear(64, 128), nn::GELU(), nn::Linear(128, 64));
  nn::Sequential channels(nn::Linear(96, 192), nn::GELU(), nn::Linear(192, 96));
  nn::LayerNorm norm(nn::LayerNormOptions({96}));
  train(nn::ModuleList(tokens, channels, norm), [&] {
    const Tensor x = torch::randn({8, 64, 96});
    const Tensor y = x + tokens->forward(norm(x).transpose(1, 2)).transpose(1, 2);
    return (y + channels->forward(norm(y))).square().mean();
  });
}

void volumes() {
  nn::Sequential body(nn::Conv3d(nn::Conv3dOptions(1, 8, 3).padding(1)), nn::BatchNorm3d(8), nn::ReLU(), nn::MaxPool3d(2),
                      nn::Conv3d(nn::Conv3dOptions(8, 16, 3).padding(1)), nn::ReLU(), nn::AdaptiveAvgPool3d(1), nn::Flatten(),
                      nn::Linear(16, 10));
  train(nn::ModuleList(body), [&] { return classification_loss(body->forward(torch::randn({8, 1, 16, 16, 16})), 10); });
}

void super_resolution() {
  nn::Sequential body(convolution(1, 32, 5), nn::Tanh(), convolution(32, 9, 3), nn::PixelShuffle(3));
  train(nn::ModuleList(body), [&] {
    return torch::l1_loss(body->forward(torch::randn({16, 1, 32, 32})), torch::rand({16, 1, 96, 96}));
  });
}

void spatial_transformer() {
  nn::Linear place(3 * 32 * 32, 6);
  nn::Conv2d body = convolution(3, 16, 3);
  train(nn::ModuleList(place, body), [&] {
    const Tensor x = torch::randn({16, 3, 32, 32});
    const Tensor grid = torch::affine_grid_generator(place(x.flatten(1)).view({-1, 2, 3}), {16, 3, 32, 32}, false);
    return body(torch::grid_sampler(x, grid, 0, 0, false)).square().mean();
  });
}

[[nodiscard]] Tensor squashed(const Tensor& x) {
  const Tensor squares = x.square().sum(-1, true);
  return squares / (1 + squares) * x / (squares.sqrt() + 1e-8);
}

void capsules() {
  nn::Conv2d stem(1, 64, 9);
  nn::Conv2d primary(nn::Conv2dOptions(64, 64, 9).stride(2));
  const Tensor weights = parameter({1, 288, 10, 16, 8});
  nn::Sequential decoder(nn::Linear(160, 256), nn::ReLU(), nn::Linear(256, 784), nn::Sigmoid());
  train(nn::ModuleList(stem, primary, decoder),
        [&] {
          const Tensor image = torch::rand({16, 1, 28, 28});
          const Tensor first = squashed(primary(torch::relu(stem(image))).view({16, 288, 8}));
          const Tensor votes = torch::matmul(weights, first.view({16, 288, 1, 8, 1})).squeeze(-1);
          const Tensor fixed = votes.detach();
          Tensor agreement = torch::zeros({16, 288, 10, 1});
          for (int round = 0; round < 2; ++round) {
            const Tensor made = squashed((torch::softmax(agreement, 2) * fixed).sum(1, true));
            agreement = agreement + (fixed * made).sum(-1, true);
          }
          const Tensor digits = squashed((torch::softmax(agreement, 2) * votes).sum(1));
          const Tensor lengths = digits.norm(2, -1);
          const Tensor expected = torch::one_hot(labels(10, {16}), 10).to(torch::kFloat);
          const Tensor margins =
              expected * torch::relu(0.9 - lengths).square() + 0.5 * (1 - expected) * torch::relu(lengths - 0.1).square();
          const Tensor again = decoder->forward((digits * expected.unsqueeze(-1)).flatten(1));
          return margins.sum(-1).mean() + 0.0005 * torch::mse_loss(again, image.flatten(1), at::Reduction::Sum);
        },
        {weights});
}

/// DeepLab: dilated convolutions beside each other in channels-last format, and a label for each point.
void dilated_segmentation() {
  const auto dilated = [](std::int64_t dilation) {
    return nn::Conv2d(nn::Conv2dOptions(64, 32, 3).padding(dilation).dilation(dilation).bias(false));
  };
  nn::Sequential stem(convolution(3, 32, 3, 2), nn::BatchNorm2d(32), nn::ReLU(), convolution(32, 64, 3, 2), nn::BatchNorm2d(64),
                      nn::ReLU());
  nn::Conv2d near = convolution(64, 32, 1);
  nn::Conv2d far = dilated(2);
  nn::Conv2d farther = dilated(4);
  nn::Sequential joined(convolution(128, 32, 1), nn::BatchNorm2d(32), nn::ReLU(), nn::Conv2d(32, 12, 1));
  nn::Conv2d whole = convolution(64, 32, 1);
  train(nn::ModuleList(stem, near, far, farther, joined, whole), [&] {
    const Tensor x = stem->forward(torch::randn({4, 3, 96, 96}).contiguous(at::MemoryFormat::ChannelsLast));
    const auto as_large = [](const Tensor& image, std::int64_t side) {
      return fn::interpolate(
          image,
          fn::InterpolateFuncOptions().size(std::vector<std::int64_t>{side, side}).mode(torch::kBilinear).align_corners(false));
    };
    const Tensor all = as_large(torch::relu(whole(torch::adaptive_avg_pool2d(x, {1, 1}))), x.size(2));
    const Tensor y = joined->forward(torch::cat({near(x), far(x), farther(x), all}, 1));
    return fn::cross_entropy(as_large(y, 96), labels(12, {4, 96, 96}));
  });
}

/// Learns with weights and activations rounded to eight bits.
void quantization_aware() {
  nn::Conv2d first = convolution(3, 24, 3);
  nn::BatchNorm2d norm(24);
  nn::Conv2d second = convolution(24, 32, 3, 2);
  nn::Linear head(32, 10);
  train(nn::ModuleList(first, norm, second, head), [&] {
    const auto rounded = [](const Tensor& x) { return torch::fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127); };
    Tensor x = rounded(torch::randn({8, 3, 32, 32}));
    x = rounded(torch::relu6(norm(torch::conv2d(x, rounded(first->weight), {}, 1, 1))));
    x = rounded(torch::relu6(torch::conv2d(x, rounded(second->weight), {}, 2, 1)));
    return classification_loss(torch::linear(mean_of_places(x), rounded(head->weight), head->bias), 10);
  });
}

/// Copies of one image lie near each other: the farthest like one and the nearest other of each are compared.
void hardest_examples() {
  nn::Sequential body(convolution(1, 16, 5, 2), nn::PReLU(), nn::AvgPool2d(2), convolution(16, 32, 3, 2), nn::PReLU(),
                      nn::Flatten(), nn::Linear(32 * 16, 64));
  train(nn::ModuleList(body), [&] {
    const Tensor places = fn::normalize(body->forward(torch::randn({96, 1, 32, 32})));
    const Tensor distances = torch::cdist(places, places);
    const Tensor kinds = torch::arange(96).remainder(12);
    const Tensor alike = kinds.unsqueeze(0) == kinds.unsqueeze(1);
    const Tensor farthest = distances.masked_fill(~alike, 0).amax(1);
    const Tensor nearest = distances.masked_fill(alike, 1e9).amin(1);
    return torch::relu(farthest - nearest + 0.2).mean();
  });
}

}  // namespace

std::vector<family> images() {
  return {{"ResNet", resnet},
          {"ViT", vit},
          {"VGG", vgg},
          {"DenseNet", densenet},
          {"MobileNet", mobilenet},
          {"squeeze and excitation", squeeze_excitation},
          {"Inception", inception},
          {"ConvNeXt", convnext},
          {"windows with a cyclic shift", window_attention},
          {"MLP-Mixer", mlp_mixer},
          {"3-d CNN", volumes},
          {"super resolution", super_resolution},
          {"spatial transformer", spatial_transformer},
          {"CapsNet with routing", capsules},
          {"DeepLab-like, channels last", dilated_segmentation},
          {"quantization-aware training", quantization_aware},
          {"metric learning by hardest examples", hardest_examples}};
}

}  // namespace unseen
