#pragma once

#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

#include <cstdint>

/// @file
/// Nested tensors of strided layout on a claimed CUDA device. The kernels of the CPU call other operators on what the tensors
/// hold, and those are simulated; a libtorch without CUDA has them registered for the CPU alone.

namespace memprof::inline MEMPROF_ABI::detail {

/// False if a call is none of nested tensors. Lists what makes tensors on the device, where CUDA may have a kernel of its own.
[[nodiscard]] inline bool run_nested_on_cuda(torch_call& call, operator_plan& plan, const call_facts& facts) {
  const bool makes_nested = plan.schema->name() == "aten::_nested_from_padded";  // from dense ones
  const c10::DispatchKey key = makes_nested ? c10::DispatchKey::CPU : c10::DispatchKey::NestedTensorCPU;
  if (!(facts.is_nested || makes_nested) || !call.called().hasKernelForDispatchKey(key)) return false;
  const std::int64_t bytes_before = this_simulating_thread.allocated_bytes;
  call.called().redispatchBoxed(c10::DispatchKeySet{key}, &call.stack());
  bool makes_any = false;
  for_each_result(call, [&](const c10::IValue& result) {
    makes_any = makes_any || (result.isTensor() && result.toTensor().defined() && result.toTensor().is_cuda());
  });
  if (makes_any)
    plan.count_estimate("results are those of the CPU kernel for nested tensors; scratch memory on CUDA is unknown",
                        this_simulating_thread.allocated_bytes - bytes_before);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
