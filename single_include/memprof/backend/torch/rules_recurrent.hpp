#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/torch_call.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Cells of recurrent networks, and oneDNN's whole layers of them.

namespace memprof::detail {

inline constexpr const char* cudnn_cause = "a device with cuDNN runs the whole layer with it, in other blocks";
inline constexpr const char* onednn_layer_cause = "the size of oneDNN's workspace for the backward pass depends on the processor";

/// (input_gates, hidden_gates, cx, ...) -> (hy, cy, workspace)
inline void lstm_cell_rule(torch_call& call) {
  const at::Tensor state = call.tensor(2);
  at::Tensor workspace = torch_call::empty_like(call.tensor(0));
  at::Tensor hidden = torch_call::empty_like(state);
  call.approximate(cudnn_cause);
  call.returns(std::move(hidden), torch_call::empty_like(state), std::move(workspace));
}
/// (grad_hy, grad_cy, cx, cy, workspace, has_bias) -> gradients of the gates, cx, the bias
inline void lstm_cell_backward_rule(torch_call& call) {
  const at::Tensor workspace = call.tensor(4);
  at::Tensor of_gates = torch_call::empty_like(workspace);
  at::Tensor of_state = torch_call::empty_like(call.tensor(2));
  at::Tensor of_bias;
  if (call.flag(5)) of_bias = torch_call::empty({workspace.size(-1)}, workspace);
  call.approximate(cudnn_cause);
  call.returns(std::move(of_gates), std::move(of_state), std::move(of_bias));
}

/// (input_gates, hidden_gates, hx, ...) -> (hy, workspace)
inline void gru_cell_rule(torch_call& call) {
  const at::Tensor state = call.tensor(2);
  at::Tensor workspace = torch_call::empty({state.size(0), 5 * state.size(1)}, state);
  call.approximate(cudnn_cause);
  call.returns(torch_call::empty_like(state), std::move(workspace));
}
/// (grad_hy, workspace, has_bias) -> gradients of input gates, hidden gates, hx, and both biases
inline void gru_cell_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const std::vector<std::int64_t> gates{gradient.size(0), 3 * gradient.size(1)};
  at::Tensor of_input_gates = torch_call::empty(gates, gradient);
  at::Tensor of_hidden_gates = torch_call::empty(gates, gradient);
  at::Tensor of_state = torch_call::empty_like(gradient);
  at::Tensor of_input_bias;
  at::Tensor of_hidden_bias;
  if (call.flag(2)) {
    of_input_bias = torch_call::empty({gates[1]}, gradient);
    of_hidden_bias = torch_call::empty({gates[1]}, gradient);
  }
  call.approximate(cudnn_cause);
  call.returns(std::move(of_input_gates), std::move(of_hidden_gates), std::move(of_state), std::move(of_input_bias),
               std::move(of_hidden_bias));
}

/// (input, weights 1 to 4, hx, cx, ..., hidden_size at 10, bidirectional at 13, train at 15) -> (output, hy, cy, workspace), with
/// input (time, batch, features)
inline void onednn_layer_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor state = call.tensor(5);
  const std::int64_t steps = input.size(0);
  const std::int64_t batch = input.size(1);
  const std::int64_t hidden = call.integer(10);
  at::Tensor output = torch_call::empty({steps, batch, hidden * (call.flag(13) ? 2 : 1)}, input);
  at::Tensor last_hidden = torch_call::empty(state.sizes(), state);
  at::Tensor last_cell = torch_call::empty(call.tensor(6).sizes(), state);
  // Gates twice, padded, and three states before and after the layer: some tenth less than what was measured.
  const std::int64_t numbers = steps * batch * 2 * (4 * hidden + 16) + 6 * (steps + 1) * batch * std::max(input.size(2), hidden);
  call.approximate(onednn_layer_cause);
  call.returns(std::move(output), std::move(last_hidden), std::move(last_cell),
               torch_call::empty({call.flag(15) ? numbers * static_cast<std::int64_t>(sizeof(float)) : 0}, input, at::kByte));
}
/// (input, weights 1 to 4, hx, cx, ...) -> gradients of input, weights 1 to 4 (the last is that of both biases, told twice), hx,
/// cx
inline void onednn_layer_backward_rule(torch_call& call) {
  std::vector<at::Tensor> gradients;
  for (const std::size_t index : {0U, 1U, 2U, 3U, 3U, 5U, 6U}) {
    gradients.push_back(torch_call::empty(call.tensor(index).sizes(), call.tensor(index)));
  }
  call.approximate(onednn_layer_cause);
  call.returns(gradients[0], gradients[1], gradients[2], gradients[3], gradients[4], gradients[5], gradients[6]);
}

inline constexpr known_rule recurrent_rules[] = {
    {"aten::_thnn_fused_lstm_cell", lstm_cell_rule}, {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward_rule},
    {"aten::_thnn_fused_gru_cell", gru_cell_rule},   {"aten::_thnn_fused_gru_cell_backward", gru_cell_backward_rule},
    {"aten::mkldnn_rnn_layer", onednn_layer_rule},   {"aten::mkldnn_rnn_layer_backward", onednn_layer_backward_rule},
};

}  // namespace memprof::detail
