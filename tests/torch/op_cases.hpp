#pragma once

#include "op_battery.hpp"

#include <torch/torch.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The operators of the battery. Inputs are matrices of 64 x 96 unless a case tells others.

namespace battery {

namespace functional = torch::nn::functional;

[[nodiscard]] inline Tensor indices(std::int64_t below, std::vector<std::int64_t> sizes) {
  return torch::randint(below, sizes, torch::TensorOptions(torch::kLong).device(own_device()));
}

[[nodiscard]] inline Tensor zeros(std::vector<std::int64_t> sizes) { return torch::zeros(sizes, own_device()); }
[[nodiscard]] inline Tensor ones(std::vector<std::int64_t> sizes) { return torch::ones(sizes, own_device()); }

/// A layer whose parameters are where the case's tensors are.
template <class Layer>
[[nodiscard]] Layer placed(Layer layer) {
  layer->to(own_device());
  return layer;
}

inline void add_unary(std::vector<op_case>& cases, std::string name, Tensor (*run)(const Tensor&)) {
  cases.push_back({std::move(name), {{64, 96}}, [run](const tensors& x) { return run(x[0]); }});
}
inline void add_binary(std::vector<op_case>& cases, std::string name, Tensor (*run)(const Tensor&, const Tensor&)) {
  cases.push_back({std::move(name), {{64, 96}, {64, 96}}, [run](const tensors& x) { return run(x[0], x[1]); }});
}

inline void add_pointwise(std::vector<op_case>& cases) {
  const auto add = [&](const char* name, Tensor (*run)(const Tensor&)) { add_unary(cases, name, run); };
  add("relu", [](const Tensor& a) { return torch::relu(a); });
  add("relu6", [](const Tensor& a) { return torch::relu6(a); });
  add("gelu", [](const Tensor& a) { return torch::gelu(a); });
  add("gelu_tanh", [](const Tensor& a) { return torch::gelu(a, "tanh"); });
  add("silu", [](const Tensor& a) { return torch::silu(a); });
  add("mish", [](const Tensor& a) { return torch::mish(a); });
  add("sigmoid", [](const Tensor& a) { return torch::sigmoid(a); });
  add("log_sigmoid", [](const Tensor& a) { return torch::log_sigmoid(a); });
  add("tanh", [](const Tensor& a) { return torch::tanh(a); });
  add("hardtanh", [](const Tensor& a) { return torch::hardtanh(a); });
  add("hardswish", [](const Tensor& a) { return torch::hardswish(a); });
  add("hardsigmoid", [](const Tensor& a) { return torch::hardsigmoid(a); });
  add("leaky_relu", [](const Tensor& a) { return torch::leaky_relu(a); });
  add("elu", [](const Tensor& a) { return torch::elu(a); });
  add("selu", [](const Tensor& a) { return torch::selu(a); });
  add("celu", [](const Tensor& a) { return torch::celu(a); });
  add("softplus", [](const Tensor& a) { return torch::softplus(a); });
  add("softsign", [](const Tensor& a) { return functional::softsign(a); });
  add("threshold", [](const Tensor& a) { return torch::threshold(a, 0.1, 0.0); });
  add("exp", [](const Tensor& a) { return torch::exp(a); });
  add("expm1", [](const Tensor& a) { return torch::expm1(a); });
  add("log", [](const Tensor& a) { return torch::log(a.abs() + 1); });
  add("log1p", [](const Tensor& a) { return torch::log1p(a.abs()); });
  add("sqrt", [](const Tensor& a) { return torch::sqrt(a.abs() + 1); });
  add("rsqrt", [](const Tensor& a) { return torch::rsqrt(a.abs() + 1); });
  add("pow", [](const Tensor& a) { return a.pow(2); });
  add("square", [](const Tensor& a) { return a.square(); });
  add("reciprocal", [](const Tensor& a) { return (a.abs() + 1).reciprocal(); });
  add("neg", [](const Tensor& a) { return -a; });
  add("abs", [](const Tensor& a) { return a.abs(); });
  add("sign", [](const Tensor& a) { return a.sign() + a; });
  add("floor", [](const Tensor& a) { return a.floor() + a; });
  add("round", [](const Tensor& a) { return a.round() + a; });
  add("remainder", [](const Tensor& a) { return a.remainder(0.7); });
  add("clamp", [](const Tensor& a) { return a.clamp(-1, 1); });
  add("clamp_min", [](const Tensor& a) { return a.clamp_min(0); });
  add("nan_to_num", [](const Tensor& a) { return a.nan_to_num(); });
  add("cos", [](const Tensor& a) { return a.cos(); });
  add("sin", [](const Tensor& a) { return a.sin(); });
  add("erf", [](const Tensor& a) { return a.erf(); });
  add("add_scalar", [](const Tensor& a) { return a + 3; });
  add("mul_scalar", [](const Tensor& a) { return a * 3; });
  add("addcmul", [](const Tensor& a) { return torch::addcmul(a, a, a, 0.5); });
  add("addcdiv", [](const Tensor& a) { return torch::addcdiv(a, a, a.abs() + 1, 0.5); });
  add("lerp", [](const Tensor& a) { return torch::lerp(a, a * 2, 0.3); });
  add("where", [](const Tensor& a) { return torch::where(a > 0, a, a * 2); });
  add("masked_fill", [](const Tensor& a) { return a.masked_fill(a > 0, 0.F); });
  add("to_half", [](const Tensor& a) { return a.to(torch::kHalf).to(torch::kFloat); });
  add("to_bfloat16", [](const Tensor& a) { return a.to(torch::kBFloat16).to(torch::kFloat); });
  add("glu", [](const Tensor& a) { return torch::glu(a); });
  add("dropout", [](const Tensor& a) { return torch::dropout(a, 0.3, true); });
  add("alpha_dropout", [](const Tensor& a) { return torch::alpha_dropout(a, 0.3, true); });
  cases.push_back({"prelu", {{8, 64}, {1}}, [](const tensors& x) { return torch::prelu(x[0], x[1]); }});
  const auto add_two = [&](const char* name, Tensor (*run)(const Tensor&, const Tensor&)) { add_binary(cases, name, run); };
  add_two("add", [](const Tensor& a, const Tensor& b) { return a + b; });
  add_two("sub", [](const Tensor& a, const Tensor& b) { return a - b; });
  add_two("mul", [](const Tensor& a, const Tensor& b) { return a * b; });
  add_two("div", [](const Tensor& a, const Tensor& b) { return a / b; });
  add_two("maximum", [](const Tensor& a, const Tensor& b) { return torch::maximum(a, b); });
  add_two("minimum", [](const Tensor& a, const Tensor& b) { return torch::minimum(a, b); });
  add_two("atan2", [](const Tensor& a, const Tensor& b) { return torch::atan2(a, b); });
  add_two("pow_tensor", [](const Tensor& a, const Tensor& b) { return torch::pow(a.abs() + 1, b); });
  add_two("hypot", [](const Tensor& a, const Tensor& b) { return torch::hypot(a, b); });
  cases.push_back({"add_broadcast", {{64, 96}, {96}}, [](const tensors& x) { return x[0] + x[1]; }});
  cases.push_back({"mul_broadcast", {{8, 1, 16}, {4, 16}}, [](const tensors& x) { return x[0] * x[1]; }});
}

inline void add_reductions(std::vector<op_case>& cases) {
  const auto add = [&](const char* name, Tensor (*run)(const Tensor&)) { add_unary(cases, name, run); };
  add("sum", [](const Tensor& a) { return a.sum(); });
  add("sum_dim", [](const Tensor& a) { return a.sum(0); });
  add("mean", [](const Tensor& a) { return a.mean(); });
  add("mean_dim", [](const Tensor& a) { return a.mean(1, true); });
  add("max", [](const Tensor& a) { return a.max(); });
  add("max_dim", [](const Tensor& a) { return std::get<0>(a.max(1)); });
  add("min", [](const Tensor& a) { return a.min(); });
  add("min_dim", [](const Tensor& a) { return std::get<0>(a.min(1)); });
  add("amax", [](const Tensor& a) { return a.amax(1); });
  add("median", [](const Tensor& a) { return std::get<0>(a.median(1)); });
  add("std", [](const Tensor& a) { return a.std(); });
  add("var_dim", [](const Tensor& a) { return a.var(1); });
  add("var_mean", [](const Tensor& a) { return std::get<0>(torch::var_mean(a, 1)); });
  add("norm", [](const Tensor& a) { return a.norm(); });
  add("norm_dim", [](const Tensor& a) { return a.norm(2, 1); });
  add("cumsum", [](const Tensor& a) { return a.cumsum(1); });
  add("cumprod", [](const Tensor& a) { return a.cumprod(1); });
  add("prod", [](const Tensor& a) { return a.prod(); });
  add("prod_dim", [](const Tensor& a) { return a.prod(1); });
  add("logsumexp", [](const Tensor& a) { return torch::logsumexp(a, {1}); });
  add("softmax", [](const Tensor& a) { return torch::softmax(a, -1); });
  add("softmax_first", [](const Tensor& a) { return torch::softmax(a, 0); });
  add("log_softmax", [](const Tensor& a) { return torch::log_softmax(a, -1); });
  add("argmax", [](const Tensor& a) { return a + a.argmax(1, true); });
  add("topk", [](const Tensor& a) { return std::get<0>(a.topk(5)); });
  add("sort", [](const Tensor& a) { return std::get<0>(a.sort(1)); });
  add("argsort", [](const Tensor& a) { return a.gather(1, a.argsort(1, false)); });
  add("kthvalue", [](const Tensor& a) { return std::get<0>(a.kthvalue(3, 1)); });
  add("any", [](const Tensor& a) { return a * (a > 3).any(); });
  add("normalize", [](const Tensor& a) { return functional::normalize(a); });
  add("rms_normalise", [](const Tensor& a) { return a * torch::rsqrt(a.pow(2).mean(-1, true) + 1e-5); });
}

inline void add_shapes(std::vector<op_case>& cases) {
  using torch::indexing::Slice;
  const auto add = [&](const char* name, Tensor (*run)(const Tensor&)) { add_unary(cases, name, run); };
  add("t_contiguous", [](const Tensor& a) { return a.t().contiguous(); });
  add("reshape", [](const Tensor& a) { return a.reshape({96, 64}); });
  add("flatten_transposed", [](const Tensor& a) { return a.t().flatten(); });
  add("permute_clone", [](const Tensor& a) { return a.permute({1, 0}).clone(); });
  add("narrow", [](const Tensor& a) { return a.narrow(0, 1, 10) + 0; });
  add("chunk", [](const Tensor& a) { return a.chunk(4, 1)[1] * 2; });
  add("split", [](const Tensor& a) { return a.split(32, 1)[2] * a.split(32, 1)[0]; });
  add("unbind", [](const Tensor& a) { return a.unbind(0)[3] * 2; });
  add("select", [](const Tensor& a) { return a.select(0, 5) * 2; });
  add("slice", [](const Tensor& a) { return a.index({Slice(0, 10)}) * 1; });
  add("flip", [](const Tensor& a) { return a.flip({0}); });
  add("roll", [](const Tensor& a) { return a.roll(3, 0); });
  add("repeat", [](const Tensor& a) { return a.repeat({2, 3}); });
  add("repeat_interleave", [](const Tensor& a) { return a.repeat_interleave(2, 0); });
  add("expand", [](const Tensor& a) { return a.unsqueeze(0).expand({4, 64, 96}) * 1.5; });
  add("tril", [](const Tensor& a) { return a.tril(); });
  add("triu", [](const Tensor& a) { return a.triu(); });
  add("pad", [](const Tensor& a) { return functional::pad(a, functional::PadFuncOptions({1, 2})); });
  add("diagonal", [](const Tensor& a) { return a.diagonal() * 2; });
  add("unfold", [](const Tensor& a) { return a.unfold(1, 8, 4) * 2; });
  add("index_select", [](const Tensor& a) { return a.index_select(0, indices(64, {20})); });
  add("gather", [](const Tensor& a) { return a.gather(1, indices(96, {64, 7})); });
  add("take_along_dim", [](const Tensor& a) { return torch::take_along_dim(a, indices(96, {64, 7}), 1); });
  add("scatter", [](const Tensor& a) { return zeros({64, 96}).scatter(1, indices(96, {64, 96}), a); });
  add("scatter_add", [](const Tensor& a) { return zeros({64, 96}).scatter_add(1, indices(96, {64, 96}), a); });
  add("index_add", [](const Tensor& a) { return zeros({64, 96}).index_add(0, indices(64, {64}), a); });
  add("index_tensor", [](const Tensor& a) { return a.index({indices(64, {20})}); });
  add("index_put", [](const Tensor& a) { return a.index_put({indices(64, {20})}, zeros({20, 96})); });
  add("trace", [](const Tensor& a) { return a.index({Slice(), Slice(0, 64)}).trace(); });
  add("meshgrid", [](const Tensor& a) { return torch::meshgrid({a.select(0, 0), a.select(0, 1)}, "ij")[0] * 2; });
  const auto add_two = [&](const char* name, Tensor (*run)(const Tensor&, const Tensor&)) { add_binary(cases, name, run); };
  add_two("cat", [](const Tensor& a, const Tensor& b) { return torch::cat({a, b}, 0); });
  add_two("stack", [](const Tensor& a, const Tensor& b) { return torch::stack({a, b}); });
  add_two("hstack", [](const Tensor& a, const Tensor& b) { return torch::hstack({a, b}); });
  cases.push_back({"embedding", {{100, 32}}, [](const tensors& x) { return torch::embedding(x[0], indices(100, {8, 16})); }});
  cases.push_back({"pixel_shuffle", {{4, 16, 8, 8}}, [](const tensors& x) { return torch::pixel_shuffle(x[0], 2); }});
  cases.push_back({"im2col", {{2, 4, 16, 16}}, [](const tensors& x) {
                     return functional::unfold(x[0], functional::UnfoldFuncOptions({3, 3}));
                   }});
}

inline void add_matrices(std::vector<op_case>& cases) {
  add_unary(cases, "einsum", [](const Tensor& a) { return torch::einsum("ij,kj->ik", {a, a}); });
  add_unary(cases, "outer", [](const Tensor& a) { return torch::outer(a.select(0, 0), a.select(0, 1)); });
  add_unary(cases, "mv", [](const Tensor& a) { return torch::mv(a, a.select(0, 0)); });
  add_binary(cases, "mm", [](const Tensor& a, const Tensor& b) { return torch::mm(a, b.t()); });
  add_binary(cases, "addmm", [](const Tensor& a, const Tensor& b) { return torch::addmm(b, a, torch::eye(96, own_device())); });
  add_binary(cases, "dot", [](const Tensor& a, const Tensor& b) { return torch::dot(a.flatten(), b.flatten()); });
  add_binary(cases, "cdist", [](const Tensor& a, const Tensor& b) { return torch::cdist(a, b); });
  cases.push_back({"bmm", {{4, 16, 32}, {4, 32, 8}}, [](const tensors& x) { return torch::bmm(x[0], x[1]); }});
  cases.push_back({"matmul4", {{2, 4, 16, 32}, {2, 4, 32, 16}}, [](const tensors& x) { return torch::matmul(x[0], x[1]); }});
  cases.push_back({"matmul_broadcast", {{2, 4, 16, 32}, {32, 16}}, [](const tensors& x) { return torch::matmul(x[0], x[1]); }});
  cases.push_back(
      {"baddbmm", {{4, 16, 8}, {4, 16, 32}, {4, 32, 8}}, [](const tensors& x) { return torch::baddbmm(x[0], x[1], x[2]); }});
  cases.push_back({"linear2d", {{64, 32}, {48, 32}, {48}}, [](const tensors& x) { return torch::linear(x[0], x[1], x[2]); }});
  cases.push_back({"linear3d", {{4, 16, 32}, {48, 32}, {48}}, [](const tensors& x) { return torch::linear(x[0], x[1], x[2]); }});
  cases.push_back({"linear_without_bias", {{4, 16, 32}, {48, 32}}, [](const tensors& x) { return torch::linear(x[0], x[1]); }});
  cases.push_back(
      {"bilinear", {{8, 16}, {8, 12}, {4, 16, 12}}, [](const tensors& x) { return torch::bilinear(x[0], x[1], x[2], {}); }});
}

inline void add_losses(std::vector<op_case>& cases) {
  const auto add = [&](const char* name, Tensor (*run)(const Tensor&, const Tensor&)) { add_binary(cases, name, run); };
  add("mse_loss", [](const Tensor& a, const Tensor& b) { return torch::mse_loss(a, b); });
  add("l1_loss", [](const Tensor& a, const Tensor& b) { return torch::l1_loss(a, b); });
  add("smooth_l1_loss", [](const Tensor& a, const Tensor& b) { return torch::smooth_l1_loss(a, b); });
  add("huber_loss", [](const Tensor& a, const Tensor& b) { return torch::huber_loss(a, b); });
  add("bce", [](const Tensor& a, const Tensor& b) { return torch::binary_cross_entropy(a.sigmoid(), b.sigmoid().detach()); });
  add("bce_with_logits",
      [](const Tensor& a, const Tensor& b) { return torch::binary_cross_entropy_with_logits(a, b.sigmoid()); });
  add("kl_div", [](const Tensor& a, const Tensor& b) { return torch::kl_div(a.log_softmax(-1), b.softmax(-1)); });
  add("cosine_similarity", [](const Tensor& a, const Tensor& b) { return torch::cosine_similarity(a, b); });
  add("soft_margin_loss", [](const Tensor& a, const Tensor& b) { return torch::soft_margin_loss(a, b.sign().detach()); });
  add("margin_ranking_loss", [](const Tensor& a, const Tensor& b) { return torch::margin_ranking_loss(a, b, ones({64, 96})); });
  cases.push_back(
      {"cross_entropy", {{64, 100}}, [](const tensors& x) { return torch::cross_entropy_loss(x[0], indices(100, {64})); }});
  cases.push_back({"cross_entropy_smoothed", {{64, 100}}, [](const tensors& x) {
                     return torch::cross_entropy_loss(x[0], indices(100, {64}), {}, at::Reduction::Mean, -100, 0.1);
                   }});
  cases.push_back(
      {"nll_loss", {{64, 100}}, [](const tensors& x) { return torch::nll_loss(x[0].log_softmax(1), indices(100, {64})); }});
  cases.push_back({"nll_loss2d", {{4, 10, 8, 8}}, [](const tensors& x) {
                     return torch::nll_loss2d(x[0].log_softmax(1), indices(10, {4, 8, 8}));
                   }});
}

inline void add_convolutions(std::vector<op_case>& cases) {
  const auto add = [&](const char* name, std::vector<std::vector<std::int64_t>> shapes, Tensor (*run)(const tensors&)) {
    cases.push_back({name, std::move(shapes), run});
  };
  add("conv1d", {{4, 8, 64}, {16, 8, 3}, {16}}, [](const tensors& x) { return torch::conv1d(x[0], x[1], x[2], 1, 1); });
  add("conv2d", {{4, 8, 32, 32}, {16, 8, 3, 3}, {16}}, [](const tensors& x) { return torch::conv2d(x[0], x[1], x[2], 1, 1); });
  add("conv2d_1x1", {{4, 8, 32, 32}, {16, 8, 1, 1}}, [](const tensors& x) { return torch::conv2d(x[0], x[1]); });
  add("conv2d_strided", {{4, 8, 32, 32}, {16, 8, 3, 3}, {16}},
      [](const tensors& x) { return torch::conv2d(x[0], x[1], x[2], 2, 1); });
  add("conv2d_depthwise", {{4, 8, 32, 32}, {8, 1, 3, 3}, {8}},
      [](const tensors& x) { return torch::conv2d(x[0], x[1], x[2], 1, 1, 1, 8); });
  add("conv_transpose2d", {{4, 8, 16, 16}, {8, 16, 2, 2}, {16}},
      [](const tensors& x) { return torch::conv_transpose2d(x[0], x[1], x[2], 2); });
  add("conv3d", {{2, 4, 8, 16, 16}, {8, 4, 3, 3, 3}, {8}},
      [](const tensors& x) { return torch::conv3d(x[0], x[1], x[2], 1, 1); });
  add("max_pool1d", {{4, 8, 32}}, [](const tensors& x) { return torch::max_pool1d(x[0], 2); });
  add("max_pool2d", {{4, 8, 32, 32}}, [](const tensors& x) { return torch::max_pool2d(x[0], 2); });
  add("avg_pool2d", {{4, 8, 32, 32}}, [](const tensors& x) { return torch::avg_pool2d(x[0], 2); });
  add("adaptive_avg_pool2d_1", {{4, 8, 32, 32}}, [](const tensors& x) { return torch::adaptive_avg_pool2d(x[0], {1, 1}); });
  add("adaptive_avg_pool2d_7", {{4, 8, 32, 32}}, [](const tensors& x) { return torch::adaptive_avg_pool2d(x[0], {7, 7}); });
  add("adaptive_max_pool2d", {{4, 8, 32, 32}}, [](const tensors& x) {
    return std::get<0>(torch::adaptive_max_pool2d(x[0], {7, 7}));
  });
  add("upsample_nearest", {{4, 8, 16, 16}}, [](const tensors& x) { return torch::upsample_nearest2d(x[0], {32, 32}); });
  add("upsample_bilinear", {{4, 8, 16, 16}}, [](const tensors& x) { return torch::upsample_bilinear2d(x[0], {32, 32}, false); });
  add("grid_sample", {{2, 4, 16, 16}, {2, 8, 8, 2}}, [](const tensors& x) {
    return functional::grid_sample(x[0], x[1], functional::GridSampleFuncOptions().align_corners(false));
  });
}

inline void add_layers(std::vector<op_case>& cases) {
  const auto add = [&](const char* name, std::vector<std::vector<std::int64_t>> shapes, Tensor (*run)(const tensors&)) {
    cases.push_back({name, std::move(shapes), run});
  };
  add("layer_norm", {{64, 96}}, [](const tensors& x) { return torch::layer_norm(x[0], {96}); });
  add("layer_norm_affine", {{8, 16, 64}, {64}, {64}}, [](const tensors& x) { return torch::layer_norm(x[0], {64}, x[1], x[2]); });
  add("batch_norm", {{8, 16, 12, 12}, {16}, {16}},
      [](const tensors& x) { return torch::batch_norm(x[0], x[1], x[2], zeros({16}), ones({16}), true, 0.1, 1e-5, false); });
  add("batch_norm_evaluation", {{8, 16, 12, 12}, {16}, {16}},
      [](const tensors& x) { return torch::batch_norm(x[0], x[1], x[2], zeros({16}), ones({16}), false, 0.1, 1e-5, false); });
  add("group_norm", {{8, 16, 12, 12}, {16}, {16}}, [](const tensors& x) { return torch::group_norm(x[0], 4, x[1], x[2]); });
  add("group_norm_transposed", {{8, 16, 12, 12}, {16}, {16}},
      [](const tensors& x) { return torch::group_norm(x[0].transpose(2, 3), 4, x[1], x[2]); });
  add("instance_norm", {{8, 16, 12, 12}},
      [](const tensors& x) { return torch::instance_norm(x[0], {}, {}, {}, {}, true, 0.1, 1e-5, false); });
  add("attention_causal", {{2, 4, 64, 16}, {2, 4, 64, 16}, {2, 4, 64, 16}},
      [](const tensors& x) { return at::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true); });
  add("attention_masked", {{2, 4, 64, 16}, {2, 4, 64, 16}, {2, 4, 64, 16}}, [](const tensors& x) {
    return at::scaled_dot_product_attention(
        x[0], x[1], x[2], torch::ones({64, 64}, torch::TensorOptions(torch::kBool).device(own_device())), 0.0, false);
  });
  add("attention_dropout", {{2, 4, 64, 16}, {2, 4, 64, 16}, {2, 4, 64, 16}},
      [](const tensors& x) { return at::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.1, true); });
  add("multihead_attention", {{10, 4, 32}}, [](const tensors& x) {
    auto layer = placed(torch::nn::MultiheadAttention(torch::nn::MultiheadAttentionOptions(32, 4)));
    return std::get<0>(layer->forward(x[0], x[0], x[0]));
  });
  add("transformer_encoder", {{10, 4, 32}}, [](const tensors& x) {
    auto layer = placed(torch::nn::TransformerEncoderLayer(torch::nn::TransformerEncoderLayerOptions(32, 4).dropout(0.0)));
    return layer->forward(x[0]);
  });
  add("rnn", {{10, 4, 16}}, [](const tensors& x) { return std::get<0>(placed(torch::nn::RNN(16, 32))->forward(x[0])); });
  add("gru", {{10, 4, 16}}, [](const tensors& x) { return std::get<0>(placed(torch::nn::GRU(16, 32))->forward(x[0])); });
  add("lstm", {{10, 4, 16}}, [](const tensors& x) {
    const bool had_onednn = at::globalContext().userEnabledMkldnn();
    at::globalContext().setUserEnabledMkldnn(false);
    auto output = std::get<0>(placed(torch::nn::LSTM(16, 32))->forward(x[0]));
    at::globalContext().setUserEnabledMkldnn(had_onednn);
    return output;
  });
  add("lstm_onednn", {{10, 4, 16}}, [](const tensors& x) { return std::get<0>(placed(torch::nn::LSTM(16, 32))->forward(x[0])); });
  add("lstm_cell", {{4, 16}}, [](const tensors& x) { return std::get<0>(placed(torch::nn::LSTMCell(16, 32))->forward(x[0])); });
  add("embedding_bag", {{100, 32}}, [](const tensors& x) {
    return std::get<0>(torch::embedding_bag(x[0], indices(100, {40}), torch::arange(0, 40, 10, own_device())));
  });
}

[[nodiscard]] inline std::vector<op_case> make_cases() {
  std::vector<op_case> cases;
  add_pointwise(cases);
  add_reductions(cases);
  add_shapes(cases);
  add_matrices(cases);
  add_losses(cases);
  add_convolutions(cases);
  add_layers(cases);
  return cases;
}

}  // namespace battery
