#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

/// @file
/// What CUDA kernels hold besides their results, as far as the way they work leaves no doubt (aten/src/ATen/native/cuda/) or a
/// GPU has shown it. Calls of all other kernels are listed as approximations.

namespace memprof::inline MEMPROF_ABI::detail {

enum class cuda_memory : std::uint8_t {
  unknown,
  results,                ///< nothing else: the kernel fills, draws random numbers, or works element by element
  results_if_contiguous,  ///< inputs with gaps may be copied first
  reduction               ///< reductions: if many elements become one, several thread blocks hold partial results
};

/// Operators without a rule, by name without overload; sorted.
inline constexpr std::string_view kernels_of_cuda_with_results_alone[] = {"aten::_efficientzerotensor",
                                                                          "aten::_fused_sdp_choice",
                                                                          "aten::arange",
                                                                          "aten::cat",
                                                                          "aten::cauchy_",
                                                                          "aten::copysign_",
                                                                          "aten::elu",
                                                                          "aten::elu_backward",
                                                                          "aten::empty",
                                                                          "aten::empty_strided",
                                                                          "aten::eq_",
                                                                          "aten::exponential_",
                                                                          "aten::eye",
                                                                          "aten::fill_",
                                                                          "aten::floor_divide_",
                                                                          "aten::gcd_",
                                                                          "aten::ge_",
                                                                          "aten::gelu",
                                                                          "aten::gelu_",
                                                                          "aten::geometric_",
                                                                          "aten::gt_",
                                                                          "aten::hardshrink",
                                                                          "aten::hardshrink_backward",
                                                                          "aten::hardsigmoid",
                                                                          "aten::hardsigmoid_backward",
                                                                          "aten::hardswish_",
                                                                          "aten::heaviside_",
                                                                          "aten::lcm_",
                                                                          "aten::le_",
                                                                          "aten::leaky_relu",
                                                                          "aten::leaky_relu_backward",
                                                                          "aten::linspace",
                                                                          "aten::log_normal_",
                                                                          "aten::logspace",
                                                                          "aten::lt_",
                                                                          "aten::masked_fill_",
                                                                          "aten::mish",
                                                                          "aten::mish_",
                                                                          "aten::ne_",
                                                                          "aten::normal_",
                                                                          "aten::random_",
                                                                          "aten::range",
                                                                          "aten::resize_",
                                                                          "aten::softplus",
                                                                          "aten::softplus_backward",
                                                                          "aten::softshrink",
                                                                          "aten::softshrink_backward",
                                                                          "aten::threshold",
                                                                          "aten::threshold_",
                                                                          "aten::threshold_backward",
                                                                          "aten::uniform_",
                                                                          "aten::zero_"};

/// The same, for inputs without gaps.
inline constexpr std::string_view kernels_of_cuda_with_results_alone_if_contiguous[] = {"aten::_log_softmax",
                                                                                        "aten::_log_softmax_backward_data",
                                                                                        "aten::_softmax",
                                                                                        "aten::_softmax_backward_data",
                                                                                        "aten::adaptive_max_pool2d",
                                                                                        "aten::avg_pool2d",
                                                                                        "aten::avg_pool2d_backward",
                                                                                        "aten::gather",
                                                                                        "aten::glu",
                                                                                        "aten::index",
                                                                                        "aten::index_fill_",
                                                                                        "aten::max_pool2d_with_indices",
                                                                                        "aten::nll_loss_backward",
                                                                                        "aten::scatter",
                                                                                        "aten::scatter_",
                                                                                        "aten::scatter_add",
                                                                                        "aten::scatter_add_",
                                                                                        "aten::tril",
                                                                                        "aten::tril_",
                                                                                        "aten::triu",
                                                                                        "aten::triu_",
                                                                                        "aten::upsample_bilinear2d",
                                                                                        "aten::upsample_bilinear2d_backward",
                                                                                        "aten::upsample_nearest1d",
                                                                                        "aten::upsample_nearest1d_backward",
                                                                                        "aten::upsample_nearest2d",
                                                                                        "aten::upsample_nearest2d_backward",
                                                                                        "aten::upsample_nearest3d",
                                                                                        "aten::upsample_nearest3d_backward"};

/// Reductions, including those with a rule; sorted.
inline constexpr std::string_view reductions_on_cuda[] = {
    "aten::all",  "aten::amax",   "aten::amin",    "aten::aminmax",
    "aten::any",  "aten::argmax", "aten::argmin",  "aten::linalg_vector_norm",
    "aten::max",  "aten::mean",   "aten::min",     "aten::nansum",
    "aten::norm", "aten::prod",   "aten::std",     "aten::std_mean",
    "aten::sum",  "aten::var",    "aten::var_mean"};

[[nodiscard]] inline cuda_memory memory_on_cuda(std::string_view schema_name, bool is_pointwise) {
  const auto has = [&](const auto& names) { return std::binary_search(std::begin(names), std::end(names), schema_name); };
  if (is_pointwise || has(kernels_of_cuda_with_results_alone)) return cuda_memory::results;
  if (has(kernels_of_cuda_with_results_alone_if_contiguous)) return cuda_memory::results_if_contiguous;
  return has(reductions_on_cuda) ? cuda_memory::reduction : cuda_memory::unknown;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
