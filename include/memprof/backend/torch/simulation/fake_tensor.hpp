#pragma once

#include <memprof/backend/torch/simulation/fake_block.hpp>
#include <memprof/backend/torch/version.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Fake tensors: tensors with the sizes, strides, types, devices and storages of real ones, over fake blocks.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline bool is_fake(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && is_fake(*tensor.storage().unsafeGetStorageImpl());
}

/// Tells libtorch 2.14 and later the device of a tensor with the Fake key, which 2.15 requires of every tensor that it makes
/// views of.
template <class Implementation>
void set_fake_device(Implementation& tensor, c10::Device device) {
  if constexpr (requires { tensor.set_fake_device(device); }) tensor.set_fake_device(device);
}

/// A tensor over a storage. It carries the Fake key, so that operations on it are intercepted wherever they run.
[[nodiscard]] inline at::Tensor tensor_over(c10::Storage storage, caffe2::TypeMeta dtype, at::IntArrayRef sizes,
                                            at::IntArrayRef strides, std::int64_t offset) {
  const c10::Device device = storage.device();
  const c10::DispatchKeySet keys =
      device.is_meta()
          ? c10::DispatchKeySet{c10::DispatchKey::Meta}
          : c10::DispatchKeySet{{device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU, c10::DispatchKey::Fake}};
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  if (!device.is_meta()) set_fake_device(*tensor.unsafeGetTensorImpl(), device);
  return tensor;
}

/// A storage of `bytes` bytes on `device`. On the Meta device, it counts where the running operation makes its tensors.
[[nodiscard]] inline c10::Storage fake_storage(std::size_t bytes, c10::Device device, bool has_values = false) {
  const c10::Device counted_on = device.is_meta() ? this_simulating_thread.meta_device.value_or(c10::Device{c10::kCPU}) : device;
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                                               new_fake_block(bytes, counted_on, device, has_values), &allocator_of(counted_on),
                                               true);
}

/// A new tensor, like `at::empty_strided`.
[[nodiscard]] inline at::Tensor fake_strided(at::IntArrayRef sizes, at::IntArrayRef strides, caffe2::TypeMeta dtype,
                                             c10::Device device, bool has_values = false) {
  const std::size_t bytes = at::detail::computeStorageNbytes(sizes, strides, dtype.itemsize());
  return tensor_over(fake_storage(bytes, device, has_values), dtype, sizes, strides, 0);
}

/// The strides of a tensor without gaps in a memory format.
[[nodiscard]] inline std::vector<std::int64_t> strides_in(at::IntArrayRef sizes, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast && sizes.size() == 4) return c10::get_channels_last_strides_2d(sizes);
  if (format == c10::MemoryFormat::ChannelsLast3d && sizes.size() == 5) return c10::get_channels_last_strides_3d(sizes);
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t index = sizes.size(); index-- > 1;) {
    strides[index - 1] = strides[index] * std::max<std::int64_t>(sizes[index], 1);
  }
  return strides;
}

/// The strides that `at::empty_like` gives: those of `like` if it has no gaps, else the same order of dimensions.
[[nodiscard]] inline std::vector<std::int64_t> strides_like(const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) return like.strides().vec();
  return at::infer_dense_strides(like.sizes(), like.strides());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
