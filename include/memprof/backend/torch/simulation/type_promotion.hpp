#pragma once

#include <memprof/backend/torch/simulation/shape_functions.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/ScalarType.h>

#include <vector>

/// @file
/// What element-wise CPU kernels allocate besides their results: copies of inputs and outputs whose type differs from the type in
/// which they compute (aten/src/ATen/TensorIterator.cpp, `compute_types`).

namespace memprof::inline MEMPROF_ABI::detail {

/// Ends a call of an element-wise operator with the results of its shape function and with such copies.
inline void run_with_promotion(torch_call& call, const operator_plan& plan) {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    if (role.is_written) outputs.push_back(tensor);
    if (!role.is_overwritten) inputs.push_back(tensor);
  });
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
