#pragma once

#include <memprof/backend/torch/simulation/cuda_reduction.hpp>
#include <memprof/backend/torch/simulation/estimated_call.hpp>
#include <memprof/backend/torch/simulation/fake_cuda_copies.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/late_draws.hpp>
#include <memprof/backend/torch/simulation/likely_result.hpp>
#include <memprof/backend/torch/simulation/meta_views.hpp>
#include <memprof/backend/torch/simulation/nested_tensors.hpp>
#include <memprof/backend/torch/simulation/nominal_results.hpp>
#include <memprof/backend/torch/simulation/nominal_values.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/refused_zeros.hpp>
#include <memprof/backend/torch/simulation/shape_functions.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/skipped_draws.hpp>
#include <memprof/backend/torch/simulation/sparse_tensors.hpp>
#include <memprof/backend/torch/simulation/stream_capture.hpp>
#include <memprof/backend/torch/simulation/taped_kernel.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/type_promotion.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// @file
/// How one call of an operator is simulated. The first of these that applies:
///
/// 1. The operator is a view: the CPU kernel creates it, since it reads no data.
/// 2. The kernel is the same for all devices and calls other operators: it runs, and those are simulated.
/// 3. All that is read has values and is small: the real kernel runs, and its results have values.
/// 4. All that is read is small: the real kernel runs on what is there. That is as fast as a rule, and right by construction.
///    Results of 5. to 8. get nominal values (nominal_results.hpp), for programs that read them.
/// 5. There is a rule: it allocates what the kernel allocates.
/// 6. There is a shape function (Meta kernel) that was compared with the real kernel and allocates as it does.
/// 7. The real kernel runs on what the arguments hold, mostly zeros; its results are discarded.
/// 8. That would take too much memory: the shape function runs, or the schema gives an estimate. The profile lists the call.

namespace memprof::inline MEMPROF_ABI::detail {

/// Runs the kernels of the devices as if the Fake key did not exist.
inline void run_for_real(torch_call& call, c10::DispatchKeySet keys) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    map_tensors(call.argument(index), [&](const at::Tensor& tensor) {
      const bool is_readable = are_simulated_tensors_read.load(std::memory_order_relaxed) && tensor.is_cpu();
      TORCH_CHECK(!is_fake(tensor) || (is_readable && tensor.storage().data() != nullptr), call.called().operator_name(),
                  is_simulating.load(std::memory_order_relaxed)
                      ? ": a tensor of a NO_DISPATCH capture has no data, so it cannot be used in a real_scope; make its data in "
                        "the scope"
                      : ": this tensor was made in a NO_DISPATCH capture that has ended, so it has no data; create it again");
      return tensor;
    });
  }
  call.called().redispatchBoxed(kernel_keys(keys, false), &call.stack());
}

/// 1. Nested views are created in the same way.
inline void run_view(torch_call& call, const call_facts& facts) {
  const c10::DispatchKey key = facts.is_on_meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
  call.called().redispatchBoxed(c10::DispatchKeySet{key}, &call.stack());
}

/// 2. Not what has a kernel of its own for the sparse tensors of a call.
[[nodiscard]] inline bool is_composed(const operator_plan& plan, const call_facts& facts) {
  return plan.is_composed && !(facts.is_sparse && plan.has_sparse_kernel);
}
inline void run_composed(torch_call& call, c10::DispatchKeySet keys) {
  call.called().redispatchBoxed(kernel_keys(keys, false), &call.stack());
}
inline void run_composed(torch_call& call, const operator_plan& plan, const call_facts& facts, c10::DispatchKeySet keys) {
  // A libtorch with CUDA has kernels of its own for some of these, as for each `_foreach_`; the CPU has none for any.
  run_composed(call, facts.is_on_cuda && facts.has_tensor ? c10::DispatchKeySet{c10::DispatchKey::CPU} : keys);
  if (!plan.computes_unseen || facts.has_values) return;
  for_each_result(call, [](const c10::IValue& result) {
    if (result.isTensor()) discard_values(result.toTensor());
  });
}

/// 8. Guesses and lists the call in the profile; throws `c10::Error` if there is nothing to go by.
[[gnu::cold, gnu::noinline]] inline void run_estimate(torch_call& call, const operator_plan& plan) {
  call.approximate("no rule, no shape function, and no kernel that can run: results are assumed to have the sizes of the inputs");
  TORCH_CHECK(estimate_call(call), "NO_DISPATCH: cannot determine the results of '", plan.name,
              "'; register a rule before the capture: memprof::register_torch_rule(\"", plan.name,
              "\", [](memprof::torch_call& call) { call.returns(call.empty(sizes, call.tensor(0))); });");
}

/// 8.
inline void run_approximately(torch_call& call, const operator_plan& plan) {
  if (!plan.has_shape_function) return run_estimate(call, plan);
  call.approximate("too large to run its kernel: results are exact, the kernel's scratch memory is unknown");
  run_shape_function(call);
}

/// Creates results with the sizes from the shape function.
inline void run_shape_function_for_cuda(torch_call& call, const operator_plan& plan, const call_facts& facts) {
  const bool is_known = plan.on_cuda == cuda_memory::results || plan.on_cuda == cuda_memory::reduction ||
                        (plan.on_cuda == cuda_memory::results_if_contiguous && facts.is_contiguous);
  if (!is_known) call.approximate("results are exact; scratch memory on CUDA is unknown");
  run_shape_function(call);
}

/// A reduction on CUDA, before its results take the place of its arguments.
class cuda_reduction {
 public:
  explicit cuda_reduction(const torch_call& call) : input_(call.tensor(0)) {
    const std::vector<c10::Argument>& arguments = call.called().schema().arguments();
    for (std::size_t index = 1; index < arguments.size(); ++index) {
      if (arguments[index].name() != "dim") continue;
      dimensions_ = call.integers(index);
      has_one_dimension_ = call.argument(index).isInt();
    }
  }

  /// Creates and frees what the kernel holds besides its results, which are there.
  void hold_partial_results(torch_call& call) const {
    const c10::IValue& first = torch::jit::peek(call.stack(), 0, call.called().schema().returns().size());
    if (!first.isTensor() || !first.toTensor().defined() || call.cause() != nullptr) return;
    const at::ScalarType of_result = first.toTensor().scalar_type();
    const at::ScalarType own = input_.scalar_type();
    const std::string& name = call.called().operator_name().name;
    const bool sums = name == "aten::sum" || name == "aten::nansum" || name == "aten::prod" || name == "aten::mean";
    // 16-bit types are read as they are where the sum is in single precision.
    const bool is_copied = sums && of_result != own && !(own != accumulation_type(own) && of_result == at::kFloat);
    const at::Tensor copied = is_copied ? torch_call::empty_like(input_, of_result) : input_;
    const bool finds_index = has_one_dimension_ && (name == "aten::max" || name == "aten::min");
    const std::int64_t bytes = finds_index ? partial_result_bytes("aten::argmax", copied, own)
                                           : partial_result_bytes(name, copied, sums ? copied.scalar_type() : own);
    constexpr std::size_t most_for_one_kernel = std::numeric_limits<std::int32_t>::max();
    if (bytes == 0 || copied.nbytes() > most_for_one_kernel) {
      if (input_.numel() >= (std::int64_t{1} << 16))
        call.approximate("results are exact; partial results of a long reduction on CUDA are unknown");
      return;
    }
    detail::hold_partial_results(copied, dimensions_, bytes);
  }

 private:
  at::Tensor input_;
  std::vector<std::int64_t> dimensions_;
  bool has_one_dimension_ = false;
};

/// Creates results with the sizes from the CPU kernel.
inline void run_kernel_for_cuda(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys) {
  stand_ins replaced;
  const hidden_results computed = compute_hidden(call, plan, keys, replaced, max_kernel_bytes);
  replaced.take_over_sizes();
  fake_cuda_copies copies;
  torch::jit::drop(call.stack(), call.size());
  for (c10::IValue result : computed.all()) {
    map_tensors(result, [&](const at::Tensor& made) { return on_fake_cuda(made, replaced, copies); });
    call.stack().push_back(std::move(result));
  }
  take_over_sparse_parts(replaced, copies);
  if (call.cause() == nullptr && (plan.on_cuda == cuda_memory::unknown || plan.on_cuda == cuda_memory::results_if_contiguous))
    call.approximate("results are those of the CPU kernel; scratch memory on CUDA is unknown");
}

/// Whether the dispatcher finds a CPU kernel for a call.
[[nodiscard]] inline bool has_kernel(const torch_call& call, const call_facts& facts, c10::DispatchKeySet keys) {
  if (facts.is_sparse) return call.called().hasComputedKernelForDispatchKey(c10::DispatchKey::SparseCPU);
  const c10::DispatchKey key = kernel_keys(keys, facts.is_on_cuda && facts.has_tensor).highestPriorityTypeId();
  return key != c10::DispatchKey::Undefined && call.called().hasComputedKernelForDispatchKey(key);
}

/// 4. and 7.
inline void run_kernel_on_zeros(torch_call& call, const operator_plan& plan, const call_facts& facts, c10::DispatchKeySet keys) {
  if (facts.bytes > max_argument_bytes || !has_kernel(call, facts, keys)) return run_approximately(call, plan);
  const bool has_what_decides = plan.depends_on_masks ? facts.has_masks : facts.has_values;
  const bool is_size_known = !plan.depends_on_data || has_what_decides;
  if (plan.holds_by_data && !has_what_decides) call.approximate("scratch memory depends on data: assumed to be that for zeros");
  if (!facts.is_on_cuda && run_smaller_batches(call, plan, keys)) return;
  try {
    with_data_that_suits(call, plan, [&] {
      if (facts.is_on_cuda)
        run_kernel_for_cuda(call, plan, keys);
      else
        run_or_play_kernel(call, plan, keys, facts.bytes);
    });
    if (!facts.has_values && reports_failure(plan)) assume_success(call);
    if (!is_size_known) assume_size_of_result(call, "the sizes of the results depend on data: assumed to be those for zeros");
  } catch (const kernel_too_large&) {
    run_approximately(call, plan);
  } catch (const c10::Error&) {
    // If sizes or types are wrong, the shape function refuses them, too.
    if (facts.has_values || !plan.has_shape_function || !facts.is_dense) throw;
    call.approximate("the kernel refuses the data that the simulation can give it: results are exact, scratch memory is unknown");
    run_shape_function(call);
  }
}

inline void run_without_rule(torch_call& call, const operator_plan& plan, const call_facts& facts, c10::DispatchKeySet keys) {
  if (is_composed(plan, facts)) return run_composed(call, plan, facts, keys);
  if (facts.is_on_cuda) refuse_compressed_results(call);
  if (!facts.is_dense) return run_kernel_on_zeros(call, plan, facts, keys);
  if (plan.has_shape_function && facts.is_on_cuda) return run_shape_function_for_cuda(call, plan, facts);
  if (call.runs_without_rule()) return run_kernel_on_zeros(call, plan, facts, keys);
  if (plan.has_shape_function && plan.is_pointwise && has_known_promotion(call, plan, facts))
    return run_with_promotion(call, plan);
  const bool is_exact = (plan.is_exact || (plan.is_exact_if_plain && facts.is_plain)) && !facts.names_other_type;
  if (plan.has_shape_function && is_exact) return run_shape_function(call);
  run_kernel_on_zeros(call, plan, facts, keys);
}

/// Whether the kernel runs on whatever bytes its small arguments have: 4. On fake CUDA, it computes only the bytes of the
/// results.
[[nodiscard]] inline bool runs_small_kernel(const operator_plan& plan, const call_facts& facts, const kept_rule* rule) {
  return !facts.is_on_meta && facts.is_dense && plan.has_cpu_kernel && !plan.depends_on_data &&
         (rule == nullptr || rule->use == rule_use::unless_small) &&
         facts.bytes < small_kernel_bytes.load(std::memory_order_relaxed);
}

/// 4. to 8.
inline void simulate_memory(torch_call& call, operator_plan& plan, const call_facts& facts, c10::DispatchKeySet keys) {
  if (facts.is_on_cuda) add_work(plan);
  const std::int64_t bytes_before = this_simulating_thread.allocated_bytes;
  const bool is_drawn = has_drawn_size(call, plan);
  std::optional<cuda_reduction> reduction;
  if (facts.is_on_cuda && plan.on_cuda == cuda_memory::reduction && call.argument(0).isTensor()) reduction.emplace(call);
  // Acquire pairs with the release in `set_rule`.
  const kept_rule* rule = plan.rule.load(std::memory_order_acquire);
  if (rule != nullptr && rule->use != rule_use::always && !facts.is_dense) rule = nullptr;
  if (!facts.is_on_cuda && runs_small_kernel(plan, facts, rule)) {
    run_kernel_on_zeros(call, plan, facts, keys);
  } else if (rule != nullptr) {
    rule->run(call);
    if (call.runs_without_rule()) run_without_rule(call, plan, facts, keys);
  } else if (facts.is_on_meta) {
    run_on_meta(call);
  } else {
    run_without_rule(call, plan, facts, keys);
  }
  if (reduction.has_value()) reduction->hold_partial_results(call);
  const std::int64_t bytes = this_simulating_thread.allocated_bytes - bytes_before;
  if (call.cause() != nullptr) plan.count_estimate(call.cause(), bytes);
  if (is_drawn && call.cause_of_length() == nullptr) assume_size_of_result(call, drawn_after_skipped);
  if (call.cause_of_length() != nullptr &&
      !this_simulating_thread.meta_device.has_value()) {  // within another call, that is listed
    assumed_sizes::instance().add(plan.name, call.cause_of_length(), call.assumed_length(), call.greatest_length(), bytes);
  }
}

/// One operation of a simulated thread.
inline void simulate(torch_call& call, c10::DispatchKeySet keys) {
  operator_plan& plan = all_operator_plans().plan_of(call.called());
  const call_facts facts = facts_of(call, plan);
  if (plan.is_view && facts.is_dense) return run_view(call, facts);
  if (facts.is_on_cuda) check_wait(call, plan);
  if (facts.is_on_meta) return simulate_memory(call, plan, facts, keys);
  if (facts.is_on_cuda && run_nested_on_cuda(call, plan, facts)) return;
  const kept_rule* const rule = plan.rule.load(std::memory_order_relaxed);
  const bool is_rule_for_cuda = rule != nullptr && rule->use == rule_use::unless_small;
  if (is_composed(plan, facts) && (rule == nullptr || (is_rule_for_cuda && !facts.is_on_cuda))) {
    if (plan.holds_by_data && !facts.has_values) plan.count_estimate("memory depends on data: assumed to be that for zeros", 0);
    return run_composed(call, plan, facts, keys);
  }

  const bool suits_values = facts.has_values && facts.is_small && facts.is_dense && plan.has_cpu_kernel &&
                            (rule == nullptr || rule->use != rule_use::always);
  const std::vector<at::Tensor> written = facts.writes ? written_tensors(call, plan) : std::vector<at::Tensor>{};
  const bool runs_on_values = suits_values && !facts.is_on_cuda;
  if (runs_on_values && !facts.writes && run_listed_on_values(call, plan, keys, written)) return;
  const likely_result shares{call, plan};
  if (runs_on_values && facts.writes && run_listed_on_values(call, plan, keys, written)) {
    return shares.give_to_results(call, written);  // a part of an unknown tensor may have been written
  }
  const bool computes_bytes = runs_small_kernel(plan, facts, rule) && materialize_arguments(call, plan);
  if (facts.is_on_cuda && (suits_values || computes_bytes)) {
    // CUDA's generator draws other numbers than the CPU's kernels.
    const late_draw drawn{call, plan, suits_values && (plan.draws || reads_drawn_after_skipped(call, plan))};
    if (const auto computed = compute_for_cuda(call, plan, keys)) {
      simulate_memory(call, plan, facts, keys);
      take_over_values(call, *computed, suits_values);
      for (const at::Tensor& tensor : written) suits_values ? keep_values(tensor) : discard_values(tensor);
      if (drawn.is_drawn()) list_late_read(call, plan, true);
      drawn.mark_results(call, written);
      return shares.give_to_results(call, written);
    }
  }
  std::optional<nominal_result> nominal;
  if (!computes_bytes || facts.is_on_cuda) nominal.emplace(call, plan);
  if (plan.draws && !computes_bytes) skipped_draws::instance().skip(call, facts.is_on_cuda);
  simulate_memory(call, plan, facts, keys);
  for (const at::Tensor& tensor : written) forget_values(tensor);
  if (nominal.has_value()) nominal->give_to_results(call);
  shares.give_to_results(call, written);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
