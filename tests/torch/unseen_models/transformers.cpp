#include "family.hpp"

#include <ATen/autocast_mode.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace unseen {

namespace {

void encoder_decoder() {
  nn::Embedding tokens(2000, 128);
  nn::Transformer body(nn::TransformerOptions(128, 4, 2, 2).dim_feedforward(512));
  nn::Linear head(nn::LinearOptions(128, 2000).bias(false));
  head->weight = tokens->weight;
  train(nn::ModuleList(tokens, body), [&] {
    const Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(48);
    const Tensor y = body->forward(tokens(labels(2000, {64, 8})), tokens(labels(2000, {48, 8})), {}, mask);
    return sequence_loss(head(y) / std::sqrt(128.0), labels(2000, {48, 8}));
  });
}

void linear_attention() {
  nn::Linear qkv(64, 192);
  train(nn::ModuleList(qkv), [&] {
    const auto parts = qkv(torch::randn({16, 128, 64})).chunk(3, -1);
    const Tensor q = torch::elu(parts[0]) + 1;
    const Tensor k = torch::elu(parts[1]) + 1;
    const Tensor context = torch::einsum("bnd,bne->bde", {k, parts[2]});
    const Tensor norm = torch::einsum("bnd,bd->bn", {q, k.sum(1)}).unsqueeze(-1);
    return (torch::einsum("bnd,bde->bne", {q, context}) / norm).square().mean();
  });
}

/// BERT: guesses words that are hidden from it, in sentences of different lengths.
void masked_language_model() {
  constexpr std::int64_t words = 3000;
  constexpr std::int64_t length = 96;
  nn::Embedding tokens(words, 128);
  nn::Embedding positions(length, 128);
  nn::Embedding segments(2, 128);
  nn::Sequential start(nn::LayerNorm(nn::LayerNormOptions({128})), nn::Dropout(0.1));
  nn::TransformerEncoder body(
      nn::TransformerEncoderLayer(
          nn::TransformerEncoderLayerOptions(128, 4).dim_feedforward(512).dropout(0.1).activation(torch::kGELU)),
      3);
  nn::Sequential head(nn::Linear(128, 128), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({128})));
  const Tensor bias = torch::zeros({words}).requires_grad_();
  train(nn::ModuleList(tokens, positions, segments, start, body, head),
        [&] {
          const Tensor text = labels(words, {length, 8});
          const Tensor is_hidden = torch::rand({length, 8}) < 0.15;
          const Tensor places = torch::arange(length).unsqueeze(1);
          const Tensor is_padding = (places >= torch::tensor({96, 90, 80, 72, 64, 64, 50, 33})).t();
          const Tensor x = tokens(text.masked_fill(is_hidden, 0)) + positions(places) + segments((places >= 40).to(torch::kLong));
          const Tensor y = head->forward(body->forward(start->forward(x), {}, is_padding));
          return sequence_loss(torch::matmul(y, tokens->weight.t()) + bias, text.masked_fill(~is_hidden, -100));
        },
        {bias});
}

struct grouped_layerImpl : nn::Module {
  static constexpr std::int64_t width = 192;
  static constexpr std::int64_t heads = 6;
  static constexpr std::int64_t groups = 2;
  static constexpr std::int64_t hidden = 512;

  [[nodiscard]] static nn::Linear matrix(std::int64_t from, std::int64_t to) {
    return nn::Linear(nn::LinearOptions(from, to).bias(false));
  }

  grouped_layerImpl()
      : q(register_module("q", matrix(width, width))),
        kv(register_module("kv", matrix(width, 2 * width * groups / heads))),
        mixed(register_module("mixed", matrix(width, width))),
        gate(register_module("gate", matrix(width, hidden))),
        up(register_module("up", matrix(width, hidden))),
        down(register_module("down", matrix(hidden, width))),
        before_attention(register_parameter("before_attention", torch::ones({width}))),
        before_mlp(register_parameter("before_mlp", torch::ones({width}))) {}

  [[nodiscard]] static Tensor normalized(const Tensor& x, const Tensor& scale) {
    return x * torch::rsqrt(x.square().mean(-1, true) + 1e-5) * scale;
  }
  [[nodiscard]] static Tensor rotated(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
    const auto halves = x.chunk(2, -1);
    return x * cosines + torch::cat({-halves[1], halves[0]}, -1) * sines;
  }
  Tensor forward(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
    const Tensor a = normalized(x, before_attention);
    const auto parts = kv(a).chunk(2, -1);
    const Tensor queries = rotated(heads_of(q(a), heads), cosines, sines);
    const Tensor keys = rotated(heads_of(parts[0].contiguous(), groups), cosines, sines).repeat_interleave(heads / groups, 1);
    const Tensor values = heads_of(parts[1].contiguous(), groups).repeat_interleave(heads / groups, 1);
    const Tensor y = x + mixed(joined_heads(torch::scaled_dot_product_attention(queries, keys, values, {}, 0.0, true)));
    const Tensor b = normalized(y, before_mlp);
    return y + down(torch::silu(gate(b)) * up(b));
  }

  nn::Linear q, kv, mixed, gate, up, down;
  Tensor before_attention;
  Tensor before_mlp;
};
TORCH_MODULE(grouped_layer);

/// Llama: RMSNorm, rotary positions, grouped queries, SwiGLU; gradients are clipped.
void llama() {
  constexpr std::int64_t length = 128;
  nn::Embedding tokens(2000, grouped_layerImpl::width);
  grouped_layer first;
  grouped_layer second;
  nn::Linear head = grouped_layerImpl::matrix(grouped_layerImpl::width, 2000);
  const Tensor frequencies = torch::pow(10000.0, -torch::arange(0, 32, 2).to(torch::kFloat) / 32.0);
  const Tensor angles = torch::outer(torch::arange(length).to(torch::kFloat), frequencies).repeat({1, 2});
  const Tensor cosines = angles.cos();
  const Tensor sines = angles.sin();
  const nn::ModuleList modules(tokens, first, second, head);
  torch::optim::AdamW optimizer(modules->parameters(), torch::optim::AdamWOptions(3e-4).weight_decay(0.1));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor text = labels(2000, {4, length + 1});
    const Tensor x = second(first(tokens(text.slice(1, 0, length)), cosines, sines), cosines, sines);
    sequence_loss(head(grouped_layerImpl::normalized(x, torch::ones({grouped_layerImpl::width}))), text.slice(1, 1)).backward();
    nn::utils::clip_grad_norm_(modules->parameters(), 1.0);
    optimizer.step();
  }
}

/// GPT that has been trained, and writes: a prompt, then word after word with the keys and values of those before.
void decoding() {
  constexpr std::int64_t width = 256;
  constexpr std::size_t layers = 3;
  const torch::NoGradGuard no_gradients;
  nn::Embedding tokens(4000, width);
  nn::Embedding positions(128, width);
  std::vector<nn::LayerNorm> norms;
  std::vector<nn::Linear> qkv;
  std::vector<nn::Linear> mixed;
  std::vector<nn::Sequential> mlps;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    norms.emplace_back(nn::LayerNormOptions({width}));
    qkv.emplace_back(width, 3 * width);
    mixed.emplace_back(width, width);
    mlps.emplace_back(nn::LayerNorm(nn::LayerNormOptions({width})), nn::Linear(width, 4 * width),
                      nn::GELU(nn::GELUOptions().approximate("tanh")), nn::Linear(4 * width, width));
  }
  std::vector<Tensor> keys(layers);
  std::vector<Tensor> values(layers);
  Tensor next = labels(4000, {8, 64});
  for (std::int64_t at = 0; at < 96;) {
    const std::int64_t count = next.size(1);
    Tensor x = tokens(next) + positions(torch::arange(at, at + count));
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const auto parts = qkv[layer](norms[layer](x)).chunk(3, -1);
      const Tensor q = heads_of(parts[0].contiguous(), 8);
      const Tensor k = heads_of(parts[1].contiguous(), 8);
      const Tensor v = heads_of(parts[2].contiguous(), 8);
      keys[layer] = at == 0 ? k : torch::cat({keys[layer], k}, 2);
      values[layer] = at == 0 ? v : torch::cat({values[layer], v}, 2);
      const Tensor y = torch::scaled_dot_product_attention(q, keys[layer], values[layer], {}, 0.0, at == 0);
      x = x + mixed[layer](joined_heads(y));
      x = x + mlps[layer]->forward(x);
    }
    at += count;
    const auto [likeliest, words] = torch::matmul(x.select(1, -1), tokens->weight.t()).topk(40);
    next = words.gather(1, torch::multinomial(torch::softmax(likeliest / 0.8, -1), 1));
  }
}

/// Every token goes to the expert that its router likes best. Experts have a fixed capacity, as on accelerators, so that sizes do
/// not depend on data.
void mixture_of_experts() {
  constexpr std::int64_t experts = 4;
  constexpr std::int64_t capacity = 160;
  nn::Embedding tokens(1000, 64);
  nn::Linear router(64, experts);
  nn::ModuleList layers;
  nn::Linear head(64, 1000);
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    layers->push_back(nn::Sequential(nn::Linear(64, 256), nn::GELU(), nn::Linear(256, 64)));
  }
  train(nn::ModuleList(tokens, router, layers, head), [&] {
    const Tensor x = tokens(labels(1000, {512}));
    const Tensor weights = torch::softmax(router(x), -1);
    Tensor y = torch::zeros_like(x);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const auto [weight, chosen] = weights.select(1, expert).topk(capacity);
      const Tensor made = layers[static_cast<std::size_t>(expert)]->as<nn::Sequential>()->forward(x.index_select(0, chosen));
      y = y.index_add(0, chosen, made * weight.unsqueeze(1));
    }
    return classification_loss(head(x + y), 1000);
  });
}

/// A mixture in which each expert takes as many tokens as like it: sizes depend on data.
void routed_experts() {
  constexpr std::int64_t experts = 4;
  nn::Embedding tokens(1000, 96);
  nn::Linear router(96, experts);
  nn::ModuleList layers;
  nn::Linear head(96, 1000);
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    layers->push_back(nn::Sequential(nn::Linear(96, 256), nn::GELU(), nn::Linear(256, 96)));
  }
  train(nn::ModuleList(tokens, router, layers, head), [&] {
    const Tensor x = tokens(labels(1000, {512}));
    const auto [weight, choice] = torch::softmax(router(x), -1).max(-1);
    Tensor y = torch::zeros_like(x);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const Tensor chosen = (choice == expert).nonzero().squeeze(1);
      const Tensor made = layers[static_cast<std::size_t>(expert)]->as<nn::Sequential>()->forward(x.index_select(0, chosen));
      y = y.index_add(0, chosen, made * weight.index_select(0, chosen).unsqueeze(1));
    }
    return classification_loss(head(x + y), 1000);
  });
}

/// A decoder's block with separate parts, for what follows.
struct causal_blockImpl : nn::Module {
  explicit causal_blockImpl(std::int64_t width)
      : first(register_module("first", nn::LayerNorm(nn::LayerNormOptions({width})))),
        qkv(register_module("qkv", nn::Linear(width, 3 * width))),
        mixed(register_module("mixed", nn::Linear(width, width))),
        mlp(register_module("mlp", nn::Sequential(nn::LayerNorm(nn::LayerNormOptions({width})), nn::Linear(width, 4 * width),
                                                  nn::GELU(), nn::Linear(4 * width, width)))) {}
  Tensor forward(const Tensor& x) {
    const auto parts = qkv(first(x)).chunk(3, -1);
    const auto split = [](const Tensor& part) { return heads_of(part.contiguous(), 4); };
    const Tensor y = torch::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]), {}, 0.0, true);
    const Tensor z = x + mixed(joined_heads(y));
    return z + mlp->forward(z);
  }

  nn::LayerNorm first;
  nn::Linear qkv, mixed;
  nn::Sequential mlp;
};
TORCH_MODULE(causal_block);

/// Matrices are multiplied in bfloat16, the rest is float32.
void autocast() {
  nn::Embedding tokens(1500, 128);
  causal_block first(128);
  causal_block second(128);
  nn::Linear head(128, 1500);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  train(nn::ModuleList(tokens, first, second, head), [&] {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor loss =
        sequence_loss(head(second(first(tokens(labels(1500, {4, 96}))))).to(torch::kFloat), labels(1500, {4, 96}));
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return loss;
  });
}

/// All in bfloat16, with SGD and gradients of two small batches.
void bfloat16() {
  nn::Embedding tokens(1500, 128);
  causal_block first(128);
  causal_block second(128);
  nn::Linear head(128, 1500);
  nn::ModuleList modules(tokens, first, second, head);
  modules->to(torch::kBFloat16);
  torch::optim::SGD optimizer(modules->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9).nesterov(true));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    for (int part = 0; part < 2; ++part) {
      const Tensor text = labels(1500, {4, 96});
      (sequence_loss(head(second(first(tokens(text)))), labels(1500, {4, 96})) / 2).backward();
    }
    optimizer.step();
  }
}

/// Keeps only the input of a block, which outlives it, and computes the block once more for its gradients.
struct recomputed : torch::autograd::Function<recomputed> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, causal_block block) {
    context->save_for_backward({x});
    context->saved_data["block"] = reinterpret_cast<std::int64_t>(block.get());
    return block(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const torch::AutoGradMode with_gradients(true);
    auto* const block = reinterpret_cast<causal_blockImpl*>(context->saved_data["block"].toInt());
    torch::autograd::backward({block->forward(x)}, {gradients[0]});
    return {x.grad(), Tensor{}};
  }
};

void recomputation() {
  nn::Embedding tokens(1500, 128);
  std::vector<causal_block> blocks;
  nn::Linear head(128, 1500);
  nn::ModuleList modules(tokens, head);
  for (int layer = 0; layer < 4; ++layer) modules->push_back(blocks.emplace_back(128));
  train(modules, [&] {
    Tensor x = tokens(labels(1500, {4, 96}));
    for (const causal_block& block : blocks) x = recomputed::apply(x, block);
    return sequence_loss(head(x), labels(1500, {4, 96}));
  });
}

/// Conformer: attention by relative places, and a gated convolution.
void conformer() {
  constexpr std::int64_t width = 96;
  constexpr std::int64_t length = 80;
  nn::Conv2d smaller(nn::Conv2dOptions(1, 16, 3).stride(2).padding(1));
  nn::Linear start(16 * 40, width);
  nn::Sequential before(nn::LayerNorm(nn::LayerNormOptions({width})), nn::Linear(width, 4 * width), nn::SiLU(), nn::Dropout(0.1),
                        nn::Linear(4 * width, width));
  nn::LayerNorm norm(nn::LayerNormOptions({width}));
  nn::Linear qkv(width, 3 * width);
  nn::Linear place(width, width);
  nn::Conv1d gated(width, 2 * width, 1);
  nn::Conv1d local(nn::Conv1dOptions(width, width, 15).padding(7).groups(width));
  nn::BatchNorm1d batch_norm(width);
  nn::Conv1d out(width, width, 1);
  nn::Linear head(width, 40);
  const Tensor bias = parameter({4, 1, width / 4});
  train(nn::ModuleList(smaller, start, before, norm, qkv, place, gated, local, batch_norm, out, head),
        [&] {
          const Tensor image = torch::relu(smaller(torch::randn({6, 1, 2 * length, 80})));
          Tensor x = start(image.transpose(1, 2).flatten(2));
          x = x + 0.5 * before->forward(x);
          const auto parts = qkv(norm(x)).chunk(3, -1);
          const Tensor q = heads_of(parts[0].contiguous(), 4);
          const Tensor r = heads_of(place(torch::randn({1, 2 * length - 1, width})), 4);
          const Tensor by_content = torch::matmul(q, heads_of(parts[1].contiguous(), 4).transpose(-2, -1));
          const Tensor shifted = torch::constant_pad_nd(torch::matmul(q + bias, r.transpose(-2, -1)), {1, 0});
          const Tensor by_place =
              shifted.view({6, 4, 2 * length, length}).slice(2, 1).reshape({6, 4, length, 2 * length - 1}).slice(3, 0, length);
          const Tensor weights = torch::softmax((by_content + by_place) / 5.0, -1);
          x = x + joined_heads(torch::matmul(weights, heads_of(parts[2].contiguous(), 4)));
          x = x + out(torch::silu(batch_norm(local(torch::glu(gated(x.transpose(1, 2)), 1))))).transpose(1, 2);
          return sequence_loss(head(x), labels(40, {6, length}));
        },
        {bias});
}

}  // namespace

std::vector<family> transformers() {
  return {{"encoder and decoder (T5-like)", encoder_decoder},
          {"linear attention", linear_attention},
          {"BERT, masked words", masked_language_model},
          {"Llama-like", llama},
          {"GPT that decodes with a KV cache", decoding},
          {"mixture of experts", mixture_of_experts},
          {"mixture of experts without a capacity", routed_experts},
          {"GPT under autocast", autocast},
          {"GPT in bfloat16, SGD", bfloat16},
          {"GPT that recomputes its blocks", recomputation},
          {"Conformer", conformer}};
}

}  // namespace unseen
