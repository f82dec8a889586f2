#pragma once

#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>
#include <memprof/backend/torch/version.hpp>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool1d_with_indices.h>
#include <ATen/ops/nanquantile.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor_split.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
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

#define MEMPROF_TORCH_PREFERS_CUDNN (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11))
#if MEMPROF_TORCH_PREFERS_CUDNN
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline bool is_simulated(const at::Tensor& tensor) { return !runs_for_real() && is_fake(tensor); }

/// The arguments of attention, as far as the choice of a kernel depends on them (sdp_utils.cpp, for devices of compute
/// capability 8.0 and higher).
struct attention_inputs {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
  at::Tensor mask;  ///< undefined: none
  bool is_causal;
  bool is_grouped;  ///< several heads of the query may share one of key and value

  [[nodiscard]] bool is_half() const { return query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16; }
  [[nodiscard]] bool has_equal_heads() const { return query.size(1) == key.size(1) && query.size(1) == value.size(1); }
  [[nodiscard]] bool has_groups_of_heads() const {
    return is_grouped && key.size(1) == value.size(1) && key.size(1) != 0 && query.size(1) % key.size(1) == 0;
  }
  /// What holds for each kernel but that of many steps.
  [[nodiscard]] bool is_regular() const {
    for (const at::Tensor& each : {query, key, value}) {
      if (each.dim() != 4 || each.size(0) != query.size(0) || each.size(2) == 0 || each.stride(-1) != 1) return false;
    }
    return !mask.defined() || mask.stride(-1) == 1;
  }

  /// Preferred from Hopper on, by the versions that were compared with one.
  [[nodiscard]] bool suit_cudnn() const {
#if MEMPROF_TORCH_PREFERS_CUDNN
    constexpr std::int64_t longest_head = 256;
    return claimed_cuda.load(std::memory_order_relaxed).is_hopper_or_later && at::globalContext().userEnabledCuDNNSDP() &&
           is_regular() && is_half() && (has_equal_heads() || has_groups_of_heads()) && query.size(3) <= longest_head &&
           query.size(3) % 8 == 0 && value.size(3) % 8 == 0 && query.size(3) == key.size(3) && key.size(2) > 1 &&
           !mask_needs_gradient();
#else
    return false;
#endif
  }
  [[nodiscard]] bool mask_needs_gradient() const { return mask.defined() && mask.requires_grad() && at::GradMode::is_enabled(); }

  [[nodiscard]] bool suit_flash() const {
    constexpr std::int64_t longest_head = 256;
    return at::globalContext().userEnabledFlashSDP() && is_regular() && is_half() && !mask.defined() &&
           (has_equal_heads() || has_groups_of_heads()) && query.size(3) <= longest_head && query.size(3) == key.size(3) &&
           query.size(3) == value.size(3) && (!is_causal || query.size(2) == key.size(2));
  }
  [[nodiscard]] bool suit_efficient() const {
    const std::int64_t alignment = is_half() ? 8 : 4;
    return at::globalContext().userEnabledMemEfficientSDP() && is_regular() && has_equal_heads() &&
           (is_half() || query.scalar_type() == at::kFloat) && query.size(3) == key.size(3) && query.size(3) != 0 &&
           query.size(3) % alignment == 0 && value.size(3) % alignment == 0;
  }
};

/// A template, for the signature of libtorch's `scaled_dot_product_attention`: older versions have no `enable_gqa`, and an
/// optional type of their own.
template <class Operator>
struct attention_choice;

template <class Mask, class Scale, class... Grouped>
struct attention_choice<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, Mask, double, bool, Scale,
                                   Grouped...)> {
  /// Chooses as libtorch with CUDA does, unless the program prefers cuDNN.
  static at::Tensor choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask, double dropout,
                           bool is_causal, Scale scale, Grouped... is_grouped) {
    const c10::impl::ExcludeDispatchKeyGuard below{c10::DispatchKey::DeferredInit};
    if (!is_simulated(query) || !query.is_cuda() || query.dim() != 4) {
      return at::scaled_dot_product_attention(query, key, value, mask, dropout, is_causal, scale, is_grouped...);
    }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
    if (at::autocast::is_autocast_enabled(at::kCUDA)) {
      const auto cast = [to = at::autocast::get_autocast_dtype(at::kCUDA)](const at::Tensor& tensor) {
        return at::autocast::cached_cast(to, tensor, at::kCUDA);
      };
      std::remove_cvref_t<Mask> mask_of_type = mask;
      if (mask.has_value() && mask->defined()) mask_of_type = cast(*mask);
      const at::Tensor cast_query = cast(query);
      const at::Tensor cast_key = cast(key);
      const at::Tensor cast_value = cast(value);
      const c10::impl::ExcludeDispatchKeyGuard no_autocast{at::autocast::get_autocast_dispatch_key_from_device_type(at::kCUDA)};
      return choose_kernel(cast_query, cast_key, cast_value, mask_of_type, dropout, is_causal, scale, is_grouped...);
    }
#endif
    return choose_kernel(query, key, value, mask, dropout, is_causal, scale, is_grouped...);
  }

 private:
  static at::Tensor choose_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  const std::remove_cvref_t<Mask>& mask, double dropout, bool is_causal, Scale scale,
                                  Grouped... is_grouped) {
    const bool has_mask = mask.has_value() && mask->defined();
    const attention_inputs inputs{query, key, value, has_mask ? *mask : at::Tensor{}, is_causal, (false || ... || is_grouped)};
    if (inputs.suit_flash() && !inputs.suit_cudnn()) {
      return std::get<0>(at::_scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, false, scale));
    }
    const bool needs_gradient =
        at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
    std::remove_cvref_t<Mask> bias = mask;
    if (has_mask && mask->scalar_type() == at::kBool) {
      bias = at::zeros_like(*mask, mask->options().dtype(query.scalar_type())).masked_fill_(mask->logical_not(), 0);
    }
#if MEMPROF_TORCH_PREFERS_CUDNN
    if (inputs.suit_cudnn()) {
      return std::get<0>(
          at::_scaled_dot_product_cudnn_attention(query, key, value, bias, needs_gradient, dropout, is_causal, false, scale));
    }
#endif
    if (!inputs.suit_efficient()) {
      return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, bias, dropout, is_causal, std::nullopt, scale,
                                                                is_grouped...));
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
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Tracer)) {  // a trace needs an operator
    return std::get<0>(at::max_pool1d_with_indices(input, kernel, stride, padding, dilation, rounds_up));
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

inline void refuse_to_compute(const c10::OperatorHandle& called, torch::jit::Stack*) {
  TORCH_CHECK(false, called.operator_name(), ": there is no CUDA device");
}

/// Autograd takes operators apart that have no kernel for the device. These have one on CUDA, and elsewhere are composed of
/// others; in a build without CUDA, such a kernel is registered for them, which is not called.
inline void keep_whole_on_cuda() {
  static auto* const kernels = new torch::Library{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};
  for (const char* const name : {"silu_backward", "mish_backward", "_fused_rms_norm"}) {
    const auto known = c10::Dispatcher::singleton().findOp({std::string{"aten::"} + name, ""});
    if (!known.has_value() || known->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;
    kernels->impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse_to_compute>());
  }
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
