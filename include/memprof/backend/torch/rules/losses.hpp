#pragma once

#include <memprof/backend/torch/rules/pointwise.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include <cstddef>
#include <cstdint>
#include <utility>

/// @file
/// Losses. Most kernels hold the loss of every element before they reduce it.

namespace memprof::detail {

[[nodiscard]] inline bool is_reduced(std::int64_t reduction) noexcept { return reduction != at::Reduction::None; }

/// (self, target, reduction, ...) with a shape function that tells the result alone.
inline void reduced_loss_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::vector<std::int64_t> sizes = at::infer_size(input.sizes(), call.tensor(1).sizes());
  const bool reduces = is_reduced(call.integer(2));
  call.run_meta_kernel();
  at::Tensor of_elements;
  if (reduces) of_elements = torch_call::empty(sizes, input);
}

/// (self, target, reduction, delta)
inline void huber_loss_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  at::Tensor of_elements = torch_call::empty(at::infer_size(input.sizes(), call.tensor(1).sizes()), input);
  if (!is_reduced(call.integer(2))) return call.returns(std::move(of_elements));
  call.returns(torch_call::empty({}, input));
}

/// What is written was made before the call, of the right size.
inline void ready_result_rule(torch_call& call) { call.returns(call.tensor(call.size() - 1)); }

/// (self, target, weight, reduction, ignore_index) -> (output, total_weight)
inline void nll_loss2d_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  at::Tensor total_weight = torch_call::empty({}, input);
  at::Tensor output =
      is_reduced(call.integer(3)) ? torch_call::empty({}, input) : torch_call::empty(call.tensor(1).sizes(), input);
  call.returns(std::move(output), std::move(total_weight));
}

/// (log_probs, targets, input_lengths, target_lengths, blank, ...) -> (loss, log_alpha), with log_probs (time, batch, classes)
inline void ctc_loss_rule(torch_call& call) {
  const at::Tensor inputs = call.tensor(0);
  const at::Tensor targets = call.tensor(1);
  // Lengths may be data; a target cannot be longer than all of them, or than a row of them.
  call.approximate("target lengths may depend on data: taken as the longest that the sizes allow");
  const std::int64_t states = 2 * (targets.dim() == 2 ? targets.size(1) : targets.size(0)) + 1;
  at::Tensor log_alpha = torch_call::empty({inputs.size(1), inputs.size(0), states}, inputs);
  call.returns(torch_call::empty({inputs.size(1)}, inputs), std::move(log_alpha));
}

inline constexpr known_rule loss_rules[] = {
    {"aten::mse_loss", reduced_loss_rule},
    {"aten::mse_loss_backward", like_second_rule},
    {"aten::smooth_l1_loss", reduced_loss_rule},
    {"aten::smooth_l1_loss_backward.grad_input", ready_result_rule},
    {"aten::huber_loss", huber_loss_rule},
    {"aten::huber_loss_backward.out", ready_result_rule},
    {"aten::nll_loss2d_forward", nll_loss2d_rule},
    {"aten::nll_loss2d_backward", like_second_rule},
    {"aten::_ctc_loss", ctc_loss_rule},
    {"aten::_ctc_loss.Tensor", ctc_loss_rule},
    {"aten::_ctc_loss_backward", like_second_rule},
    {"aten::_ctc_loss_backward.Tensor", like_second_rule},
};

}  // namespace memprof::detail
