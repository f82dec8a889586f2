#pragma once

#include <memprof/backend/torch/config.hpp>

#include <ATen/core/Tensor.h>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Marks a tensor as an input of the model: its block gets the category `input`, and reports show its name, shape, element type
/// and `requires_grad`.
///
/// Costs a lock and the text; use a bounded number of different names. Does nothing while no capture is active.
MEMPROF_TORCH_SEPARABLE void annotate_input(const at::Tensor& tensor, std::string_view name);

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate_input(const at::Tensor&, std::string_view) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#endif
