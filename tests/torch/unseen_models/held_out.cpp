#include "family.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace unseen {

namespace {

// --- images -----------------------------------------------------------------------------------------------------------

/// MobileNetV3's block: wide, depthwise, weighed by channel, narrow.
struct inverted_blockImpl : nn::Module {
  inverted_blockImpl(std::int64_t channels, std::int64_t hidden)
      : wide(register_module("wide", nn::Sequential(convolution(channels, hidden, 1), nn::BatchNorm2d(hidden)))),
        local(register_module("local", nn::Sequential(depthwise(hidden, 5), nn::BatchNorm2d(hidden)))),
        less(register_module("less", nn::Conv2d(hidden, hidden / 4, 1))),
        more(register_module("more", nn::Conv2d(hidden / 4, hidden, 1))),
        narrow(register_module("narrow", nn::Sequential(convolution(hidden, channels, 1), nn::BatchNorm2d(channels)))) {}
  Tensor forward(const Tensor& x) {
    const Tensor y = torch::hardswish(local->forward(torch::hardswish(wide->forward(x))));
    const Tensor weights = torch::hardsigmoid(more(torch::relu(less(torch::adaptive_avg_pool2d(y, {1, 1})))));
    return x + narrow->forward(y * weights);
  }

  nn::Sequential wide, local;
  nn::Conv2d less, more;
  nn::Sequential narrow;
};
TORCH_MODULE(inverted_block);

void mobilenet_v3() {
  const auto hardswish = [] { return nn::Functional([](const Tensor& x) { return torch::hardswish(x); }); };
  nn::Sequential stem(convolution(3, 16, 3, 2), nn::BatchNorm2d(16), hardswish());
  nn::Sequential body(inverted_block(16, 64), inverted_block(16, 64), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                      nn::Linear(16, 128), hardswish(), nn::Dropout(0.2), nn::Linear(128, 100));
  train(nn::ModuleList(stem, body), [&] {
    return classification_loss(body->forward(stem->forward(torch::randn({8, 3, 64, 64}))), 100);
  });
}

/// Two of Swin's blocks, the second with shifted windows and their mask, and the merging of patches.
void swin() {
  constexpr std::int64_t side = 16;
  constexpr std::int64_t window = 4;
  constexpr std::int64_t width = 48;
  constexpr std::int64_t heads = 3;
  constexpr std::int64_t windows = (side / window) * (side / window);
  nn::Conv2d patches(nn::Conv2dOptions(3, width, 4).stride(4));
  nn::ModuleList norms;
  nn::ModuleList qkv;
  nn::ModuleList mlps;
  std::vector<Tensor> biases;
  for (int block = 0; block < 2; ++block) {
    norms->push_back(nn::LayerNorm(nn::LayerNormOptions({width})));
    qkv->push_back(nn::Linear(width, 3 * width));
    mlps->push_back(nn::Sequential(nn::LayerNorm(nn::LayerNormOptions({width})), nn::Linear(width, 4 * width), nn::GELU(),
                                   nn::Linear(4 * width, width)));
    biases.push_back(parameter({(2 * window - 1) * (2 * window - 1), heads}));
  }
  nn::LayerNorm merged(nn::LayerNormOptions({4 * width}));
  nn::Linear half(nn::LinearOptions(4 * width, 2 * width).bias(false));
  nn::Linear head(2 * width, 100);

  const Tensor places = torch::stack(torch::meshgrid({torch::arange(window), torch::arange(window)}, "ij")).flatten(1);
  const Tensor apart = places.unsqueeze(2) - places.unsqueeze(1) + (window - 1);
  const Tensor of_pair = (apart[0] * (2 * window - 1) + apart[1]).flatten();
  const auto in_windows = [](const Tensor& x) {
    return x.view({-1, side / window, window, side / window, window, x.size(-1)})
        .permute({0, 1, 3, 2, 4, 5})
        .reshape({-1, window * window, x.size(-1)});
  };
  Tensor region = torch::zeros({1, side, side, 1});
  region.slice(1, side - window, side - window / 2).fill_(1);
  region.slice(1, side - window / 2).fill_(2);
  region.slice(2, side - window, side - window / 2).add_(3);
  region.slice(2, side - window / 2).add_(6);
  const Tensor regions = in_windows(region).squeeze(-1);
  const Tensor mask = (regions.unsqueeze(1) - regions.unsqueeze(2)).ne(0).to(torch::kFloat) * -100.0;

  train(
      nn::ModuleList(patches, norms, qkv, mlps, merged, half, head),
      [&] {
        Tensor x = patches(torch::randn({8, 3, 4 * side, 4 * side})).permute({0, 2, 3, 1});
        for (std::size_t block = 0; block < 2; ++block) {
          const std::int64_t shift = block == 0 ? 0 : window / 2;
          Tensor y = norms[block]->as<nn::LayerNorm>()->forward(x);
          if (shift != 0) y = torch::roll(y, {-shift, -shift}, {1, 2});
          y = qkv[block]->as<nn::Linear>()->forward(in_windows(y));
          const Tensor parts = y.view({-1, window * window, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
          Tensor scores = torch::matmul(parts[0] * 0.25, parts[1].transpose(-2, -1));
          scores =
              scores + biases[block].index_select(0, of_pair).view({window * window, window * window, heads}).permute({2, 0, 1});
          if (shift != 0) {
            scores = scores.view({-1, windows, heads, window * window, window * window}) + mask.unsqueeze(1).unsqueeze(0);
            scores = scores.view({-1, heads, window * window, window * window});
          }
          y = torch::matmul(torch::softmax(scores, -1), parts[2]).transpose(1, 2).reshape({-1, window, window, width});
          y = y.view({-1, side / window, side / window, window, window, width}).permute({0, 1, 3, 2, 4, 5});
          y = y.reshape({-1, side, side, width});
          x = x + (shift != 0 ? torch::roll(y, {shift, shift}, {1, 2}) : y);
          x = x + mlps[block]->as<nn::Sequential>()->forward(x);
        }
        const Tensor four = torch::cat({x.slice(1, 0, side, 2).slice(2, 0, side, 2), x.slice(1, 1, side, 2).slice(2, 0, side, 2),
                                        x.slice(1, 0, side, 2).slice(2, 1, side, 2), x.slice(1, 1, side, 2).slice(2, 1, side, 2)},
                                       -1);
        return classification_loss(head(half(merged(four)).mean(std::vector<std::int64_t>{1, 2})), 100);
      },
      biases);
}

/// RetinaNet: three sizes of features, and a loss that looks at the boxes which hold something.
void detection() {
  nn::Sequential one(convolution(3, 32, 3, 2), nn::ReLU(), convolution(32, 32, 3, 2), nn::ReLU());
  nn::Sequential two(convolution(32, 64, 3, 2), nn::ReLU());
  nn::Sequential three(convolution(64, 64, 3, 2), nn::ReLU());
  nn::Conv2d side1 = convolution(32, 32, 1);
  nn::Conv2d side2 = convolution(64, 32, 1);
  nn::Conv2d side3 = convolution(64, 32, 1);
  nn::Sequential kinds(convolution(32, 32, 3), nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(32, 3 * 10, 3).padding(1)));
  nn::Sequential boxes(convolution(32, 32, 3), nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(32, 3 * 4, 3).padding(1)));
  train(nn::ModuleList(one, two, three, side1, side2, side3, kinds, boxes), [&] {
    const Tensor a = one->forward(torch::randn({4, 3, 128, 128}));
    const Tensor b = two->forward(a);
    const Tensor c = three->forward(b);
    const auto larger = fn::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest);
    const Tensor top = side3(c);
    const Tensor middle = side2(b) + fn::interpolate(top, larger);
    const Tensor low = side1(a) + fn::interpolate(middle, larger);
    std::vector<Tensor> logits;
    std::vector<Tensor> places;
    for (const Tensor& level : {low, middle, top}) {
      logits.push_back(kinds->forward(level).permute({0, 2, 3, 1}).reshape({4, -1, 10}));
      places.push_back(boxes->forward(level).permute({0, 2, 3, 1}).reshape({4, -1, 4}));
    }
    const Tensor scores = torch::cat(logits, 1);
    const Tensor place = torch::cat(places, 1);
    const Tensor holds = (torch::arange(scores.size(0) * scores.size(1)) % 23 == 0).view({4, -1});
    Tensor expected = torch::zeros_like(scores);
    expected.select(2, 3).masked_fill_(holds, 1.0);
    const Tensor chance = torch::sigmoid(scores);
    const Tensor off = chance * (1 - expected) + (1 - chance) * expected;
    const Tensor each = torch::binary_cross_entropy_with_logits(scores, expected, {}, {}, at::Reduction::None);
    const Tensor found = place.index({holds});
    return (off.square() * each).sum() / holds.sum() + torch::smooth_l1_loss(found, torch::rand_like(found));
  });
}

/// NeRF: rays through a field of color and density, summed along their way.
void radiance_field() {
  nn::Sequential density(nn::Linear(63, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(), nn::Linear(128, 129));
  nn::Sequential color(nn::Linear(128 + 27, 64), nn::ReLU(), nn::Linear(64, 3), nn::Sigmoid());
  const auto encoded = [](const Tensor& x, int octaves) {
    std::vector<Tensor> parts{x};
    for (int octave = 0; octave < octaves; ++octave) {
      parts.push_back(torch::sin(x * static_cast<double>(1 << octave)));
      parts.push_back(torch::cos(x * static_cast<double>(1 << octave)));
    }
    return torch::cat(parts, -1);
  };
  train(nn::ModuleList(density, color), [&] {
    const Tensor origins = torch::randn({128, 3});
    const Tensor directions = fn::normalize(torch::randn({128, 3}), fn::NormalizeFuncOptions().dim(-1));
    const Tensor depths = std::get<0>((torch::linspace(2, 6, 32) + 0.1 * torch::rand({128, 32})).sort(-1));
    const Tensor points = origins.unsqueeze(1) + directions.unsqueeze(1) * depths.unsqueeze(-1);
    const Tensor features = density->forward(encoded(points, 10));
    const Tensor views = encoded(directions, 4).unsqueeze(1).expand({128, 32, 27});
    const Tensor colors = color->forward(torch::cat({features.slice(-1, 1), views}, -1));
    const Tensor gaps = torch::cat({depths.slice(1, 1) - depths.slice(1, 0, 31), torch::full({128, 1}, 1e10)}, 1);
    const Tensor opacity = 1 - torch::exp(-torch::relu(features.select(-1, 0)) * gaps);
    const Tensor passed = torch::cumprod(torch::cat({torch::ones({128, 1}), 1 - opacity + 1e-10}, 1), 1).slice(1, 0, 32);
    const Tensor seen = ((opacity * passed).unsqueeze(-1) * colors).sum(1);
    return torch::mse_loss(seen, torch::rand({128, 3}));
  });
}

/// PointNet: a set of points, turned by a matrix that it finds itself.
void pointnet() {
  nn::Sequential turn_points(nn::Conv1d(3, 64, 1), nn::BatchNorm1d(64), nn::ReLU(), nn::Conv1d(64, 128, 1), nn::BatchNorm1d(128),
                             nn::ReLU());
  nn::Sequential turn(nn::Linear(128, 64), nn::BatchNorm1d(64), nn::ReLU(), nn::Linear(64, 9));
  nn::Sequential points(nn::Conv1d(3, 64, 1), nn::BatchNorm1d(64), nn::ReLU(), nn::Conv1d(64, 256, 1), nn::BatchNorm1d(256),
                        nn::ReLU());
  nn::Sequential head(nn::Linear(256, 128), nn::BatchNorm1d(128), nn::ReLU(), nn::Dropout(0.3), nn::Linear(128, 40));
  train(nn::ModuleList(turn_points, turn, points, head), [&] {
    const Tensor cloud = torch::randn({8, 3, 512});
    const Tensor found = std::get<0>(turn_points->forward(cloud).max(2));
    const Tensor matrix = turn->forward(found).view({-1, 3, 3}) + torch::eye(3);
    const Tensor turned = torch::bmm(cloud.transpose(1, 2), matrix).transpose(1, 2);
    const Tensor all = std::get<0>(points->forward(turned).max(2));
    const Tensor skew = torch::norm(torch::bmm(matrix, matrix.transpose(1, 2)) - torch::eye(3), 2, {1, 2}).mean();
    return classification_loss(head->forward(all), 40) + 0.001 * skew;
  });
}

// --- sequences --------------------------------------------------------------------------------------------------------

/// Perceiver: few latent places look at many inputs.
void perceiver() {
  const Tensor latents = parameter({48, 1, 128});
  nn::MultiheadAttention look(nn::MultiheadAttentionOptions(128, 4).kdim(64).vdim(64));
  nn::LayerNorm norm(nn::LayerNormOptions({128}));
  nn::TransformerEncoder body = encoder(128, 4, 2);
  nn::Linear head(128, 50);
  train(nn::ModuleList(look, norm, body, head),
        [&] {
          const Tensor input = torch::randn({784, 8, 64});
          Tensor x = latents.expand({48, 8, 128});
          for (int round = 0; round < 2; ++round) x = body(x + std::get<0>(look(norm(x), input, input)));
          return classification_loss(head(x.mean(0)), 50);
        },
        {latents});
}

/// Translation with Bahdanau's attention: sentences of different lengths are read packed, and written word by word.
void additive_attention() {
  constexpr std::int64_t words = 2000;
  nn::Embedding tokens(words, 64);
  nn::GRU reader(nn::GRUOptions(64, 96).bidirectional(true).batch_first(true));
  nn::Linear start(192, 128);
  nn::Linear keys(nn::LinearOptions(192, 64).bias(false));
  nn::Linear query(nn::LinearOptions(128, 64).bias(false));
  nn::Linear score(nn::LinearOptions(64, 1).bias(false));
  nn::GRUCell writer(64 + 192, 128);
  nn::Linear head(128, words);
  train(nn::ModuleList(tokens, reader, start, keys, query, score, writer, head), [&] {
    const Tensor lengths = torch::tensor({30, 12, 25, 7, 30, 18, 3, 21});
    const auto packed =
        nn::utils::rnn::pack_padded_sequence(tokens(labels(words, {8, 30})), lengths, true, /*enforce_sorted=*/false);
    const auto output = std::get<0>(reader->forward_with_packed_input(packed));
    const Tensor read = std::get<0>(nn::utils::rnn::pad_packed_sequence(output, true));
    const Tensor is_padding = torch::arange(30).unsqueeze(0) >= lengths.unsqueeze(1);
    const Tensor known = keys(read);
    Tensor state = torch::tanh(start(read.mean(1)));
    Tensor word = torch::zeros({8}, torch::kLong);
    std::vector<Tensor> written;
    for (int place = 0; place < 15; ++place) {
      const Tensor scores = score(torch::tanh(known + query(state).unsqueeze(1))).squeeze(-1);
      const Tensor weights = torch::softmax(scores.masked_fill(is_padding, -1e9), -1);
      const Tensor context = torch::bmm(weights.unsqueeze(1), read).squeeze(1);
      state = writer(torch::cat({tokens(word), context}, -1), state);
      written.push_back(head(state));
      word = written.back().argmax(-1);
    }
    return sequence_loss(torch::stack(written, 1), labels(words, {8, 15}));
  });
}

/// N-BEATS: each block explains a part of the past by a trend or by waves, and leaves the rest to the next.
void n_beats() {
  constexpr std::int64_t past = 192;
  constexpr std::int64_t future = 48;
  const Tensor time = torch::linspace(-1, 1, past + future);
  std::vector<Tensor> powers;
  std::vector<Tensor> waves;
  for (int i = 0; i < 4; ++i) powers.push_back(time.pow(i));
  for (int i = 1; i <= 8; ++i) {
    waves.push_back(torch::cos(time * (6.2832 * i)));
    waves.push_back(torch::sin(time * (6.2832 * i)));
  }
  const std::vector<Tensor> bases{torch::stack(powers), torch::stack(waves)};
  nn::ModuleList blocks;
  for (std::size_t block = 0; block < 4; ++block) {
    blocks->push_back(nn::Sequential(nn::Linear(past, 256), nn::ReLU(), nn::Linear(256, 256), nn::ReLU(), nn::Linear(256, 256),
                                     nn::ReLU(), nn::Linear(256, bases[block / 2].size(0))));
  }
  train(nn::ModuleList(blocks), [&] {
    Tensor rest = torch::randn({512, past});
    Tensor forecast = torch::zeros({512, future});
    for (std::size_t block = 0; block < 4; ++block) {
      const Tensor all = torch::matmul(blocks[block]->as<nn::Sequential>()->forward(rest), bases[block / 2]);
      rest = rest - all.slice(1, 0, past);
      forecast = forecast + all.slice(1, past);
    }
    const Tensor actual = torch::randn({512, future});
    return (200.0 * (actual - forecast).abs() / (actual.abs() + forecast.abs().detach() + 1e-6)).mean();
  });
}

// --- tables, graphs ---------------------------------------------------------------------------------------------------

/// Two towers of a recommender, with gradients of only those rows that a batch has.
void two_towers() {
  nn::Embedding users(nn::EmbeddingOptions(20000, 32).sparse(true));
  nn::Embedding items(nn::EmbeddingOptions(8000, 32).sparse(true));
  nn::Sequential of_user(nn::Linear(32, 128), nn::ReLU(), nn::Linear(128, 64));
  nn::Sequential of_item(nn::Linear(32, 128), nn::ReLU(), nn::Linear(128, 64));
  const nn::ModuleList modules(users, items, of_user, of_item);
  torch::optim::Adagrad optimizer(modules->parameters(), torch::optim::AdagradOptions(0.01));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor a = fn::normalize(of_user->forward(users(labels(20000, {256}))));
    const Tensor b = fn::normalize(of_item->forward(items(labels(8000, {256}))));
    fn::cross_entropy(torch::matmul(a, b.t()) / 0.07, torch::arange(256)).backward();
    optimizer.step();
  }
}

/// Graph attention: the weights of a node's edges sum to one.
void graph_attention() {
  constexpr std::int64_t nodes = 1000;
  constexpr std::int64_t edges = 6000;
  constexpr std::int64_t heads = 4;
  nn::Linear body(nn::LinearOptions(64, heads * 16).bias(false));
  nn::Linear head(heads * 16, 7);
  const Tensor of_source = parameter({1, heads, 16});
  const Tensor of_target = parameter({1, heads, 16});
  train(nn::ModuleList(body, head),
        [&] {
          const Tensor from = labels(nodes, {edges});
          const Tensor to = labels(nodes, {edges});
          const Tensor x = body(torch::randn({nodes, 64})).view({nodes, heads, 16});
          const Tensor source = (x * of_source).sum(-1).index_select(0, from);
          const Tensor target = (x * of_target).sum(-1).index_select(0, to);
          const Tensor scores = torch::leaky_relu(source + target, 0.2);
          const Tensor index = to.unsqueeze(1).expand({edges, heads});
          const Tensor greatest = torch::full({nodes, heads}, -1e9).scatter_reduce(0, index, scores.detach(), "amax");
          const Tensor weights = torch::exp(scores - greatest.gather(0, index));
          const Tensor sums = torch::zeros({nodes, heads}).scatter_add(0, index, weights);
          const Tensor share = (weights / (sums.gather(0, index) + 1e-9)).unsqueeze(-1);
          const Tensor y = torch::zeros({nodes, heads, 16}).index_add(0, to, x.index_select(0, from) * share);
          return classification_loss(head(torch::elu(y.flatten(1))), 7);
        },
        {of_source, of_target});
}

}  // namespace

std::vector<family> held_out() {
  return {{"MobileNetV3", mobilenet_v3},
          {"Swin", swin},
          {"RetinaNet-like detection", detection},
          {"NeRF", radiance_field},
          {"PointNet", pointnet},
          {"Perceiver", perceiver},
          {"GRUs with Bahdanau's attention, packed", additive_attention},
          {"N-BEATS", n_beats},
          {"two towers, sparse gradients", two_towers},
          {"graph attention", graph_attention}};
}

}  // namespace unseen
