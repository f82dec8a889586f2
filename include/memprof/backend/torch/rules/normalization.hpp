#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/version.hpp>

#include <ATen/Parallel.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

/// @file
/// Layer, batch and group normalisation. Their shape functions in C++ are compositions of other operators, which allocate
/// differently from the kernels (aten/src/ATen/native/layer_norm.cpp, Normalization.cpp, group_norm.cpp).

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline std::int64_t product_of(const std::vector<std::int64_t>& sizes) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

[[nodiscard]] inline at::Tensor contiguous_or_undefined(const at::Tensor& tensor) {
  return tensor.defined() ? torch_call::contiguous(tensor) : at::Tensor{};
}

[[nodiscard]] inline at::ScalarType statistics_type_of_parameters(const at::Tensor& input, const at::Tensor& weight) {
  return weight.defined() && weight.scalar_type() != input.scalar_type() ? at::kFloat : input.scalar_type();
}
/// The type of mean and reciprocal deviation: on CUDA, that of the accumulation; on the CPU, that of the parameters if the input
/// has a different, narrower type.
[[nodiscard]] inline at::ScalarType statistics_type(const at::Tensor& input, const at::Tensor& weight) {
  return torch_call::is_on_cuda(input) ? accumulation_type(input.scalar_type()) : statistics_type_of_parameters(input, weight);
}

/// (input, normalized_shape, weight, bias, eps) -> (output, mean, rstd)
inline void layer_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> normalized = call.integers(1);
  const at::Tensor contiguous = torch_call::contiguous(input);
  const at::Tensor weight = contiguous_or_undefined(call.tensor(2));
  const at::Tensor bias = contiguous_or_undefined(call.tensor(3));
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
  const at::Tensor contiguous = torch_call::contiguous(input);
  const at::Tensor contiguous_weight = contiguous_or_undefined(weight);
  const at::Tensor contiguous_bias = contiguous_or_undefined(bias);
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(7, 0)) of_input = torch_call::empty(input.sizes(), input);
  if (call.wants(7, 1) && weight.defined()) of_weight = torch_call::empty(weight.sizes(), weight);
  if (call.wants(7, 2) && bias.defined()) of_bias = torch_call::empty(bias.sizes(), bias);
  const at::Tensor contiguous_gradient = torch_call::contiguous(call.tensor(0));
  at::Tensor sums_of_threads;
  if (!torch_call::is_on_cuda(input) && (of_weight.defined() || of_bias.defined())) {
    sums_of_threads = torch_call::scratch({2, at::get_num_threads(), product_of(call.integers(2))}, input);
  }
  call.returns(of_input, of_weight, of_bias);
}

/// CUDA's kernel: (input, normalized_shape, weight, eps) -> (output, rstd)
inline void rms_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const at::Tensor contiguous = torch_call::contiguous(input);
  at::Tensor output = torch_call::empty(input.sizes(), input);
  std::vector<std::int64_t> statistics = input.sizes().vec();
  for (std::size_t index = statistics.size() - call.integers(1).size(); index < statistics.size(); ++index) statistics[index] = 1;
  at::Tensor deviation = torch_call::empty(statistics, input, accumulation_type(input.scalar_type()));
  call.returns(std::move(output), std::move(deviation));
}
/// (grad_out, input, normalized_shape, rstd, weight, output_mask) -> gradients of input and weight
inline void rms_norm_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(4);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const at::Tensor contiguous = torch_call::contiguous(input);
  at::Tensor of_input;
  at::Tensor of_weight;
  if (call.wants(5, 0)) of_input = torch_call::empty(input.sizes(), input);
  if (call.wants(5, 1) && weight.defined()) of_weight = torch_call::empty(weight.sizes(), weight);
  const at::Tensor contiguous_gradient = torch_call::contiguous(call.tensor(0));
  call.returns(std::move(of_input), std::move(of_weight));
}

/// Whether a batch normalisation kernel reads a tensor without strides.
[[nodiscard]] inline bool is_without_steps(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.is_contiguous() || tensor.is_contiguous(c10::MemoryFormat::ChannelsLast) ||
         tensor.is_contiguous(c10::MemoryFormat::ChannelsLast3d);
}

/// The type of the statistics: that of the input, or float32 if one of the other tensors is of that type.
[[nodiscard]] inline at::ScalarType batch_statistics_type(const at::Tensor& input, std::initializer_list<at::Tensor> others) {
  if (torch_call::is_on_cuda(input)) return accumulation_type(input.scalar_type());
  for (const at::Tensor& other : others) {
    if (other.defined() && other.scalar_type() == at::kFloat) return at::kFloat;
  }
  return input.scalar_type();
}

/// Results of batch normalisation in training; in evaluation the statistics are empty.
inline void return_batch_norm(torch_call& call, bool is_training, at::ScalarType dtype) {
  const at::Tensor input = call.tensor(0);
  // The CPU kernel's scratch memory depends on strides, format and mode, so the kernel runs.
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const std::vector<std::int64_t> saved{is_training ? input.size(1) : 0};
  at::Tensor output = torch_call::in_format(input.sizes(), input, input.suggest_memory_format());
  at::Tensor mean = torch_call::empty(saved, input, dtype);
  at::Tensor deviation = torch_call::empty(saved, input, dtype);
  call.returns(std::move(output), std::move(mean), std::move(deviation));
}

/// (input, weight, bias, running_mean, running_var, training, momentum, eps) -> (output, save_mean, save_invstd)
inline void batch_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  return_batch_norm(call, call.flag(5),
                    batch_statistics_type(input, {call.tensor(1), call.tensor(2), call.tensor(3), call.tensor(4)}));
}

/// The same without running statistics: (input, weight, bias, training, momentum, eps)
inline void batch_norm_no_statistics_rule(torch_call& call) {
  return_batch_norm(call, call.flag(3), batch_statistics_type(call.tensor(0), {call.tensor(1), call.tensor(2)}));
}

/// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
inline void batch_norm_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();  // for the same reason
  const at::ScalarType dtype =
      batch_statistics_type(input, {call.tensor(2), call.tensor(3), call.tensor(4), call.tensor(5), call.tensor(6)});
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(9, 0)) of_input = torch_call::in_format(input.sizes(), input, input.suggest_memory_format());
  if (call.wants(9, 1)) of_weight = torch_call::empty({input.size(1)}, input, dtype);
  if (call.wants(9, 2)) of_bias = torch_call::empty({input.size(1)}, input, dtype);
  call.returns(std::move(of_input), std::move(of_weight), std::move(of_bias));
}

/// The format in which group normalisation kernels compute.
[[nodiscard]] inline c10::MemoryFormat group_norm_format(const at::Tensor& input) {
  return torch_call::is_on_cuda(input) ? c10::MemoryFormat::Contiguous : input.suggest_memory_format();
}

/// (input, weight, bias, N, C, HxW, group, eps) -> (output, mean, rstd)
inline void group_norm_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor contiguous = torch_call::contiguous(input, group_norm_format(input));
  const at::ScalarType dtype = statistics_type_of_parameters(input, call.tensor(1));
  const at::Tensor output = torch_call::in_format(input.sizes(), input, group_norm_format(input));
  const at::Tensor mean = torch_call::empty({call.integer(3), call.integer(6)}, input, dtype);
  const at::Tensor deviation = torch_call::empty({call.integer(3), call.integer(6)}, input, dtype);
  const bool is_on_cuda = torch_call::is_on_cuda(input);
  const at::ScalarType wide = accumulation_type(input.scalar_type());
  if (!is_on_cuda && contiguous.numel() != 0 && group_norm_format(input) != c10::MemoryFormat::Contiguous) {
    // With the channels last, the kernel first has two numbers for every image and channel, and of large images each thread its
    // own and two for every group (native/cpu/group_norm_kernel.cpp).
    constexpr std::int64_t large_image = 1024;
    const bool is_large = call.integer(5) >= large_image;
    const std::int64_t sums = is_large ? at::get_num_threads() : 1;
    const at::Tensor of_channels = torch_call::scratch({sums, call.integer(3), 2 * call.integer(4)}, input, wide);
    const at::Tensor of_groups = torch_call::scratch({call.integer(3), 2 * call.integer(6)}, input, wide, is_large);
  }
  // CUDA computes a factor and a summand for every image and channel first.
  const at::Tensor factors = torch_call::scratch({call.integer(3), call.integer(4)}, input, wide, is_on_cuda);
  const at::Tensor summands = torch_call::scratch({call.integer(3), call.integer(4)}, input, wide, is_on_cuda);
  call.returns(output, mean, deviation);
}

/// (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
inline void group_norm_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(4);
  const c10::MemoryFormat format = group_norm_format(input);
  const std::vector<std::int64_t> channels{call.integer(6)};
  constexpr bool makes_contiguous = is_torch_at_least(2, 15);  // before, it took the values as they lie in memory
  const at::Tensor contiguous_gradient = makes_contiguous ? torch_call::contiguous(call.tensor(0), format) : at::Tensor{};
  const at::Tensor contiguous_input = makes_contiguous ? torch_call::contiguous(input, format) : at::Tensor{};
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (call.wants(9, 0)) of_input = torch_call::in_format(input.sizes(), input, format);
  if (call.wants(9, 1)) of_weight = torch_call::empty(channels, weight.defined() ? weight : input);
  if (call.wants(9, 2)) of_bias = torch_call::empty(channels, weight.defined() ? weight : input);
  // For every image and channel: the sum of the gradient, and of its product with the input.
  const at::ScalarType dtype = accumulation_type(input.scalar_type());
  const at::Tensor products = torch_call::scratch({call.integer(5), call.integer(6)}, input, dtype);
  const at::Tensor sums = torch_call::scratch({call.integer(5), call.integer(6)}, input, dtype);
  if (torch_call::is_on_cuda(input)) {
    at::Tensor of_groups = torch_call::scratch({call.integer(5), call.integer(8)}, input, dtype);
    at::Tensor also_of_groups = torch_call::scratch({call.integer(5), call.integer(8)}, input, dtype);
    const at::Tensor factors = torch_call::scratch({call.integer(5), call.integer(6)}, input, dtype, weight.defined());
    also_of_groups.reset();
    of_groups.reset();
  }
  call.returns(of_input, of_weight, of_bias);
}

inline constexpr known_rule normalization_rules[] = {
    {"aten::native_layer_norm", layer_norm_rule},
    {"aten::_fused_rms_norm", rms_norm_rule},
    {"aten::_fused_rms_norm_backward", rms_norm_backward_rule},
    {"aten::native_layer_norm_backward", layer_norm_backward_rule},
    {"aten::native_batch_norm", batch_norm_rule},
    {"aten::_native_batch_norm_legit", batch_norm_rule},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_no_statistics_rule},
    {"aten::native_batch_norm_backward", batch_norm_backward_rule},
    {"aten::native_group_norm", group_norm_rule},
    {"aten::native_group_norm_backward", group_norm_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
