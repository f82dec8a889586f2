#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

/// @file
/// Language models as a user of libtorch writes them, and the training of one: nothing here knows of memprof.

namespace models {

struct options {
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t key_heads = 4;  ///< fewer than `heads`: grouped-query attention, Llama only
  std::int64_t vocabulary = 256;
  std::int64_t context = 32;
  std::int64_t batch = 2;
  std::int64_t hidden = 0;  ///< of a feed-forward layer; 0: four times the width
  bool fused_attention = false;
  bool tied_head = false;
  double dropout = 0.0;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  [[nodiscard]] std::int64_t hidden_width() const { return hidden == 0 ? 4 * width : hidden; }
};

inline torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                               const torch::Tensor& future, const options& chosen) {
  if (chosen.fused_attention) return at::scaled_dot_product_attention(query, key, value, {}, chosen.dropout, true);
  auto scores = torch::matmul(query, key.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  scores = torch::softmax(scores, -1);
  if (chosen.dropout > 0) scores = torch::dropout(scores, chosen.dropout, true);
  return torch::matmul(scores, value);
}

inline torch::Tensor future_mask(std::int64_t context) { return torch::ones({context, context}, torch::kBool).triu(1); }

inline torch::Tensor loss_of(const torch::Tensor& logits, const torch::Tensor& targets) {
  return torch::nn::functional::cross_entropy(logits.view({-1, logits.size(-1)}), targets.view({-1}));
}

inline torch::nn::Linear without_bias(std::int64_t from, std::int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

// --- GPT-2 ------------------------------------------------------------------------------------------------------------

struct gpt_blockImpl : torch::nn::Module {
  explicit gpt_blockImpl(const options& wanted)
      : chosen(wanted),
        norm1(register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({wanted.width})))),
        qkv(register_module("qkv", torch::nn::Linear(wanted.width, 3 * wanted.width))),
        projection(register_module("projection", torch::nn::Linear(wanted.width, wanted.width))),
        norm2(register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({wanted.width})))),
        up(register_module("up", torch::nn::Linear(wanted.width, wanted.hidden_width()))),
        down(register_module("down", torch::nn::Linear(wanted.hidden_width(), wanted.width))) {}

  torch::Tensor forward(torch::Tensor x, const torch::Tensor& future) {
    const auto batch = x.size(0);
    const auto context = x.size(1);
    const auto parts = qkv(norm1(x)).split(chosen.width, -1);
    const auto heads = [&](const torch::Tensor& part) {
      return part.view({batch, context, chosen.heads, chosen.head_width()}).transpose(1, 2);
    };
    auto mixed = attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), future, chosen);
    mixed = mixed.transpose(1, 2).contiguous().view({batch, context, chosen.width});
    x = x + projection(mixed);
    x = x + down(torch::gelu(up(norm2(x))));
    return x;
  }

  options chosen;
  torch::nn::LayerNorm norm1;
  torch::nn::Linear qkv;
  torch::nn::Linear projection;
  torch::nn::LayerNorm norm2;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(gpt_block);

struct gptImpl : torch::nn::Module {
  explicit gptImpl(const options& wanted)
      : tokens(register_module("tokens", torch::nn::Embedding(wanted.vocabulary, wanted.width))),
        positions(register_module("positions", torch::nn::Embedding(wanted.context, wanted.width))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({wanted.width})))),
        head(register_module("head", without_bias(wanted.width, wanted.vocabulary))),
        future(register_buffer("future", future_mask(wanted.context))) {
    for (std::int64_t layer = 0; layer < wanted.layers; ++layer) blocks->push_back(gpt_block(wanted));
    if (wanted.tied_head) head->weight = tokens->weight;
  }

  torch::Tensor forward(const torch::Tensor& inputs, const torch::Tensor& targets) {
    const auto context = inputs.size(1);
    auto x = tokens(inputs) + positions(torch::arange(context, torch::TensorOptions(torch::kLong).device(inputs.device())));
    for (const auto& block : *blocks) x = block->as<gpt_block>()->forward(x, future);
    return loss_of(head(norm(x)), targets);
  }

  torch::nn::Embedding tokens;
  torch::nn::Embedding positions;
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
  torch::Tensor future;
};
TORCH_MODULE(gpt);

// --- Llama ------------------------------------------------------------------------------------------------------------

struct rms_normImpl : torch::nn::Module {
  explicit rms_normImpl(std::int64_t width) : weight(register_parameter("weight", torch::ones({width}))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    auto wide = x.to(torch::kFloat);
    wide = wide * torch::rsqrt(wide.pow(2).mean(-1, true) + 1e-5);
    return wide.to(x.scalar_type()) * weight;
  }

  torch::Tensor weight;
};
TORCH_MODULE(rms_norm);

/// Rotary positions: cosine and sine of every position and pair of channels, (context, head width).
struct rotation {
  torch::Tensor cosine;
  torch::Tensor sine;

  static rotation make(std::int64_t context, std::int64_t head_width) {
    const auto frequencies = 1.0 / torch::pow(10000.0, torch::arange(0, head_width, 2, torch::kFloat) / head_width);
    const auto angles = torch::outer(torch::arange(context, torch::kFloat), frequencies);
    const auto both = torch::cat({angles, angles}, -1);
    return {both.cos(), both.sin()};
  }

  [[nodiscard]] torch::Tensor apply(const torch::Tensor& x) const {
    const auto half = x.size(-1) / 2;
    const auto turned = torch::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
    return x * cosine.to(x.scalar_type()) + turned * sine.to(x.scalar_type());
  }
};

struct llama_blockImpl : torch::nn::Module {
  explicit llama_blockImpl(const options& wanted)
      : chosen(wanted),
        norm1(register_module("norm1", rms_norm(wanted.width))),
        query(register_module("query", without_bias(wanted.width, wanted.width))),
        key(register_module("key", without_bias(wanted.width, wanted.key_heads * wanted.head_width()))),
        value(register_module("value", without_bias(wanted.width, wanted.key_heads * wanted.head_width()))),
        projection(register_module("projection", without_bias(wanted.width, wanted.width))),
        norm2(register_module("norm2", rms_norm(wanted.width))),
        gate(register_module("gate", without_bias(wanted.width, wanted.hidden_width()))),
        up(register_module("up", without_bias(wanted.width, wanted.hidden_width()))),
        down(register_module("down", without_bias(wanted.hidden_width(), wanted.width))) {}

  torch::Tensor forward(torch::Tensor x, const rotation& positions, const torch::Tensor& future) {
    const auto batch = x.size(0);
    const auto context = x.size(1);
    const auto width = chosen.head_width();
    auto h = norm1(x);
    const auto heads = [&](const torch::Tensor& part, std::int64_t count) {
      return part.view({batch, context, count, width}).transpose(1, 2);
    };
    auto q = positions.apply(heads(query(h), chosen.heads));
    auto k = positions.apply(heads(key(h), chosen.key_heads));
    auto v = heads(value(h), chosen.key_heads);
    if (chosen.key_heads != chosen.heads) {
      const auto group = chosen.heads / chosen.key_heads;
      const auto repeated = [&](const torch::Tensor& part) {
        return part.unsqueeze(2)
            .expand({batch, chosen.key_heads, group, context, width})
            .reshape({batch, chosen.heads, context, width});
      };
      k = repeated(k);
      v = repeated(v);
    }
    const auto mixed = attention(q, k, v, future, chosen).transpose(1, 2).contiguous().view({batch, context, chosen.width});
    x = x + projection(mixed);
    h = norm2(x);
    return x + down(torch::silu(gate(h)) * up(h));
  }

  options chosen;
  rms_norm norm1;
  torch::nn::Linear query;
  torch::nn::Linear key;
  torch::nn::Linear value;
  torch::nn::Linear projection;
  rms_norm norm2;
  torch::nn::Linear gate;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(llama_block);

struct llamaImpl : torch::nn::Module {
  explicit llamaImpl(const options& wanted)
      : tokens(register_module("tokens", torch::nn::Embedding(wanted.vocabulary, wanted.width))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        norm(register_module("norm", rms_norm(wanted.width))),
        head(register_module("head", without_bias(wanted.width, wanted.vocabulary))),
        future(register_buffer("future", future_mask(wanted.context))),
        positions(rotation::make(wanted.context, wanted.head_width())) {
    positions.cosine = register_buffer("cosine", positions.cosine);
    positions.sine = register_buffer("sine", positions.sine);
    for (std::int64_t layer = 0; layer < wanted.layers; ++layer) blocks->push_back(llama_block(wanted));
    if (wanted.tied_head) head->weight = tokens->weight;
  }

  torch::Tensor forward(const torch::Tensor& inputs, const torch::Tensor& targets) {
    const rotation moved{named_buffers()["cosine"], named_buffers()["sine"]};  // to() replaces buffers, not our members
    auto x = tokens(inputs);
    for (const auto& block : *blocks) x = block->as<llama_block>()->forward(x, moved, named_buffers()["future"]);
    return loss_of(head(norm(x)), targets);
  }

  torch::nn::Embedding tokens;
  torch::nn::ModuleList blocks;
  rms_norm norm;
  torch::nn::Linear head;
  torch::Tensor future;
  rotation positions;
};
TORCH_MODULE(llama);

// --- training ---------------------------------------------------------------------------------------------------------

enum class optimizer_kind { sgd, adam, adamw };

struct training {
  int steps = 2;
  int micro_batches = 1;  ///< whose gradients are added up before a step
  optimizer_kind optimizer = optimizer_kind::adamw;
  bool clips_gradients = false;
  torch::Device device = torch::kCPU;
  torch::ScalarType dtype = torch::kFloat;
};

inline std::unique_ptr<torch::optim::Optimizer> make_optimizer(optimizer_kind kind, std::vector<torch::Tensor> parameters) {
  using namespace torch::optim;
  switch (kind) {
    case optimizer_kind::sgd: return std::make_unique<SGD>(std::move(parameters), SGDOptions(0.1).momentum(0.9));
    case optimizer_kind::adam: return std::make_unique<Adam>(std::move(parameters), AdamOptions(1e-3));
    case optimizer_kind::adamw: break;
  }
  return std::make_unique<AdamW>(std::move(parameters), AdamWOptions(1e-3));
}

/// Trains a model on random tokens; `after(name)` is called at the end of each phase.
template <class Model, class After>
void train(Model model, const options& chosen, const training& run, After after) {
  if (run.dtype != torch::kFloat) model->to(run.dtype);
  if (!run.device.is_cpu()) model->to(run.device);
  after("MODEL_CREATION");
  const auto optimizer = make_optimizer(run.optimizer, model->parameters());
  after("OPTIMIZER_CREATION");
  for (int step = 0; step < run.steps; ++step) {
    optimizer->zero_grad();
    for (int micro_batch = 0; micro_batch < run.micro_batches; ++micro_batch) {
      auto inputs = torch::randint(chosen.vocabulary, {chosen.batch, chosen.context}, torch::kLong).to(run.device);
      auto targets = torch::randint(chosen.vocabulary, {chosen.batch, chosen.context}, torch::kLong).to(run.device);
      after("DATA");
      const auto loss = model->forward(inputs, targets);
      after("FORWARD_PASS");
      loss.backward();
      after("BACKWARD_PASS");
      (void)loss.template item<float>();
    }
    if (run.clips_gradients) torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer->step();
    after("OPTIMIZER_STEP");
  }
}

}  // namespace models
