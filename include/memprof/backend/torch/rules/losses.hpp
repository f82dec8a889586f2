#pragma once

#include <memprof/backend/torch/rules/pointwise.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include <cstddef>
#include <cstdint>
#include <utility>

/// @file
/// Losses. Most kernels hold the loss of every element before reducing it.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline bool is_reduced(std::int64_t reduction) noexcept { return reduction != at::Reduction::None; }

/// The copy of 16-bit losses that the CPU makes for their mean, in the type in which it accumulates.
[[nodiscard]] inline at::Tensor losses_to_average(const at::Tensor& losses, std::int64_t reduction) {
  if (torch_call::is_on_cuda(losses) || reduction != at::Reduction::Mean) return {};
  return torch_call::converted(losses, accumulation_type(losses.scalar_type()));
}

/// (self, target, reduction, ...) with a shape function that covers only the result.
inline void reduced_loss_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> sizes = at::infer_size(input.sizes(), call.tensor(1).sizes());
  const std::int64_t reduction = call.integer(2);
  call.run_shape_function();
  if (!is_reduced(reduction)) return;
  const at::Tensor of_elements = torch_call::scratch(sizes, input);
  const at::Tensor wide = losses_to_average(of_elements, reduction);
}

/// (self, target, reduction, delta)
inline void huber_loss_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> sizes = at::infer_size(input.sizes(), call.tensor(1).sizes());
  const bool is_like_input = input.sizes() == at::IntArrayRef{sizes};
  at::Tensor of_elements = is_like_input ? torch_call::empty_like(input) : torch_call::empty(sizes, input);
  const std::int64_t reduction = call.integer(2);
  if (!is_reduced(reduction)) return call.returns(std::move(of_elements));
  const at::Tensor wide = losses_to_average(of_elements, reduction);
  call.returns(torch_call::empty({}, input));
}

/// (grad_output, self, target, reduction)
inline void mse_loss_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  call.returns(torch_call::empty(input.sizes(), input));
}

/// (grad_output, self, target, ..., *, grad_input)
inline void elementwise_loss_backward_rule(torch_call& call) {
  const at::Tensor result = call.tensor(call.size() - 1);
  resize_result(result, {call.tensor(0), call.tensor(1), call.tensor(2)});
  call.returns(result);
}

/// (self, target, weight, reduction, ignore_index) -> (output, total_weight)
inline void nll_loss2d_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor target = call.tensor(1);
  const bool reduces = is_reduced(call.integer(3));
  at::Tensor output = torch_call::empty(reduces ? at::IntArrayRef{} : target.sizes(), input);
  at::Tensor total_weight = torch_call::empty({}, input);
  const bool is_on_cpu = !torch_call::is_on_cuda(input);
  const at::Tensor contiguous = is_on_cpu && reduces ? torch_call::contiguous(input) : input;
  const at::Tensor contiguous_target = is_on_cpu && reduces ? torch_call::contiguous(target) : target;
  call.returns(std::move(output), std::move(total_weight));
}
/// (grad_output, self, target, weight, reduction, ignore_index, total_weight)
inline void nll_loss2d_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor target = call.tensor(2);
  at::Tensor of_input = torch_call::empty_like(input);
  at::Tensor contiguous_target;
  if (!torch_call::is_on_cuda(input) && is_reduced(call.integer(4))) contiguous_target = torch_call::contiguous(target);
  call.returns(std::move(of_input));
}

/// (self, target, weight, ...): the CPU kernel requires both, and the weights, without gaps.
inline void nll_loss_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor weight = call.tensor(2);
  const bool reduces = is_reduced(call.integer(3));
  call.run_shape_function();
  if (torch_call::is_on_cuda(input)) return;
  const at::Tensor contiguous_weight = weight.defined() ? torch_call::contiguous(weight) : weight;
  const at::Tensor contiguous = reduces ? torch_call::contiguous(input) : input;
}
/// (grad_output, self, target, weight, ...)
inline void nll_loss_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const at::Tensor weight = call.tensor(3);
  call.run_shape_function();
  if (torch_call::is_on_cuda(input)) return;
  const at::Tensor contiguous_weight = weight.defined() ? torch_call::contiguous(weight) : weight;
}

/// (log_probs, targets, input_lengths, target_lengths, blank, ...) -> (loss, log_alpha), with log_probs (time, batch, classes)
inline void ctc_loss_rule(torch_call& call) {
  const at::Tensor inputs = call.tensor(0);
  const at::Tensor targets = call.tensor(1);
  if (!call.argument(3).isTensor() || detail::has_values(call.tensor(3))) return call.run_without_rule();
  // A target cannot be longer than all of them together, or than a row of them.
  const std::int64_t longest = targets.dim() == 2 ? targets.size(1) : targets.size(0);
  (void)call.assume_length(longest, longest,
                           "the lengths of targets depend on data: assumed to be the longest that the sizes allow");
  const std::int64_t states = 2 * longest + 1;
  at::Tensor log_alpha = torch_call::empty({inputs.size(1), inputs.size(0), states}, inputs);
  call.returns(torch_call::empty({inputs.size(1)}, inputs), std::move(log_alpha));
}

/// Lists the call if cuDNN would compute the loss, for targets on the CPU; what cuDNN allocates is unknown.
inline void use_cudnn_rule(torch_call& call) {
  const at::Tensor targets = call.tensor(1);
  if (targets.is_cpu() && targets.scalar_type() == at::kInt) {
    call.approximate("cuDNN, which may compute this loss, is not simulated: libtorch's own kernel is assumed");
  }
  call.returns(false);
}

/// Operators for AMD devices only.
inline void never_rule(torch_call& call) { call.returns(false); }

inline constexpr known_rule loss_rules[] = {
    {"aten::_use_cudnn_ctc_loss", use_cudnn_rule},
    {"aten::_use_cudnn_ctc_loss.Tensor", use_cudnn_rule},
    {"aten::_use_miopen_ctc_loss", never_rule},
    {"aten::_use_miopen_ctc_loss.Tensor", never_rule},
    {"aten::mse_loss", reduced_loss_rule},
    {"aten::mse_loss_backward", mse_loss_backward_rule},
    {"aten::smooth_l1_loss", reduced_loss_rule},
    {"aten::smooth_l1_loss_backward.grad_input", elementwise_loss_backward_rule},
    {"aten::huber_loss", huber_loss_rule},
    {"aten::huber_loss_backward.out", elementwise_loss_backward_rule},
    {"aten::nll_loss2d_forward", nll_loss2d_rule},
    {"aten::nll_loss2d_backward", nll_loss2d_backward_rule},
    {"aten::nll_loss_forward", nll_loss_rule},
    {"aten::nll_loss_forward.output", nll_loss_rule},
    {"aten::nll_loss_backward", nll_loss_backward_rule},
    {"aten::_ctc_loss.Tensor", ctc_loss_rule, rule_use::without_values},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
