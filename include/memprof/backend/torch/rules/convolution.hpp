#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/native/ConvUtils.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

/// @file
/// Convolution, and the columns from which it can be computed. Sizes are (batch, channels, space...).

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr const char* convolution_cause =
    "results are exact; the convolution library's copies and workspaces depend on the processor, and are unknown on CUDA";

/// A parameter for one dimension of space; a single number may stand for all.
[[nodiscard]] inline std::int64_t in_dimension(const std::vector<std::int64_t>& all, std::size_t index) {
  return all.size() == 1 ? all[0] : all.at(index);
}

/// Whether libtorch delegates a convolution to oneDNN. `stride` is the position of the first of the arguments from stride to
/// groups.
[[nodiscard]] inline bool is_given_to_onednn(const torch_call& call, const at::Tensor& input, const at::Tensor& weight,
                                             const at::Tensor& bias, std::size_t stride) {
  if (!input.is_cpu()) return false;
  const auto numbers = [&](std::size_t index) {
    const auto all = call.integers(index);
    return std::vector<c10::SymInt>{all.begin(), all.end()};
  };
  const auto backend = at::native::select_conv_backend(
      input, weight, bias.defined() ? std::optional{bias} : std::nullopt, numbers(stride), numbers(stride + 1),
      numbers(stride + 2), call.flag(stride + 3), numbers(stride + 4), call.integer(stride + 5), std::nullopt);
  return backend == at::native::ConvBackend::Mkldnn || backend == at::native::ConvBackend::MkldnnTranspose;
}

/// Whether a kernel strides over the image of which it computes a result or a gradient.
[[nodiscard]] inline bool has_steps(const std::vector<std::int64_t>& stride) {
  return std::any_of(stride.begin(), stride.end(), [](std::int64_t step) { return step > 1; });
}

/// oneDNN's copy of an image, in blocks of channels; none for so few channels that kernels read the image as it is.
[[nodiscard]] inline at::Tensor image_in_blocks(const at::Tensor& image) {
  constexpr std::int64_t max_read_as_is = 3;
  return image.size(1) <= max_read_as_is ? at::Tensor{} : torch_call::empty(image.sizes(), image);
}

/// An image that oneDNN computes: its copies of the operands are freed after the pass; then libtorch copies the result, and once
/// more if it is channels-last. Which kernels make copies depends on the processor; this holds for most with AVX2 or AVX-512.
[[nodiscard]] inline at::Tensor onednn_image(const at::Tensor& image, const at::Tensor& weight, at::IntArrayRef sizes,
                                             bool has_channels_last) {
  at::Tensor own;
  {
    const at::Tensor image_copy = image_in_blocks(image);
    const at::Tensor weight_copy = torch_call::empty(weight.sizes(), weight);
    own = torch_call::empty(sizes, image);
  }
  at::Tensor result = torch_call::empty(sizes, image);
  if (has_channels_last) result = torch_call::empty(sizes, image);
  return result;
}

/// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
inline void convolution_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor weight = call.tensor(1);
  // A trace (`torch.jit.trace`) has what it calls: `_convolution`, with the same arguments and a choice of libraries.
  const bool is_to_be_traced = call.called().operator_name().name == "aten::convolution" &&
                               c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Tracer);
  if (!torch_call::is_on_cuda(input) || is_to_be_traced) return call.run_without_rule();
  const bool is_transposed = call.flag(6);
  const auto stride = call.integers(3);
  const auto padding = call.integers(4);
  const auto dilation = call.integers(5);
  const auto output_padding = call.integers(7);
  std::vector<std::int64_t> sizes{input.size(0), is_transposed ? weight.size(1) * call.integer(8) : weight.size(0)};
  for (std::size_t index = 0; index + 2 < static_cast<std::size_t>(input.dim()); ++index) {
    const std::int64_t size = input.sizes()[index + 2];
    const std::int64_t reach = in_dimension(dilation, index) * (weight.sizes()[index + 2] - 1) + 1;
    const std::int64_t step = in_dimension(stride, index);
    const std::int64_t pad = 2 * in_dimension(padding, index);
    sizes.push_back(is_transposed ? (size - 1) * step - pad + reach + in_dimension(output_padding, index)
                                  : (size + pad - reach) / step + 1);
  }
  const c10::MemoryFormat format = input.suggest_memory_format();
  const at::Tensor contiguous_input = torch_call::contiguous(input, format);
  const at::Tensor contiguous_weight = torch_call::contiguous(weight, format);
  call.approximate(convolution_cause);
  if (format == c10::MemoryFormat::Contiguous && is_given_to_onednn(call, input, weight, call.tensor(2), 3)) {
    return call.returns(onednn_image(input, weight, sizes, is_transposed && has_steps(stride)));
  }
  call.returns(torch_call::in_format(sizes, input, format));
}

/// Gradients of weight and bias, computed by oneDNN and copied by libtorch.
[[nodiscard]] inline std::pair<at::Tensor, at::Tensor> onednn_weight_gradients(const at::Tensor& gradient,
                                                                               const at::Tensor& input, const at::Tensor& weight,
                                                                               bool has_bias) {
  at::Tensor own;
  at::Tensor own_of_bias;
  const auto of_bias = [&] { return has_bias ? torch_call::empty({gradient.size(1)}, gradient) : at::Tensor{}; };
  {
    const at::Tensor gradient_copy = torch_call::empty(gradient.sizes(), gradient);
    const at::Tensor input_copy = image_in_blocks(input);
    own = torch_call::empty(weight.sizes(), weight);
    own_of_bias = of_bias();
  }
  at::Tensor result_of_bias = of_bias();
  return {torch_call::empty(weight.sizes(), weight), std::move(result_of_bias)};
}

/// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask) ->
/// gradients of input, weight, bias
inline void convolution_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(2);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const c10::MemoryFormat format = input.suggest_memory_format();
  const at::Tensor contiguous_gradient = torch_call::contiguous(gradient, format);
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  call.approximate(convolution_cause);
  if (format == c10::MemoryFormat::Contiguous && is_given_to_onednn(call, input, weight, {}, 4)) {
    const bool has_channels_last = !call.flag(7) && has_steps(call.integers(4));
    if (call.wants(10, 0)) of_input = onednn_image(gradient, weight, input.sizes(), has_channels_last);
    if (call.wants(10, 1) || call.wants(10, 2)) {
      std::tie(of_weight, of_bias) = onednn_weight_gradients(gradient, input, weight, call.wants(10, 2));
    }
    return call.returns(std::move(of_input), std::move(of_weight), std::move(of_bias));
  }
  if (call.wants(10, 0)) of_input = torch_call::in_format(input.sizes(), input, format);
  if (call.wants(10, 1)) of_weight = torch_call::in_format(weight.sizes(), weight, format);
  if (call.wants(10, 2)) of_bias = torch_call::empty({gradient.size(1)}, gradient);
  call.returns(std::move(of_input), std::move(of_weight), std::move(of_bias));
}

/// (self, kernel_size, dilation, padding, stride): every patch becomes a column.
inline void im2col_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const auto kernel = call.integers(1);
  const auto dilation = call.integers(2);
  const auto padding = call.integers(3);
  const auto stride = call.integers(4);
  std::int64_t patches = 1;
  for (std::size_t index = 0; index < 2; ++index) {
    const std::int64_t size = input.size(static_cast<std::int64_t>(index) - 2);
    const std::int64_t reach = in_dimension(dilation, index) * (in_dimension(kernel, index) - 1) + 1;
    patches *= (size + 2 * in_dimension(padding, index) - reach) / in_dimension(stride, index) + 1;
  }
  const std::int64_t column = input.size(-3) * in_dimension(kernel, 0) * in_dimension(kernel, 1);
  std::vector<std::int64_t> sizes{column, patches};
  if (input.dim() == 4) sizes.insert(sizes.begin(), input.size(0));
  // The kernel starts with a result of the input's size, whose storage then only grows.
  at::Tensor result = torch_call::empty(input.sizes(), input);
  const at::Tensor contiguous = torch_call::contiguous(input);
  result.resize_(sizes);
  call.returns(std::move(result));
}
/// (self, output_size, kernel_size, ...): the result keeps a storage of the size of the columns.
inline void col2im_rule(torch_call& call) {
  const at::Tensor columns = call.tensor(0);
  const auto space = call.integers(1);
  const auto kernel = call.integers(2);
  std::vector<std::int64_t> sizes{columns.size(-2) / (in_dimension(kernel, 0) * in_dimension(kernel, 1)), in_dimension(space, 0),
                                  in_dimension(space, 1)};
  if (columns.dim() == 3) sizes.insert(sizes.begin(), columns.size(0));
  at::Tensor result = torch_call::empty(columns.sizes(), columns);
  const at::Tensor contiguous = torch_call::contiguous(columns);
  result.resize_(sizes);
  call.returns(std::move(result));
}

inline constexpr known_rule convolution_rules[] = {
    {"aten::convolution", convolution_rule},
    {"aten::_convolution", convolution_rule},
    {"aten::_convolution.deprecated", convolution_rule},
    {"aten::convolution_overrideable", convolution_rule},
    {"aten::convolution_backward", convolution_backward_rule},
    {"aten::im2col", im2col_rule},
    {"aten::col2im", col2im_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
