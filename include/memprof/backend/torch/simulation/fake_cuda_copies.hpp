#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/sparse_tensors.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstring>
#include <utility>
#include <vector>

/// @file
/// What a CPU kernel that ran for fake CUDA tensors has made, as tensors of the fake device.

namespace memprof::inline MEMPROF_ABI::detail {

/// Fake CUDA tensors like those made by a CPU kernel, which may share their memory.
class fake_cuda_copies {
 public:
  [[nodiscard]] at::Tensor copy_of(const at::Tensor& made) {
    if (!is_dense(made) || !made.is_cpu()) return made;
    return tensor_over(copy_of(made.storage(), is_small(made)), made.dtype(), made.sizes(), made.strides(),
                       made.storage_offset());
  }

 private:
  [[nodiscard]] c10::Storage copy_of(const c10::Storage& made, bool has_bytes) {
    for (const auto& [source, copy] : copies_) {
      if (source.unsafeGetStorageImpl() == made.unsafeGetStorageImpl()) return copy;
    }
    c10::Storage copy = fake_storage(made.nbytes(), c10::Device{c10::kCUDA, 0});
    fake_block* const block = block_of(*copy.unsafeGetStorageImpl());
    if (has_bytes && block != nullptr && block->data != nullptr) std::memcpy(block->data, made.data(), block->bytes);
    return copies_.emplace_back(made, std::move(copy)).second;
  }

  std::vector<std::pair<c10::Storage, c10::Storage>> copies_;
};

/// The program's tensor for one that a CPU kernel returned for fake CUDA tensors.
[[nodiscard]] inline at::Tensor on_fake_cuda(const at::Tensor& made, const stand_ins& replaced, fake_cuda_copies& copies) {
  const at::Tensor original = replaced.original_of(made);
  if (original.defined()) return original;
  if (!is_sparse(made)) return copies.copy_of(made);
  const at::SparseTensorImpl& parts = sparse_parts_of(made);
  return sparse_over(on_fake_cuda(parts.indices(), replaced, copies), on_fake_cuda(parts.values(), replaced, copies), parts);
}

/// Applies to sparse arguments what the kernel did to their stand-ins.
inline void take_over_sparse_parts(const stand_ins& replaced, fake_cuda_copies& copies) {
  replaced.for_each_sparse([&](const at::Tensor& original, const at::Tensor& stand_in) {
    const at::SparseTensorImpl& parts = sparse_parts_of(stand_in);
    set_sparse_parts(original, on_fake_cuda(parts.indices(), replaced, copies), on_fake_cuda(parts.values(), replaced, copies),
                     parts);
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
