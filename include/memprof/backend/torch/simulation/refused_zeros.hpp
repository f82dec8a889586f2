#pragma once

#include <memprof/backend/torch/simulation/real_kernel.hpp>

#include <ATen/ops/eye.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <vector>

/// @file
/// Kernels that refuse zeros, such as matrix inversion or sampling from probabilities, are retried with identity matrices and
/// ones; factorizations succeed.

namespace memprof::inline MEMPROF_ABI::detail {

/// Fills arguments without values with data that most kernels accept, and with zeros again at the end of the scope.
class [[nodiscard]] suitable_data {
 public:
  suitable_data(const torch_call& call, const operator_plan& plan, bool fills_integers) {
    for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
      const bool is_number = at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type());
      if ((!is_number && !fills_integers) || role.is_overwritten || !is_fake(tensor) || has_values(tensor)) return;
      if (block_of(*tensor.storage().unsafeGetStorageImpl())->data != nullptr) filled_.push_back(tensor);
    });
    const kernel_scope scope{max_kernel_bytes, true};
    const c10::impl::ExcludeDispatchKeyGuard no_graph{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
    stand_ins replaced;
    for (const at::Tensor& tensor : filled_) {
      at::Tensor memory = replaced.stand_in_of(tensor, true);
      for (std::int64_t dimension = 0; dimension < memory.dim(); ++dimension) {  // expanded dimensions are written once
        if (memory.stride(dimension) == 0 && memory.size(dimension) > 1) memory = memory.narrow(dimension, 0, 1);
      }
      const bool is_square = memory.dim() >= 2 && memory.size(-1) == memory.size(-2);
      if (is_square)
        memory.copy_(at::eye(memory.size(-1), memory.options()).expand_as(memory));
      else
        memory.fill_(1);
    }
  }
  suitable_data(const suitable_data&) = delete;
  suitable_data& operator=(const suitable_data&) = delete;
  ~suitable_data() {
    for (const at::Tensor& tensor : filled_) forget_values(*block_of(*tensor.storage().unsafeGetStorageImpl()));
  }

 private:
  std::vector<at::Tensor> filled_;
};

/// Calls `run`. If it throws and has left nothing allocated, nothing is recorded. Of a kernel that is not known to refuse zeros,
/// the allocations before the exception are recorded.
template <class Run>
void run_or_forget(const operator_plan& plan, Run run) {
  if (!plan.refuses_zeros) return run();
  pending_events events;
  try {
    run();
  } catch (...) {
    if (!events.have_left_nothing()) events.commit();
    throw;
  }
  events.commit();
}

/// Calls `run`, and again with other data if it throws `c10::Error`: first with other floating-point numbers, then also with
/// other integers. If that fails, too, rethrows the first exception.
template <class Run>
void with_data_that_suits(torch_call& call, const operator_plan& plan, Run run) {
  try {
    return run_or_forget(plan, run);
  } catch (const c10::Error&) {
    for (const bool fills_integers : {false, true}) {
      try {
        const suitable_data filled{call, plan, fills_integers};
        return run_or_forget(plan, run);
      } catch (const c10::Error&) {  // the first exception is rethrown
        continue;
      }
    }
    throw;
  }
}

/// Whether the last result says where a factorization has failed.
[[nodiscard]] inline bool reports_failure(const operator_plan& plan) {
  const auto& results = plan.schema->returns();
  return !results.empty() && results.back().name() == "info";
}

/// A factorization of unknown data is assumed to succeed, as `_linalg_check_errors` does.
inline void assume_success(torch_call& call) {
  const c10::IValue& last = call.stack().back();
  if (!last.isTensor() || !last.toTensor().defined() || !is_dense(last.toTensor())) return;
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(last.toTensor(), true);
  const kernel_scope scope{max_kernel_bytes, true};
  memory.zero_();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
