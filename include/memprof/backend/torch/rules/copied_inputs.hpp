#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <array>
#include <cstddef>

/// @file
/// Kernels whose memory is that of their shape functions plus copies of some inputs, if these have gaps or another order.

namespace memprof::inline MEMPROF_ABI::detail {

/// Lists a call on CUDA if an input is not stored in the memory format that it suggests.
template <std::size_t Count>
void list_inputs_with_gaps(torch_call& call, const std::array<at::Tensor, Count>& inputs) {
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || input.is_contiguous(input.suggest_memory_format())) continue;
    call.approximate("results are exact; whether the CUDA kernel copies an input with gaps is unknown");
  }
}

/// Ends a call with the results of its shape function, then holds copies of the inputs at these positions, each in its suggested
/// memory format. Which CUDA kernels copy them is unknown.
template <std::size_t... Positions>
void copies_inputs_rule(torch_call& call) {
  const std::array<at::Tensor, sizeof...(Positions)> inputs{call.tensor(Positions)...};
  const bool is_on_cpu = !torch_call::is_on_cuda(inputs[0]);
  if (!is_on_cpu) list_inputs_with_gaps(call, inputs);
  call.run_shape_function();
  if (!is_on_cpu) return;
  const auto copy = [](const at::Tensor& input) {
    return input.defined() ? torch_call::contiguous(input, input.suggest_memory_format()) : at::Tensor{};
  };
  std::array<at::Tensor, sizeof...(Positions)> copies;
  for (std::size_t index = 0; index < copies.size(); ++index) copies[index] = copy(inputs[index]);
}

/// The same, with contiguous copies.
template <std::size_t... Positions>
void copies_inputs_contiguously_rule(torch_call& call) {
  const std::array<at::Tensor, sizeof...(Positions)> inputs{call.tensor(Positions)...};
  const bool is_on_cpu = !torch_call::is_on_cuda(inputs[0]);
  if (!is_on_cpu) list_inputs_with_gaps(call, inputs);
  call.run_shape_function();
  if (!is_on_cpu) return;
  std::array<at::Tensor, sizeof...(Positions)> copies;
  for (std::size_t index = 0; index < copies.size(); ++index) {
    if (inputs[index].defined()) copies[index] = torch_call::contiguous(inputs[index]);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
