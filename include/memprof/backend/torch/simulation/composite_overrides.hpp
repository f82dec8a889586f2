#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/nanquantile.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor_split.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// @file
/// Operators above autograd that, before they call others, depend on how libtorch was built or read data. They are replaced for
/// fake tensors.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline bool is_simulated(const at::Tensor& tensor) { return !runs_for_real() && is_fake(tensor); }

/// Whether a GPU's flash attention accepts these (sdp_utils.cpp): 16-bit types, heads of at most 256 elements.
[[nodiscard]] inline bool suits_flash_attention(const at::Tensor& query) {
  return (query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16) && query.size(-1) <= 256;
}

/// A template, for the signature of libtorch's `scaled_dot_product_attention`: older versions have no `enable_gqa`, and an
/// optional type of their own.
template <class Operator>
struct attention_choice;

template <class Mask, class Scale, class... Grouped>
struct attention_choice<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, Mask, double, bool, Scale,
                                   Grouped...)> {
  /// Chooses as libtorch with CUDA does on a device of compute capability 8.0 or higher.
  static at::Tensor choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask, double dropout,
                           bool is_causal, Scale scale, Grouped... is_grouped) {
    const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
    const bool has_mask = mask.has_value() && mask->defined();
    if (!is_simulated(query) || !query.is_cuda() || query.dim() != 4) {
      return at::scaled_dot_product_attention(query, key, value, mask, dropout, is_causal, scale, is_grouped...);
    }
    if (!has_mask && suits_flash_attention(query)) {
      return std::get<0>(at::_scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, false, scale));
    }
    const bool needs_gradient =
        at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
    std::remove_cvref_t<Mask> bias = mask;
    if (has_mask && mask->scalar_type() == at::kBool) {
      bias = at::zeros_like(*mask, mask->options().dtype(query.scalar_type())).masked_fill_(mask->logical_not(), 0);
    }
    return std::get<0>(
        at::_scaled_dot_product_efficient_attention(query, key, value, bias, needs_gradient, dropout, is_causal, scale));
  }
};

/// On the CPU without gradients, the kernel is called without the dispatcher.
inline at::Tensor choose_max_pool(const at::Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride,
                                  at::IntArrayRef padding, at::IntArrayRef dilation, bool rounds_up) {
  const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
  const bool needs_gradient = at::GradMode::is_enabled() && input.requires_grad();
  if (!is_simulated(input) || !input.is_cpu() || needs_gradient) {
    return at::max_pool1d(input, kernel, stride, padding, dilation, rounds_up);
  }
  const std::int64_t step = stride.empty() ? kernel[0] : stride[0];
  const std::int64_t reach = dilation[0] * (kernel[0] - 1) + 1;
  const std::int64_t space = input.size(-1) + 2 * padding[0] - reach;
  std::int64_t outputs = (space + (rounds_up ? step - 1 : 0)) / step + 1;
  // The last window begins within the input or the padding before it.
  if (rounds_up && (outputs - 1) * step >= input.size(-1) + padding[0]) --outputs;
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = outputs;
  at::Tensor result = torch_call::empty(sizes, input);
  const at::Tensor copy = torch_call::contiguous(input);
  return result;
}

/// Lengths that determine sizes; the longest that the tensors allow if the simulation does not know them.
inline at::Tensor choose_ctc_loss(const at::Tensor& log_probabilities, const at::Tensor& targets, const at::Tensor& input_lengths,
                                  const at::Tensor& target_lengths, std::int64_t blank, std::int64_t reduction,
                                  bool makes_infinite_zero) {
  const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
  if (!is_simulated(log_probabilities) || (has_values(input_lengths) && has_values(target_lengths))) {
    return at::ctc_loss(log_probabilities, targets, input_lengths, target_lengths, blank, reduction, makes_infinite_zero);
  }
  static operator_plan& plan =
      all_operator_plans().plan_of(c10::Dispatcher::singleton().findSchemaOrThrow("aten::ctc_loss", "Tensor"));
  const bool is_batch = log_probabilities.dim() == 3;
  const auto batch = static_cast<std::size_t>(is_batch ? log_probabilities.size(1) : 1);
  const std::vector<std::int64_t> of_inputs(batch, log_probabilities.size(0));
  std::vector<std::int64_t> of_targets(batch, targets.dim() == 2 ? targets.size(1) : 0);
  if (targets.dim() == 1 && batch != 0) of_targets[0] = targets.size(0);  // concatenated
  const auto longest = static_cast<std::int64_t>(batch == 0 ? 0 : of_targets[0]);
  assumed_sizes::instance().add(
      plan.name, "the lengths of targets depend on data: assumed to be the longest that the sizes allow", longest, longest, 0);
  return at::ctc_loss(log_probabilities, targets, of_inputs, of_targets, blank, reduction, makes_infinite_zero);
}

/// Positions to split at, read from a tensor; equal parts if the simulation does not know them.
inline std::vector<at::Tensor> choose_split(const at::Tensor& self, const at::Tensor& where, std::int64_t dimension) {
  const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
  if (!is_simulated(self) || has_values(where)) return at::tensor_split(self, where, dimension);
  unknown_reads::instance().add(read_use::steers);
  return at::tensor_split(self, where.dim() == 0 ? 1 : where.numel() + 1, dimension);
}

/// Quantiles, which are checked to be between 0 and 1; medians if the simulation does not know them.
template <auto Quantile, class Result, class... Result_argument>
Result choose_quantile(const at::Tensor& self, const at::Tensor& quantiles, std::optional<std::int64_t> dimension,
                       bool keeps_dimension, c10::string_view interpolation, Result_argument... result) {
  const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
  if (!is_simulated(self) || has_values(quantiles)) {
    return Quantile(self, quantiles, dimension, keeps_dimension, interpolation, result...);
  }
  unknown_reads::instance().add(read_use::prints);
  const at::Tensor medians = at::full(quantiles.sizes(), 0.5, quantiles.options());
  return Quantile(self, medians, dimension, keeps_dimension, interpolation, result...);
}

/// Registers the overrides permanently; they are never called on threads that are not simulated.
inline void override_composites() {
  static auto* const overrides =
      new torch::Library{torch::Library::IMPL, "aten", c10::DispatchKey::DeferredInit, __FILE__, __LINE__};
  overrides->impl("scaled_dot_product_attention",
                  TORCH_FN(attention_choice<at::_ops::scaled_dot_product_attention::schema>::choose));
  overrides->impl("max_pool1d", TORCH_FN(choose_max_pool));
  overrides->impl("quantile", TORCH_FN((choose_quantile<&at::_ops::quantile::call, at::Tensor>)));
  overrides->impl("quantile.out", TORCH_FN((choose_quantile<&at::_ops::quantile_out::call, at::Tensor&, at::Tensor&>)));
  overrides->impl("nanquantile", TORCH_FN((choose_quantile<&at::_ops::nanquantile::call, at::Tensor>)));
  overrides->impl("nanquantile.out", TORCH_FN((choose_quantile<&at::_ops::nanquantile_out::call, at::Tensor&, at::Tensor&>)));
  overrides->impl("ctc_loss.Tensor", TORCH_FN(choose_ctc_loss));
  overrides->impl("tensor_split.tensor_indices_or_sections", TORCH_FN(choose_split));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
