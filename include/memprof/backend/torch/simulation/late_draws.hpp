#pragma once

#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/nominal_results.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/skipped_draws.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// @file
/// What follows from numbers that were drawn after skipped ones, or by a claimed CUDA device: sizes and decisions, which are
/// listed.

namespace memprof::inline MEMPROF_ABI::detail {

/// Of a small tensor with values.
[[nodiscard]] inline bool has_finite_numbers(const at::Tensor& tensor) {
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  const kernel_scope scope{max_kernel_bytes, true};
  const c10::impl::ExcludeDispatchKeyGuard no_graph{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  return at::isfinite(memory).all().item<bool>();
}

/// Whether a comparison finds the same whatever was drawn: if numbers are finite here, they are taken to be in a real run, and
/// equal to themselves. Uniform ones are not below 0, as layers are dropped by default, or above 1.
[[nodiscard]] inline bool finds_the_same(const torch_call& call, const operator_plan& plan) {
  const std::string& name = plan.schema->name();
  if (name == "aten::isnan") return has_finite_numbers(call.tensor(0));
  const bool compares_sizes = name == "aten::lt" || name == "aten::le" || name == "aten::gt" || name == "aten::ge";
  if (!compares_sizes && name != "aten::eq" && name != "aten::ne") return false;
  const at::Tensor compared = call.tensor(0);
  if (call.argument(1).isTensor()) return call.tensor(1).is_same(compared) && has_finite_numbers(compared);
  const double limit = nominal_call{call}.value(1);
  if (!std::isfinite(limit)) return has_finite_numbers(compared);
  const fake_block* const block = block_of(*compared.storage().unsafeGetStorageImpl());
  return compares_sizes && block != nullptr && block->choices.load(std::memory_order_relaxed) == uniform_choices &&
         (limit <= 0 || limit >= 1);
}

/// If `item()` has read such a number. One with a fraction is mostly printed, and one beyond all sizes is a seed.
inline void list_late_read(torch_call& call, const operator_plan& plan, bool is_on_cuda) {
  if (plan.schema->name() != "aten::_local_scalar_dense") return;
  const c10::IValue& read = torch::jit::peek(call.stack(), 0, 1);
  if (read.isInt() && read.toInt() > std::numeric_limits<std::int32_t>::max()) return;
  if (read.isInt() || read.isBool()) return unknown_reads::instance().add(read_use::steers);
  if (is_on_cuda) unknown_reads::instance().add(read_use::prints);
}

/// What a call makes of such numbers. Make it before the call.
class late_draw {
 public:
  late_draw(const torch_call& call, const operator_plan& plan, bool is_drawn)
      : is_drawn_(is_drawn),
        is_certain_(is_drawn && finds_the_same(call, plan)),
        is_uniform_(is_drawn && plan.schema->name() == "aten::uniform_" && nominal_call{call}.value(1) == 0 &&
                    nominal_call{call}.value(2) == 1) {}

  [[nodiscard]] bool is_drawn() const noexcept { return is_drawn_; }
  [[nodiscard]] bool decides_results() const noexcept { return is_drawn_ && !is_certain_; }

  /// Marks what the call has written and made.
  void mark_results(torch_call& call, const std::vector<at::Tensor>& written) const {
    if (!decides_results()) return;
    const std::int64_t choices = is_uniform_ ? uniform_choices : 0;
    for (const at::Tensor& tensor : written) {
      note_drawn_after_skipped(tensor);
      if (fake_block* const block = written_block(tensor)) block->choices.store(choices, std::memory_order_relaxed);
    }
    for_each_result(call, [](const c10::IValue& result) {
      if (result.isTensor()) note_drawn_after_skipped(result.toTensor());
    });
  }

 private:
  bool is_drawn_;
  bool is_certain_;
  bool is_uniform_;
};

/// A call on values. If these rest on numbers drawn after skipped ones, so do the results, and a size or a decision by them is
/// listed.
[[nodiscard]] inline bool run_listed_on_values(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys,
                                               const std::vector<at::Tensor>& written) {
  const bool draws_late = plan.draws && skipped_draws::instance().precede(call, false);
  const late_draw drawn{call, plan, draws_late || reads_drawn_after_skipped(call, plan)};
  const bool is_size_drawn = (plan.depends_on_data && draws_late) || has_drawn_size(call, plan);
  const std::int64_t bytes_before = this_simulating_thread.allocated_bytes;
  if (!run_on_values(call, plan, keys)) return false;
  if (!drawn.is_drawn()) return true;
  list_late_read(call, plan, false);
  if (!drawn.decides_results()) return true;
  drawn.mark_results(call, written);
  if (!is_size_drawn) return true;
  assume_size_of_result(call, drawn_after_skipped);
  assumed_sizes::instance().add(plan.name, call.cause_of_length(), call.assumed_length(), call.greatest_length(),
                                this_simulating_thread.allocated_bytes - bytes_before);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
