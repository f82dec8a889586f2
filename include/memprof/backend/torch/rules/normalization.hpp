#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/Parallel.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Layer, batch and group normalisation. Their shape functions in C++ are compositions of other operators, which allocate
/// otherwise than the kernels (aten/src/ATen/native/layer_norm.cpp, Normalization.cpp, group_norm.cpp).

namespace memprof::detail {

[[nodiscard]] inline std::int64_t product_of(const std::vector<std::int64_t>& sizes) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

/// The type of mean and reciprocal deviation: on CUDA that of the accumulation, on the CPU that of the parameters if the input is
/// of another, narrower type.
[[nodiscard]] inline at::ScalarType statistics_type(const at::Tensor& input, const at::Tensor& weight) {
  if (torch_call::is_on_cuda(input)) return accumulation_type(input.scalar_type());
  return weight.defined() && weight.scalar_type() != input.scalar_type() ? at::kFloat : input.scalar_type();
}

/// (input, normalized_shape, weight, bias, eps) -> (output, mean, rstd)
inline void layer_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> normalized = call.integers(1);
  const at::Tensor contiguous = torch_call::contiguous(input);
  const std::int64_t row = product_of(normalized);
  const std::int64_t rows = row == 0 ? 0 : input.numel() / row;
  const at::ScalarType dtype = statistics_type(input, call.tensor(2));
  const at::Tensor output = torch_call::empty(input.sizes(), input);
  const at::Tensor mean = torch_call::empty({rows}, input, dtype);
  const at::Tensor deviation = torch_call::empty({rows}, input, dtype);
  std::vector<std::int64_t> statistics = input.sizes().vec();
  for (std::size_t index = statistics.size() - normalized.size(); index < statistics.size(); ++index) statistics[index] = 1;
  call.returns(output, torch_call::viewed(mean, statistics), torch_call::viewed(deviation, statistics));
}

/// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask) -> gradients of input, weight, bias
inline void layer_norm_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(5);
  const at::Tensor bias = call.tensor(6);
  const at::Tensor contiguous_gradient = torch_call::contiguous(call.tensor(0));
  const at::Tensor contiguous = torch_call::contiguous(input);
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(7, 0)) of_input = torch_call::empty(input.sizes(), input);
  if (call.wants(7, 1) && weight.defined()) of_weight = torch_call::empty(weight.sizes(), weight);
  if (call.wants(7, 2) && bias.defined()) of_bias = torch_call::empty(bias.sizes(), bias);
  at::Tensor sums_of_threads;
  if (!torch_call::is_on_cuda(input) && (of_weight.defined() || of_bias.defined())) {
    sums_of_threads = torch_call::empty({2, at::get_num_threads(), product_of(call.integers(2))}, input);
  }
  call.returns(of_input, of_weight, of_bias);
}

/// Results of batch normalisation in training; in evaluation the statistics are empty. The CPU kernel has means and sums of
/// squares of the channels beside them, and then a factor and a summand for each.
inline void return_batch_norm(torch_call& call, bool is_training) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> channels{input.size(1)};
  const std::vector<std::int64_t> saved{is_training ? input.size(1) : 0};
  const bool is_on_cpu = !torch_call::is_on_cuda(input);
  const at::ScalarType dtype = accumulation_type(input.scalar_type());
  at::Tensor output = torch_call::empty_like(input);
  at::Tensor mean = torch_call::empty(saved, input, dtype);
  at::Tensor deviation = torch_call::empty(saved, input, dtype);
  if (is_on_cpu) {
    if (is_training) {
      const at::Tensor means = torch_call::empty(channels, input, dtype);
      const at::Tensor squares = torch_call::empty(channels, input, dtype);
    }
    const at::Tensor factors = torch_call::empty(channels, input, dtype);
    const at::Tensor summands = torch_call::empty(channels, input, dtype);
  }
  call.returns(std::move(output), std::move(mean), std::move(deviation));
}

/// (input, weight, bias, running_mean, running_var, training, momentum, eps) -> (output, save_mean, save_invstd)
inline void batch_norm_rule(torch_call& call) { return_batch_norm(call, call.flag(5)); }

/// The same without running statistics: (input, weight, bias, training, momentum, eps)
inline void batch_norm_no_statistics_rule(torch_call& call) { return_batch_norm(call, call.flag(3)); }

/// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
inline void batch_norm_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(2);
  const at::Tensor& parameter = weight.defined() ? weight : input;
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(9, 0)) of_input = torch_call::empty_like(input);
  if (call.wants(9, 1)) of_weight = torch_call::empty({input.size(1)}, parameter);
  if (call.wants(9, 2)) of_bias = torch_call::empty({input.size(1)}, parameter);
  at::Tensor deviation;
  if (!torch_call::is_on_cuda(input)) deviation = torch_call::empty({input.size(1)}, parameter);
  call.returns(of_input, of_weight, of_bias);
}

/// What the kernels of group normalisation compute with: the tensor in the order of the input's dimensions, on CUDA contiguous.
/// In older versions autograd and what calls the kernels see to that, and there is nothing left to copy.
[[nodiscard]] inline at::Tensor as_group_norm_reads(const at::Tensor& tensor, const at::Tensor& input) {
  return torch_call::contiguous(tensor,
                                torch_call::is_on_cuda(input) ? c10::MemoryFormat::Contiguous : input.suggest_memory_format());
}

/// (input, weight, bias, N, C, HxW, group, eps) -> (output, mean, rstd)
inline void group_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor contiguous = as_group_norm_reads(input, input);
  const at::ScalarType dtype = statistics_type(input, call.tensor(1));
  const at::Tensor output = torch_call::empty_like(contiguous);
  const at::Tensor mean = torch_call::empty({call.integer(3), call.integer(6)}, input, dtype);
  const at::Tensor deviation = torch_call::empty({call.integer(3), call.integer(6)}, input, dtype);
  call.returns(output, mean, deviation);
}

/// (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
inline void group_norm_backward_rule(torch_call& call) {
  const at::Tensor told = call.tensor(1);
  const at::Tensor weight = call.tensor(4);
  const std::vector<std::int64_t> channels{call.integer(6)};
  const at::Tensor gradient = as_group_norm_reads(call.tensor(0), told);
  const at::Tensor input = as_group_norm_reads(told, told);
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(9, 0)) of_input = torch_call::empty_like(input);
  if (call.wants(9, 1)) of_weight = torch_call::empty(channels, weight.defined() ? weight : input);
  if (call.wants(9, 2)) of_bias = torch_call::empty(channels, weight.defined() ? weight : input);
  // Of every image and channel: the sum of the gradient, and that of its product with the input.
  const at::ScalarType dtype = accumulation_type(input.scalar_type());
  const at::Tensor products = torch_call::empty({call.integer(5), call.integer(6)}, input, dtype);
  const at::Tensor sums = torch_call::empty({call.integer(5), call.integer(6)}, input, dtype);
  call.returns(of_input, of_weight, of_bias);
}

inline constexpr known_rule normalization_rules[] = {
    {"aten::native_layer_norm", layer_norm_rule},
    {"aten::native_layer_norm_backward", layer_norm_backward_rule},
    {"aten::native_batch_norm", batch_norm_rule},
    {"aten::_native_batch_norm_legit", batch_norm_rule},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_no_statistics_rule},
    {"aten::native_batch_norm_backward", batch_norm_backward_rule},
    {"aten::native_group_norm", group_norm_rule},
    {"aten::native_group_norm_backward", group_norm_backward_rule},
};

}  // namespace memprof::detail
