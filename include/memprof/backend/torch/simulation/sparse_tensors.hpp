#pragma once

#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Layout.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

/// @file
/// Sparse tensors (COO) of a fake CUDA device. A libtorch for the CPU has no kernels for them, so its kernels for sparse tensors
/// of the CPU run, on the same indices and values.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline bool is_sparse(const at::Tensor& tensor) { return tensor.layout() == c10::kSparse; }
[[nodiscard]] inline bool is_sparse_on_cuda(const at::Tensor& tensor) { return is_sparse(tensor) && tensor.is_cuda(); }

/// Its parts, found without calling an operator.
[[nodiscard]] inline at::SparseTensorImpl& sparse_parts_of(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

/// Gives a sparse tensor these parts, and the sizes of another one.
inline void set_sparse_parts(const at::Tensor& to, const at::Tensor& indices, const at::Tensor& values,
                             const at::SparseTensorImpl& like) {
  at::SparseTensorImpl& parts = sparse_parts_of(to);
  parts.raw_resize_(like.sparse_dim(), like.dense_dim(), like.sizes());
  parts.set_indices_and_values_unsafe(indices, values);
  parts.set_coalesced(like.coalesced());
}

/// A sparse tensor of these parts, on their device, and with the sizes of another one.
[[nodiscard]] inline at::Tensor sparse_over(const at::Tensor& indices, const at::Tensor& values,
                                            const at::SparseTensorImpl& like) {
  const c10::DispatchKey key = values.is_cuda() ? c10::DispatchKey::SparseCUDA : c10::DispatchKey::SparseCPU;
  at::Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet{key}, values.dtype());
  set_sparse_parts(made, indices, values, like);
  return made;
}

/// Whether a call asks for a sparse result by its layout.
[[nodiscard]] inline bool names_sparse_layout(const torch_call& call, const operator_plan& plan) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    const c10::IValue& value = call.argument(index);
    if (plan.roles[index].is_layout && value.isInt() && static_cast<c10::Layout>(value.toInt()) == c10::kSparse) return true;
  }
  return false;
}

/// Throws if a call makes a tensor in a compressed layout (CSR), which the kernels of the CPU would leave on the CPU.
inline void refuse_compressed_results(const torch_call& call) {
  constexpr std::string_view names[] = {"aten::_to_sparse_bsc", "aten::_to_sparse_bsr", "aten::_to_sparse_csc",
                                        "aten::_to_sparse_csr"};
  const std::string& name = call.called().schema().name();
  TORCH_CHECK(std::find(std::begin(names), std::end(names), name) == std::end(names), name,
              ": NO_DISPATCH simulates no sparse tensors in compressed layouts (CSR) on a CUDA device");
}

}  // namespace memprof::inline MEMPROF_ABI::detail
