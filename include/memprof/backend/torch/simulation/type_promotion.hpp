#pragma once

#include <memprof/backend/torch/simulation/shape_functions.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <vector>

/// @file
/// What element-wise CPU kernels allocate besides their results: copies of inputs and outputs whose type differs from the type in
/// which they compute (aten/src/ATen/TensorIterator.cpp, `compute_types`).

namespace memprof::inline MEMPROF_ABI::detail {

/// The tensors that an element-wise operator reads and writes; one may be both.
struct iterated_tensors {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
};
[[nodiscard]] inline iterated_tensors iterated_tensors_of(const torch_call& call, const operator_plan& plan) {
  iterated_tensors all;
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    if (role.is_written) all.outputs.push_back(tensor);
    if (!role.is_overwritten) all.inputs.push_back(tensor);
  });
  return all;
}

/// Whether an element-wise operator's copies follow from the types of its arguments. A tensor of real or complex numbers that it
/// writes does not say in which type integers are computed: as those numbers by a root, as integers by a comparison. One of
/// another size than any input is copied before it is resized.
[[nodiscard]] inline bool has_known_promotion(const torch_call& call, const operator_plan& plan, const call_facts& facts) {
  if (facts.has_one_type) return true;
  if (!facts.keeps_type && !facts.is_contiguous) return false;
  if (!facts.writes) return true;
  const iterated_tensors found = iterated_tensors_of(call, plan);
  const auto& inputs = found.inputs;  // a lambda cannot name a structured binding before clang 16
  const auto& outputs = found.outputs;
  const bool reads_integers = !inputs.empty() && c10::isIntegralType(at::native::result_type(inputs), true);
  return std::all_of(outputs.begin(), outputs.end(), [&](const at::Tensor& output) {
    const bool has_size = output.numel() == 0 || std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& input) {
                            return input.sizes() == output.sizes();
                          });
    return has_size && (!reads_integers || c10::isIntegralType(output.scalar_type(), true));
  });
}

/// Ends a call of an element-wise operator with the results of its shape function and with such copies.
inline void run_with_promotion(torch_call& call, const operator_plan& plan) {
  const auto [inputs, outputs] = iterated_tensors_of(call, plan);
  call.run_shape_function();
  if (inputs.empty() || !call.stack().back().isTensor()) return;
  at::ScalarType common = at::native::result_type(inputs);
  const at::ScalarType result = call.stack().back().toTensor().scalar_type();
  if (c10::isIntegralType(common, true) && !c10::isIntegralType(result, true)) common = result;
  std::vector<at::Tensor> copies;
  for (const at::Tensor& input : inputs) copies.push_back(torch_call::converted(input, common));
  for (const at::Tensor& output : outputs) {
    const bool is_flag = output.scalar_type() == at::kBool;  // comparisons write flags as they are
    if (!is_flag) copies.push_back(torch_call::converted(output, common));
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
