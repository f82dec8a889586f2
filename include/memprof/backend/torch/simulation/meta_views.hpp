#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/outside_tensors.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Gives a Meta tensor's storage a block of its size: a resize on the Meta device changes only the size.
inline void replace_resized_block(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_meta() || !tensor.has_storage()) return;
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const fake_block* const block = block_of(storage);
  const bool has_foreign_block = block == nullptr && storage.data_ptr().get_context() != nullptr;
  if (has_foreign_block || storage.nbytes() == (block == nullptr ? 0 : block->bytes)) return;
  const c10::Device counted_on = this_simulating_thread.meta_device.value_or(c10::Device{c10::kCPU});
  storage.set_data_ptr_noswap(new_fake_block(storage.nbytes(), counted_on, c10::Device{c10::kMeta}));
}

/// Throws `c10::Error` for tensors that cannot be simulated: sparse and opaque tensors consist of other tensors.
inline void check_has_storage(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.has_storage(), "NO_DISPATCH: a tensor of layout ", tensor.layout(),
              " has no storage that could be counted; use dense tensors in this capture, or torch_backend, which counts real "
              "ones");
}

/// The Meta tensors that stand for an operation's arguments while its Meta kernel runs, and the way back: a result on an
/// argument's storage becomes an alias of the argument, any other result a fake tensor that takes over the block.
class meta_views {
 public:
  /// Where new tensors are created: on the requested device, else on the first device of an argument other than the CPU.
  [[nodiscard]] c10::Device device() const noexcept { return device_; }
  void set_device(c10::Device device) noexcept {
    device_ = device.is_cuda() && !device.has_index() ? c10::Device{c10::kCUDA, 0} : device;
    is_asked_for_ = true;
  }

  [[nodiscard]] at::Tensor view_of(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_meta()) return tensor;
    c10::TensorImpl* const implementation = tensor.unsafeGetTensorImpl();
    // Numbers that were wrapped in tensors stay marked as such: they take no part in type promotion.
    if (implementation->is_wrapped_number()) return tensor;
    check_has_storage(tensor);
    if (!is_asked_for_ && device_.is_cpu()) device_ = tensor.device();
    for (const tensor_pair& known : tensors_) {
      if (known.original.unsafeGetTensorImpl() == implementation) return known.view;
    }
    c10::DispatchKeySet keys{c10::DispatchKey::Meta};
    if (tensor.is_conj()) keys = keys.add(c10::DispatchKey::Conjugate);
    if (tensor.is_neg()) keys = keys.add(c10::DispatchKey::Negative);
    at::Tensor view =
        at::detail::make_tensor<c10::TensorImpl>(c10::Storage{view_of_storage(tensor.storage())}, keys, tensor.dtype());
    view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
    view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
    tensors_.push_back({tensor, view});
    return view;
  }

  [[nodiscard]] at::Tensor original_of(const at::Tensor& result) {
    if (!result.defined() || !result.is_meta()) return result;
    for (const tensor_pair& known : tensors_) {
      if (known.view.unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) return known.original;
    }
    check_has_storage(result);
    for (const storage_pair& known : storages_) {
      if (known.view.unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl()) return over(known.original, result);
    }
    replace_resized_block(result);
    c10::StorageImpl& made = *result.storage().unsafeGetStorageImpl();
    c10::DataPtr block = moved_to(made.set_data_ptr(c10::DataPtr{nullptr, c10::Device{c10::kMeta}}), device_);
    const c10::Storage fake{c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                                  static_cast<std::int64_t>(made.nbytes()), std::move(block),
                                                                  &allocator_of(device_), true)};
    storages_.push_back({fake, result.storage()});
    return over(fake, result);
  }

  /// Applies to the arguments what the kernel did to their views: new sizes and strides, grown storages.
  void take_over_changes() {
    for (const tensor_pair& pair : tensors_) {
      c10::StorageImpl& original = *pair.original.storage().unsafeGetStorageImpl();
      const c10::StorageImpl& view = *pair.view.storage().unsafeGetStorageImpl();
      if (view.nbytes() > original.nbytes()) enlarge(original, view.nbytes(), pair.original.device());
      if (pair.original.sizes() == pair.view.sizes() && pair.original.strides() == pair.view.strides() &&
          pair.original.storage_offset() == pair.view.storage_offset()) {
        continue;
      }
      pair.original.unsafeGetTensorImpl()->set_sizes_and_strides(pair.view.sizes(), pair.view.strides());
      pair.original.unsafeGetTensorImpl()->set_storage_offset(pair.view.storage_offset());
    }
  }

 private:
  struct tensor_pair {
    at::Tensor original;
    at::Tensor view;
  };
  struct storage_pair {
    c10::Storage original;
    c10::Storage view;
  };

  [[nodiscard]] static at::Tensor over(const c10::Storage& storage, const at::Tensor& like) {
    return tensor_over(storage, like.dtype(), like.sizes(), like.strides(), like.storage_offset());
  }

  [[nodiscard]] c10::Storage view_of_storage(const c10::Storage& storage) {
    for (const storage_pair& known : storages_) {
      if (known.original.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return known.view;
    }
    // Its context only marks the presence of a block, which belongs to the original.
    static char block;
    c10::Storage view{
        c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(storage.nbytes()),
                                              c10::DataPtr{nullptr, &block, &c10::detail::deleteNothing, c10::Device{c10::kMeta}},
                                              c10::GetAllocator(c10::kMeta), true)};
    storages_.push_back({storage, view});
    return view;
  }

  std::vector<tensor_pair> tensors_;
  std::vector<storage_pair> storages_;
  c10::Device device_{c10::kCPU};
  bool is_asked_for_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
