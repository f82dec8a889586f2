#pragma once

#include <memprof/backend/torch/config.hpp>

#include <torch/nn/module.h>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Annotates the tensors of a model: parameters, with their path in the module below `path`, their shape, element type and
/// current `requires_grad`; their gradients, present and future; and buffers, by name only, because PyTorch has no category for
/// them.
///
/// Call it once the parameters have their final storage: after `to`, before the first step. It stays in force for later captures,
/// which count blocks that they did not see allocated as `unknown_annotations`. Costs a lock and a text for each tensor, and
/// again for each gradient of a backward pass.
MEMPROF_TORCH_SEPARABLE void annotate_module(const torch::nn::Module& module, std::string_view path = {});

/// The same for a holder of a module, such as `torch::nn::Linear` or a `std::shared_ptr`.
template <class Holder>
requires requires(const Holder& holder) { holder->named_parameters(); }
void annotate_module(const Holder& holder, std::string_view path = {}) { annotate_module(*holder, path); }

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate_module(const torch::nn::Module&, std::string_view = {}) noexcept {}
template <class Holder>
requires requires(const Holder& holder) { holder->named_parameters(); }
void annotate_module(const Holder&, std::string_view = {}) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/annotate_module.hpp>
#endif
