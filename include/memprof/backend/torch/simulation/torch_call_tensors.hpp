#pragma once

#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// @file
/// The member functions of `torch_call` that make tensors.

namespace memprof::inline MEMPROF_ABI {

MEMPROF_TORCH_SEPARABLE at::Tensor torch_call::in_format(at::IntArrayRef sizes, const at::Tensor& like, c10::MemoryFormat format,
                                                         std::optional<at::ScalarType> dtype) {
  return detail::fake_strided(sizes, detail::strides_in(sizes, format), type_of(like, dtype), like.device());
}

MEMPROF_TORCH_SEPARABLE at::Tensor torch_call::empty_like(const at::Tensor& like, std::optional<at::ScalarType> dtype) {
  return detail::fake_strided(like.sizes(), detail::strides_like(like), type_of(like, dtype), like.device());
}

MEMPROF_TORCH_SEPARABLE at::Tensor torch_call::transposed(const at::Tensor& from, std::int64_t first, std::int64_t second) {
  std::vector<std::int64_t> sizes = from.sizes().vec();
  std::vector<std::int64_t> strides = from.strides().vec();
  std::swap(sizes[static_cast<std::size_t>(first)], sizes[static_cast<std::size_t>(second)]);
  std::swap(strides[static_cast<std::size_t>(first)], strides[static_cast<std::size_t>(second)]);
  return detail::tensor_over(from.storage(), from.dtype(), sizes, strides, from.storage_offset());
}

MEMPROF_TORCH_SEPARABLE bool torch_call::is_on_cuda(const at::Tensor& tensor) noexcept {
  const auto& made_for = detail::this_simulating_thread.meta_device;
  return tensor.is_cuda() || (tensor.is_meta() && made_for.has_value() && made_for->is_cuda());
}

MEMPROF_TORCH_SEPARABLE at::Tensor torch_call::viewed(const at::Tensor& from, at::IntArrayRef sizes) {
  return detail::tensor_over(from.storage(), from.dtype(), sizes, detail::strides_in(sizes, c10::MemoryFormat::Contiguous),
                             from.storage_offset());
}

}  // namespace memprof::inline MEMPROF_ABI
