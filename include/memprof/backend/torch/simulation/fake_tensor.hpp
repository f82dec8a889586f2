#pragma once

#include <memprof/backend/torch/version.hpp>
#include <memprof/core/event.hpp>
#include <memprof/core/event_sink.hpp>
#include <memprof/core/memory_space.hpp>
#include <memprof/core/recorder.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// @file
/// Claimed tensors: they say that they lie on a device, have the sizes, strides and storages of real ones, and no memory. Their
/// storages are recorded like allocations of that device.

namespace memprof::detail {

/// What the simulation knows of a thread.
struct simulating_thread {
  std::optional<c10::Device> claimed;  ///< where tensors are made now that the Meta kernels ask for; none: outside an operation
  std::int64_t allocated_bytes = 0;    ///< of claimed blocks, ever
  unsigned real_scopes = 0;            ///< open ones
  bool was_multithreading = true;      ///< what autograd did on this thread before
};

[[gnu::visibility("default")]] inline thread_local constinit simulating_thread this_simulating_thread{};

/// A block that does not exist; its address stands for that of the block.
struct fake_block {
  std::size_t bytes;
  std::uint8_t space;
};

/// The memory space of a device: "cpu", "cuda:0". Its look-up takes the registry's lock, so it is kept.
[[nodiscard]] inline std::uint8_t space_of(c10::Device device) {
  if (!device.is_cuda()) return cpu_space;
  static std::array<std::atomic<int>, 64> known{};  // id + 1
  const auto index = static_cast<std::size_t>(device.has_index() ? device.index() : 0) % known.size();
  // Relaxed: the id is a number that means the same to every thread.
  int id = known[index].load(std::memory_order_relaxed);
  if (id == 0) {
    id = memory_space{"cuda:" + std::to_string(index)}.id() + 1;
    known[index].store(id, std::memory_order_relaxed);
  }
  return static_cast<std::uint8_t>(id - 1);
}

/// What frees a claimed block, which may be long after the capture. Its address tells claimed storages from others.
[[gnu::visibility("default")]] inline void free_fake_block(void* context) noexcept {
  auto* const block = static_cast<fake_block*>(context);
  record_deallocation(block->space, block, block->bytes);
  const nested_allocation hidden;
  delete block;
}

/// `on` is where the bytes are counted, `told` the device that the pointer tells: the two differ within Meta kernels.
[[nodiscard]] inline c10::DataPtr new_fake_block(std::size_t bytes, c10::Device on, c10::Device told) {
  // As the allocators of the devices: no bytes, no block.
  if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, told};
  fake_block* block = nullptr;
  {
    const nested_allocation hidden;
    block = new fake_block{bytes, space_of(on)};
  }
  record_allocation(block->space, block, bytes);
  this_simulating_thread.allocated_bytes += static_cast<std::int64_t>(bytes);
  return {nullptr, block, &free_fake_block, told};
}

/// What a claimed storage asks when it is resized.
class fake_allocator final : public c10::Allocator {
 public:
  explicit fake_allocator(c10::Device device) noexcept : device_(device) {}

  // One of the two overrides, as in `torch_cpu_allocator`. NOLINTBEGIN(modernize-*)
  c10::DataPtr allocate(std::size_t bytes) const { return new_fake_block(bytes, device_, device_); }
  c10::DataPtr allocate(std::size_t bytes) { return new_fake_block(bytes, device_, device_); }
  void copy_data(void*, const void*, std::size_t) const {}
  // NOLINTEND(modernize-*)

 private:
  c10::Device device_;
};

/// One for each device, for ever: storages outlive the capture.
[[nodiscard]] inline fake_allocator& allocator_of(c10::Device device) {
  static fake_allocator* const on_cpu = new fake_allocator{c10::Device{c10::kCPU}};
  if (!device.is_cuda()) return *on_cpu;
  static const std::array<fake_allocator*, 64> on_cuda = [] {
    std::array<fake_allocator*, 64> all{};
    for (std::size_t index = 0; index < all.size(); ++index) {
      all[index] = new fake_allocator{c10::Device{c10::kCUDA, static_cast<c10::DeviceIndex>(index)}};
    }
    return all;
  }();
  return *on_cuda[static_cast<std::size_t>(device.has_index() ? device.index() : 0) % on_cuda.size()];
}

/// Whether the bytes of a storage do not exist.
[[nodiscard]] inline bool is_fake(const c10::StorageImpl& storage) {
  return storage.data_ptr().get_deleter() == &free_fake_block;
}
[[nodiscard]] inline bool is_fake(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && is_fake(*tensor.storage().unsafeGetStorageImpl());
}

/// A tensor over a storage. It carries the Fake key, so that an operation on it is intercepted wherever it runs.
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
  return tensor;
}

/// A storage of `bytes` bytes on `device`. On the Meta device it is counted where the operation that runs makes its tensors.
[[nodiscard]] inline c10::Storage fake_storage(std::size_t bytes, c10::Device device) {
  const c10::Device on = device.is_meta() ? this_simulating_thread.claimed.value_or(c10::Device{c10::kCPU}) : device;
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                                               new_fake_block(bytes, on, device), &allocator_of(on), true);
}

/// A new tensor, like `at::empty_strided`.
[[nodiscard]] inline at::Tensor fake_strided(at::IntArrayRef sizes, at::IntArrayRef strides, caffe2::TypeMeta dtype,
                                             c10::Device device) {
  const std::size_t bytes = at::detail::computeStorageNbytes(sizes, strides, dtype.itemsize());
  return tensor_over(fake_storage(bytes, device), dtype, sizes, strides, 0);
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

/// The strides that `at::empty_like` gives: those of `like` if it has no gaps, else of the same order of dimensions.
[[nodiscard]] inline std::vector<std::int64_t> strides_like(const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) return like.strides().vec();
  return at::infer_dense_strides(like.sizes(), like.strides());
}

}  // namespace memprof::detail
