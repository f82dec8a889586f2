#pragma once

#include <memprof/backend/torch/rules/onednn_lstm.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/record/recorder.hpp>

#include <ATen/Version.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// Cells of recurrent networks, and whole layers of them in oneDNN.

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr const char* cudnn_cause = "with cuDNN, a device runs the whole layer in it, with other blocks";

#if defined(__x86_64__) || defined(_M_X64)
inline constexpr bool is_x86_64 = true;
#else
inline constexpr bool is_x86_64 = false;
#endif

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

/// Whether libtorch uses the version of oneDNN from which the formulas are taken.
[[nodiscard]] inline bool has_known_onednn() {
  static const bool is_known = [] {
    const recording_suppressor hidden;
    return at::get_mkldnn_version().find(" v3.12.") != std::string::npos;
  }();
  return is_known;
}

/// Whether the formulas apply to a layer. For others, the kernel runs: in 16-bit types, and without a backward pass, its choice
/// depends on the processor.
[[nodiscard]] inline bool has_onednn_formulas(const at::Tensor& input, bool keeps_workspace) {
  return is_x86_64 && has_known_onednn() && keeps_workspace && input.scalar_type() == at::kFloat;
}

[[nodiscard]] inline onednn_lstm onednn_layer_of(const at::Tensor& input, std::int64_t hidden) {
  return {input.size(0), input.size(1), input.size(2), hidden, static_cast<std::int64_t>(input.element_size())};
}

/// (input, weights 1 to 4, hx, cx, ..., hidden_size at 10, ...) -> (output, hy, cy, workspace), with input (time, batch,
/// features), for one direction
inline void onednn_layer_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const onednn_lstm layer = onednn_layer_of(input, call.integer(10));
  const bool keeps_workspace = c10::GradMode::is_enabled();
  if (!has_onednn_formulas(input, keeps_workspace)) return call.run_without_rule();
  at::Tensor output = torch_call::empty({layer.steps, layer.batch, layer.hidden}, input);
  at::Tensor last_hidden = torch_call::empty(call.tensor(5).sizes(), call.tensor(5));
  at::Tensor last_cell = torch_call::empty(call.tensor(6).sizes(), call.tensor(6));
  const at::Tensor weights_of_input = torch_call::contiguous(call.tensor(1));
  const at::Tensor weights_of_state = torch_call::contiguous(call.tensor(2));
  const at::Tensor bias = torch_call::empty({layer.gates()}, weights_of_input);
  at::Tensor workspace = torch_call::scratch_bytes(onednn_workspace_bytes(layer), input);
  // Weights are reordered to rows of inputs; a single row already is one.
  const auto reordered = [&](std::int64_t inputs) {
    if (inputs == 1) return at::Tensor{};
    return torch_call::scratch_bytes(onednn_rows_of_inputs(inputs, layer.hidden, layer.number_bytes), input);
  };
  const at::Tensor rows_of_input = reordered(layer.features);
  const at::Tensor rows_of_state = reordered(layer.hidden);
  const at::Tensor scratchpad = torch_call::scratch_bytes(onednn_scratchpad_bytes(layer, onednn_pass::training), input);
  call.returns(std::move(output), std::move(last_hidden), std::move(last_cell), std::move(workspace));
}

/// What oneDNN's kernels for the backward pass hold while they run.
inline void onednn_layer_backward_scratch(const onednn_lstm& layer, const at::Tensor& like) {
  // Weights stay rows of gates, and are copied if those must be padded.
  const auto padded = [&](std::int64_t inputs) {
    if (onednn_row_bytes(inputs, layer.number_bytes) == inputs * layer.number_bytes) return at::Tensor{};
    return torch_call::scratch_bytes(onednn_rows_of_gates(inputs, layer.hidden, layer.number_bytes), like);
  };
  const auto gradient = [&](std::int64_t inputs) {
    return torch_call::scratch_bytes(onednn_rows_of_inputs(inputs, layer.hidden, sizeof(float)), like);
  };
  const at::Tensor rows_of_input = padded(layer.features);
  const at::Tensor rows_of_state = padded(layer.hidden);
  const at::Tensor of_weights_of_input = gradient(layer.features);
  const at::Tensor of_weights_of_state = gradient(layer.hidden);
  const at::Tensor of_bias = torch_call::empty({layer.gates()}, like, at::kFloat);
  const at::Tensor scratchpad = torch_call::scratch_bytes(onednn_scratchpad_bytes(layer, onednn_pass::backward), like);
}

/// (input, weights 1 to 4, hx, cx, output, hy, cy, grad_output, grad_hy, grad_cy, ..., hidden_size at 15, ...) -> gradients of
/// input, weights 1 and 2, both biases, hx, cx, in float32
inline void onednn_layer_backward_rule(torch_call& call) {
  if (!call.tensor(10).defined() && !call.tensor(11).defined() && !call.tensor(12).defined()) {
    return call.returns(at::Tensor{}, at::Tensor{}, at::Tensor{}, at::Tensor{}, at::Tensor{}, at::Tensor{}, at::Tensor{});
  }
  const at::Tensor input = call.tensor(0);
  if (!has_onednn_formulas(input, true)) return call.run_without_rule();
  const onednn_lstm layer = onednn_layer_of(input, call.integer(15));
  // Zeros for a missing gradient.
  const auto given = [&](std::size_t gradient, std::size_t of) {
    const at::Tensor one = call.tensor(gradient);
    return one.defined() ? torch_call::contiguous(one) : torch_call::empty(call.tensor(of).sizes(), call.tensor(of));
  };
  const at::Tensor of_output = given(10, 7);
  const at::Tensor of_last_hidden = given(11, 5);
  const at::Tensor of_last_cell = given(12, 6);
  const at::Tensor weights_of_input = torch_call::contiguous(call.tensor(1));
  const at::Tensor weights_of_state = torch_call::contiguous(call.tensor(2));
  const at::Tensor bias = torch_call::empty({layer.gates()}, weights_of_input);
  const at::Tensor cell = call.tensor(6);
  const bool shares_storage = call.tensor(5).storage().unsafeGetStorageImpl() == cell.storage().unsafeGetStorageImpl();
  const at::Tensor own_cell = shares_storage ? torch_call::empty_like(cell) : cell;

  const auto gradient_of = [](const at::Tensor& of) { return torch_call::empty(of.sizes(), of, at::kFloat); };
  at::Tensor of_input = gradient_of(input);
  at::Tensor of_hidden = gradient_of(call.tensor(5));
  at::Tensor of_cell = gradient_of(cell);
  at::Tensor of_weights_of_input = gradient_of(weights_of_input);
  at::Tensor of_weights_of_state = gradient_of(weights_of_state);
  at::Tensor of_bias = gradient_of(bias);
  const auto in_float = [&](const at::Tensor& one) { return one.scalar_type() == at::kFloat ? one : gradient_of(one); };
  const at::Tensor float_of_output = in_float(of_output);
  const at::Tensor float_of_last_hidden = in_float(of_last_hidden);
  const at::Tensor float_of_last_cell = in_float(of_last_cell);
  onednn_layer_backward_scratch(layer, input);
  at::Tensor of_second_bias = gradient_of(bias);
  call.returns(std::move(of_input), std::move(of_weights_of_input), std::move(of_weights_of_state), std::move(of_bias),
               std::move(of_second_bias), std::move(of_hidden), std::move(of_cell));
}

inline constexpr known_rule recurrent_rules[] = {
    {"aten::_thnn_fused_lstm_cell", lstm_cell_rule}, {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward_rule},
    {"aten::_thnn_fused_gru_cell", gru_cell_rule},   {"aten::_thnn_fused_gru_cell_backward", gru_cell_backward_rule},
    {"aten::mkldnn_rnn_layer", onednn_layer_rule},   {"aten::mkldnn_rnn_layer_backward", onednn_layer_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
