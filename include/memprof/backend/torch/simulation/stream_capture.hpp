#pragma once

#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

/// @file
/// What a program may not do on a stream of the fake CUDA device that is captured for a CUDA graph.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether an index of the call is a mask, whose elements are counted. A number that is written through one mask needs no count.
[[nodiscard]] inline bool counts_mask(const torch_call& call) {
  bool has_mask = false;
  c10::IValue indices = call.argument(1);
  map_tensors(indices, [&](const at::Tensor& index) {
    const bool is_mask = index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
    has_mask = has_mask || is_mask;
    return index;
  });
  const bool writes = call.called().schema().name() == "aten::_index_put_impl_";
  return has_mask && !(writes && call.tensor(2).numel() == 1 && call.tensor(2).is_cpu());
}

/// Throws as on a device if the call waits for a captured stream: it needs data of the device, or its results have sizes that
/// depend on such data.
inline void check_wait(const torch_call& call, const operator_plan& plan) {
  if (!plan.may_wait) return;
  if (plan.name == "aten::copy_") {
    const at::Tensor to = call.tensor(0);
    const at::Tensor from = call.tensor(1);
    if (to.is_cuda() == from.is_cuda() || call.flag(2)) return;
  } else if (plan.depends_on_masks) {
    if (!counts_mask(call)) return;
  } else if (plan.name == "aten::repeat_interleave.Tensor" && !call.argument(1).isNone()) {
    return;  // the program says how many there will be
  }
  TORCH_CHECK(fake_cuda_device.try_to_wait(), "CUDA error: operation not permitted when stream is capturing");
}

/// The call gives the thread's stream work to do, unless it only allocates.
inline void add_work(const operator_plan& plan) {
  if (!plan.name.starts_with("aten::empty")) fake_cuda_device.add_work();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
