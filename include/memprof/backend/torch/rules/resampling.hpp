#pragma once

#include <memprof/backend/torch/rules/copied_inputs.hpp>
#include <memprof/backend/torch/rules/pooling.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Resampling of images, and the exchange of space and channels. Sizes are (batch, channels, space...).

namespace memprof::inline MEMPROF_ABI::detail {

/// (self, output_size, ...) with a shape function that covers only the result. What the kernel copies depends on channels, sizes
/// and threads, so smaller images are resampled for real.
inline void upsample_rule(torch_call& call) {
  constexpr std::int64_t max_run_numbers = std::int64_t{4} << 20;
  const at::Tensor input = call.tensor(0);
  const bool is_on_cpu = !torch_call::is_on_cuda(input) && !input.is_meta();
  if (is_on_cpu && input.dim() == 4) {
    const std::vector<std::int64_t> size = call.integers(1);
    if (size.size() == 2 && input.size(0) * input.size(1) * size[0] * size[1] <= max_run_numbers) return call.run_without_rule();
  }
  call.run_shape_function();
  if (torch_call::is_on_cuda(input)) return;
  if (input.is_contiguous(c10::MemoryFormat::ChannelsLast)) {
    if (input.size(1) < 4) call.approximate("with few channels, the kernel creates tables of positions and weights");
    return;
  }
  const at::Tensor& result = call.stack().back().toTensor();
  const at::Tensor input_copy = torch_call::in_format(input.sizes(), input, c10::MemoryFormat::ChannelsLast);
  const at::Tensor result_copy = torch_call::in_format(result.sizes(), result, c10::MemoryFormat::ChannelsLast);
  call.approximate("with few channels or many threads, the kernel makes no channels-last copies");
}

/// (grad_output, ...) with a shape function.
inline void resampling_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const c10::MemoryFormat format = gradient.suggest_memory_format();
  const bool is_on_cpu = !torch_call::is_on_cuda(gradient);
  if (is_on_cpu && format == c10::MemoryFormat::ChannelsLast3d) return call.run_without_rule();
  call.run_shape_function();
  const at::Tensor copy = is_on_cpu ? torch_call::contiguous(gradient, format) : gradient;
}
/// The same, for kernels that do not support channels-last.
inline void contiguous_resampling_backward_rule(torch_call& call) { copies_inputs_contiguously_rule<0>(call); }

/// (input, grid, ...), with grid (batch, space..., dimensions)
inline void grid_sampler_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor grid = call.tensor(1);
  call.returns(torch_call::empty(with_space(input, {grid.sizes().begin() + 1, grid.sizes().end() - 1}), input));
}
/// (grad_output, input, grid, ..., output_mask) -> gradients of input and grid
inline void grid_sampler_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  at::Tensor of_input;
  if (call.wants(call.size() - 1, 0)) of_input = torch_call::empty(input.sizes(), input);
  at::Tensor of_grid = torch_call::empty(call.tensor(2).sizes(), call.tensor(2));
  at::Tensor copy;
  if (input.dim() == 4) copy = torch_call::contiguous(call.tensor(0));
  call.returns(std::move(of_input), std::move(of_grid));
}

/// The same check as in the kernels.
inline void check_has_image(const at::Tensor& input, const char* name) {
  TORCH_CHECK(input.dim() >= 3, name, " expects input to have at least 3 dimensions, but got input with ", input.dim(),
              " dimension(s)");
}

/// (self, factor): channels become space.
inline void pixel_shuffle_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::int64_t factor = call.integer(1);
  check_has_image(input, "pixel_shuffle");
  std::vector<std::int64_t> sizes = input.sizes().vec();
  const std::size_t last = sizes.size() - 1;
  sizes[last - 2] /= factor * factor;
  sizes[last - 1] *= factor;
  sizes[last] *= factor;
  at::Tensor output = torch_call::in_format(sizes, input, input.suggest_memory_format());
  const at::Tensor contiguous = torch_call::contiguous(input, input.suggest_memory_format());
  call.returns(std::move(output));
}
/// (self, factor): space becomes channels.
inline void pixel_unshuffle_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::int64_t factor = call.integer(1);
  check_has_image(input, "pixel_unshuffle");
  std::vector<std::int64_t> sizes = input.sizes().vec();
  const std::size_t last = sizes.size() - 1;
  sizes[last - 2] *= factor * factor;
  sizes[last - 1] /= factor;
  sizes[last] /= factor;
  at::Tensor output = torch_call::in_format(sizes, input, input.suggest_memory_format());
  const at::Tensor contiguous = torch_call::contiguous(input, input.suggest_memory_format());
  call.returns(std::move(output));
}

inline constexpr known_rule resampling_rules[] = {
    {"aten::upsample_nearest2d", upsample_rule},
    {"aten::upsample_bilinear2d", upsample_rule},
    {"aten::upsample_nearest1d_backward", resampling_backward_rule},
    {"aten::upsample_nearest2d_backward", resampling_backward_rule},
    {"aten::upsample_nearest3d_backward", resampling_backward_rule},
    {"aten::_upsample_nearest_exact1d_backward", resampling_backward_rule},
    {"aten::_upsample_nearest_exact2d_backward", resampling_backward_rule},
    {"aten::upsample_linear1d_backward", resampling_backward_rule},
    {"aten::upsample_bilinear2d_backward", resampling_backward_rule},
    {"aten::upsample_bicubic2d_backward", contiguous_resampling_backward_rule},
    {"aten::upsample_trilinear3d_backward", resampling_backward_rule},
    {"aten::grid_sampler_2d", grid_sampler_rule},
    {"aten::grid_sampler_3d", grid_sampler_rule},
    {"aten::grid_sampler_2d_backward", grid_sampler_backward_rule},
    {"aten::grid_sampler_3d_backward", grid_sampler_backward_rule},
    {"aten::pixel_shuffle", pixel_shuffle_rule},
    {"aten::pixel_unshuffle", pixel_unshuffle_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
