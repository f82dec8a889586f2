#pragma once

#include <memprof/backend/torch/capture/tensor_annotation.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// The name of an element type as PyTorch users write it; types not listed keep their C++ name.
[[nodiscard]] inline std::string_view dtype_name(c10::ScalarType type) noexcept {
  switch (type) {
    case c10::ScalarType::Float: return "float32";
    case c10::ScalarType::Double: return "float64";
    case c10::ScalarType::Half: return "float16";
    case c10::ScalarType::BFloat16: return "bfloat16";
    case c10::ScalarType::Long: return "int64";
    case c10::ScalarType::Int: return "int32";
    case c10::ScalarType::Short: return "int16";
    case c10::ScalarType::Char: return "int8";
    case c10::ScalarType::Byte: return "uint8";
    case c10::ScalarType::Bool: return "bool";
    default: return c10::toString(type);
  }
}

/// The address under which the tensor's block is recorded: that of its data, or of its stand-in under NO_DISPATCH. Null for a
/// tensor without its own block or without plain sizes: sparse, nested, on "meta" or undefined.
[[nodiscard]] inline const void* address_of_elements(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided || !tensor.has_storage() ||
      tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
    return nullptr;
  }
  const c10::DataPtr& block = tensor.storage().data_ptr();
  return block.get() != nullptr ? block.get() : block.get_context();
}

/// The text that `annotate` would intern: name, shape, element type and `requires_grad`.
[[nodiscard]] inline std::string tensor_text(std::string_view name, const at::Tensor& tensor) {
  std::string text{name};
  text += "\x1f[";
  for (const std::int64_t size : tensor.sizes()) {
    if (text.back() != '[') text += ", ";
    text += std::to_string(size);
  }
  text.append("]\x1f").append(dtype_name(tensor.scalar_type()));
  text.append(1, '\x1f').append(to_string(tensor.requires_grad() ? requires_grad::yes : requires_grad::no));
  return text;
}

struct sparse_parts {
  at::Tensor indices;
  at::Tensor values;
};

/// Reading either part calls operators, which the hooks must ignore: the check of the optimizers runs in a hook and holds a lock
/// that another check from within these operators would wait for.
[[nodiscard]] inline sparse_parts parts_of_sparse(const at::Tensor& tensor) {
  const activity_guard hidden{activity::internal};
  return {tensor._indices(), tensor._values()};
}

/// The block of the values of a sparse tensor, found without calling an operator; null for all other tensors.
[[nodiscard]] inline const void* sparse_block(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kSparse) return nullptr;
  return address_of_elements(static_cast<const at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl())->values());
}

/// Annotates the tensor's block, also the whole block of a view. Does nothing for a tensor without one.
inline void annotate_tensor(const at::Tensor& tensor, std::string_view name, category kind) {
  if (!tensor.defined()) return;
  if (tensor.layout() == c10::kSparse) {
    const recording_suppressor hidden;  // until the parts are destroyed
    const sparse_parts parts = parts_of_sparse(tensor);
    annotate_tensor(parts.indices, name, kind);
    annotate_tensor(parts.values, name, kind);
    return;
  }
  const void* const address = address_of_elements(tensor);
  if (address == nullptr) return;
  const recording_suppressor hidden;
  if (torch_thread* const self = this_torch_thread()) forget_new_block(*self, address);
  annotate_block(address, kind, event_sink{}.label_of(tensor_text(name, tensor)));
}

}  // namespace detail

inline namespace enabled {

MEMPROF_TORCH_SEPARABLE void annotate_input(const at::Tensor& tensor, std::string_view name) {
  if (extend::event_sink{}.capture() != 0) detail::annotate_tensor(tensor, name, category::input);
}

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
