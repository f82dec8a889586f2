#include <torch_gpt/model.hpp>

#include <memprof/memprof.hpp>

namespace torch_gpt {
namespace {

torch::nn::Linear linear(std::int64_t inputs, std::int64_t outputs, bool has_bias) {
  return torch::nn::Linear{torch::nn::LinearOptions(inputs, outputs).bias(has_bias)};
}

}  // namespace

norm_impl::norm_impl(const model_config& config) {
  weight = register_parameter("weight", torch::ones({config.d_model}));
  if (!config.is_llama()) bias = register_parameter("bias", torch::zeros({config.d_model}));
}

at::Tensor norm_impl::forward(const at::Tensor& input) {
  constexpr double epsilon = 1e-5;
  if (bias.defined()) return at::layer_norm(input, weight.sizes(), weight, bias, epsilon);
  return input * at::rsqrt(input.pow(2).mean(-1, true) + epsilon) * weight;
}

attention_impl::attention_impl(const model_config& dimensions) : config{dimensions} {
  qkv = register_module("qkv", linear(config.d_model, 3 * config.d_model, !config.is_llama()));
  projection = register_module("projection", linear(config.d_model, config.d_model, !config.is_llama()));
  if (!config.is_llama()) return;
  const std::int64_t head_width = config.d_model / config.heads;
  const at::Tensor frequencies = at::pow(10000.0, -at::arange(0, head_width, 2, at::kFloat) / static_cast<double>(head_width));
  const at::Tensor angles = at::outer(at::arange(config.seq_len, at::kFloat), frequencies);
  cosines = register_buffer("cosines", at::cat({angles, angles}, -1).cos());
  sines = register_buffer("sines", at::cat({angles, angles}, -1).sin());
}

at::Tensor attention_impl::heads_of(const at::Tensor& part) const {
  return part.view({part.size(0), part.size(1), config.heads, -1}).transpose(1, 2);
}

at::Tensor attention_impl::rotate(const at::Tensor& heads) const {
  const std::vector<at::Tensor> halves = heads.chunk(2, -1);
  const std::int64_t time = heads.size(2);
  return heads * cosines.slice(0, 0, time) + at::cat({-halves[1], halves[0]}, -1) * sines.slice(0, 0, time);
}

at::Tensor attention_impl::forward(const at::Tensor& input) {
  const auto scope = memprof::track_operation<"attention">();
  const std::vector<at::Tensor> parts = qkv(input).chunk(3, -1);
  at::Tensor queries = heads_of(parts[0]);
  at::Tensor keys = heads_of(parts[1]);
  if (config.is_llama()) {
    queries = rotate(queries);
    keys = rotate(keys);
  }
  const at::Tensor attended = at::scaled_dot_product_attention(queries, keys, heads_of(parts[2]), {}, 0.0, true);
  return projection(attended.transpose(1, 2).reshape(input.sizes()));
}

mlp_impl::mlp_impl(const model_config& config) {
  const std::int64_t width = 4 * config.d_model;
  if (config.is_llama()) gate = register_module("gate", linear(config.d_model, width, false));
  up = register_module("up", linear(config.d_model, width, !config.is_llama()));
  down = register_module("down", linear(width, config.d_model, !config.is_llama()));
}

at::Tensor mlp_impl::forward(const at::Tensor& input) {
  const auto scope = memprof::track_operation<"mlp">();
  return gate.is_empty() ? down(at::gelu(up(input))) : down(at::silu(gate(input)) * up(input));
}

block_impl::block_impl(const model_config& config) {
  before_attention = register_module("before_attention", norm{config});
  attend = register_module("attention", attention{config});
  before_mlp = register_module("before_mlp", norm{config});
  feed = register_module("mlp", mlp{config});
}

at::Tensor block_impl::forward(const at::Tensor& input) {
  const auto scope = memprof::track_operation<"block">();
  const at::Tensor middle = input + attend(before_attention(input));
  return middle + feed(before_mlp(middle));
}

decoder_impl::decoder_impl(const model_config& dimensions) : config{dimensions} {
  tokens_embedding = register_module("tokens", torch::nn::Embedding{config.vocabulary, config.d_model});
  if (!config.is_llama()) {
    positions_embedding = register_module("positions", torch::nn::Embedding{config.seq_len, config.d_model});
  }
  register_module("blocks", blocks);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) blocks->push_back(block{config});
  last_norm = register_module("last_norm", norm{config});
  head = register_module("head", linear(config.d_model, config.vocabulary, false));
}

at::Tensor decoder_impl::forward(const at::Tensor& tokens, const at::Tensor& targets) {
  const auto scope = memprof::track_operation<"forward">();
  at::Tensor stream = tokens_embedding(tokens);
  if (!positions_embedding.is_empty()) stream = stream + positions_embedding(at::arange(tokens.size(1), tokens.options()));
  for (const auto& layer : *blocks) stream = layer->as<block_impl>()->forward(stream);
  const auto head_scope = memprof::track_operation<"head">();
  const at::Tensor logits = head(last_norm(stream));
  return torch::nn::functional::cross_entropy(logits.view({-1, config.vocabulary}), targets.view({-1}));
}

std::int64_t decoder_impl::parameter_count() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace torch_gpt
