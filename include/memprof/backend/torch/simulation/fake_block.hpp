#pragma once

#include <memprof/backend/torch/capture/forwarding_allocator.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/zero_pages.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

/// @file
/// The blocks of simulated tensors. They are recorded at full size, but read as zeros and take no memory until written.

namespace memprof::inline MEMPROF_ABI::detail {

/// Thrown by the allocator if a real kernel requests more than it may have.
struct kernel_too_large {};

/// The number of real kernels running on any thread; their worker threads run operators for real, too.
[[gnu::visibility("default")]] inline constinit std::atomic<int> running_kernels{0};
/// The number of real kernels ever started.
[[gnu::visibility("default")]] inline constinit std::atomic<std::uint64_t> begun_kernels{0};
/// The number of running ones whose blocks are not the program's.
[[gnu::visibility("default")]] inline constinit std::atomic<int> running_hidden_kernels{0};

/// Whether this thread works for a real kernel.
[[nodiscard]] inline bool is_in_hidden_kernel() {
  return this_simulating_thread.hidden_kernels != 0 ||
         (running_hidden_kernels.load(std::memory_order_relaxed) != 0 && at::in_parallel_region());
}

/// A listener for the blocks of real kernels on all threads, whether or not they are recorded.
struct kernel_listener {
  virtual void allocated(const void* address, std::size_t bytes) = 0;
  virtual void freeing(const void* address) = 0;

 protected:
  ~kernel_listener() = default;
};
/// Null: no listener. A listener is never destroyed.
[[gnu::visibility("default")]] inline constinit std::atomic<kernel_listener*> present_kernel_listener{nullptr};

/// Reports what libtorch really allocates during a simulation: within real kernels, and for tensors that it makes without its
/// dispatcher.
struct simulation_recorder {
  static void check(std::size_t bytes) {
    simulating_thread& self = this_simulating_thread;
    if (bytes > self.max_kernel_bytes) throw kernel_too_large{};
    if (self.max_kernel_bytes != std::numeric_limits<std::size_t>::max()) self.max_kernel_bytes -= bytes;
  }
  static void allocated(const void* address, std::size_t bytes) {
    // Acquire, here and below, pairs with the release that installs the listener.
    if (kernel_listener* const listener = present_kernel_listener.load(std::memory_order_acquire)) [[unlikely]] {
      listener->allocated(address, bytes);
    }
    if (!is_in_hidden_kernel()) record_simulated_allocation(address, bytes, cpu_space);
  }
  static void freeing(const void* address) noexcept {
    if (kernel_listener* const listener = present_kernel_listener.load(std::memory_order_acquire)) [[unlikely]] {
      listener->freeing(address);
    }
    if (!is_in_hidden_kernel()) record_simulated_deallocation(address, 0, cpu_space);
  }
};
using kernel_allocator = forwarding_allocator<simulation_recorder>;

struct fake_block {
  /// The memory behind a block.
  enum class memory : std::uint8_t {
    none,   ///< none: the addresses are used up
    small,  ///< its own memory
    pages,  ///< zero pages
    real,   ///< a block from the real allocator
  };

  void* data = nullptr;
  std::size_t bytes = 0;
  std::uint32_t capture = 0;  ///< `fake_device::capture` when it was allocated
  std::uint8_t space = 0;
  memory behind = memory::none;
  bool is_recorded = true;
  bool is_visible = false;               ///< a tensor uses it, so it may have been written
  std::atomic<bool> has_values = false;  ///< the bytes are what the program computed
  std::uint64_t number = this_simulating_thread.made_blocks++;
  /// What each element is taken for while the block has no values; not a number: see `nominal_number`.
  std::atomic<double> nominal{std::numeric_limits<double>::quiet_NaN()};
  std::atomic<double> share{std::numeric_limits<double>::quiet_NaN()};  ///< of elements that are not zero: see `likely_share`
  std::atomic<bool> is_share_said{false};                               ///< the program has said it
  std::atomic<std::int64_t> choices{0};                                 ///< of how many things integers are indices; 0: unknown
  std::atomic<bool> is_drawn_after_skipped = false;                     ///< see skipped_draws.hpp
  std::atomic<bool> lacks_bytes = false;  ///< small, but no kernel has computed its bytes: see `materialize`
  std::atomic<bool> is_filled = false;    ///< large, and its memory was given nominal values: see read_memory.hpp
  c10::DataPtr real;                      ///< frees a real block and records that
};

/// The memory space of a device: "cpu", "cuda:0". Cached, because the look-up takes the registry's lock.
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

/// Gives a block addresses that read as zeros.
inline void find_memory(fake_block& block) {
  constexpr std::size_t alignment = 64;  // as in libtorch's allocator
  if (block.bytes < page_classes::page_bytes) {
    const std::size_t rounded = (block.bytes + alignment - 1) / alignment * alignment;
    block.data = std::aligned_alloc(alignment, rounded);
    if (block.data == nullptr) return;
    std::memset(block.data, 0, rounded);
    block.behind = fake_block::memory::small;
    return;
  }
  block.data = process_zero_pages().take(block.bytes);
  if (block.data != nullptr) block.behind = fake_block::memory::pages;
}

/// Frees a fake block, perhaps long after the capture. The address of this function identifies fake storages.
[[gnu::visibility("default")]] inline void free_fake_block(void* context) noexcept {
  auto* const block = static_cast<fake_block*>(context);
  if (block->behind == fake_block::memory::real) {
    block->real.clear();
  } else if (block->is_recorded) {
    record_simulated_deallocation(block->data != nullptr ? block->data : block, block->bytes, block->space,
                                  block->capture != fake_cuda_device.capture());
  }
  const recording_suppressor hidden;
  if (block->behind == fake_block::memory::small) std::free(block->data);
  if (block->behind == fake_block::memory::pages) process_zero_pages().give_back(block->data, block->bytes, block->is_visible);
  delete block;
}

/// Throws as libtorch does in a forked process.
inline void check_fake_device() {
  TORCH_CHECK(!fake_cuda_device.is_of_parent(),
              "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
              "method (NO_DISPATCH: this process was forked in a capture)");
}

/// Throws as libtorch does if a fake device is full, or not there.
inline void check_memory(std::size_t bytes, c10::Device device) {
  constexpr std::size_t one_exabyte = std::size_t{1} << 60;
  if (!device.is_cuda()) return;
  check_fake_device();
  TORCH_CHECK(device.index() <= 0 || device.index() < c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount(),
              "CUDA error: invalid device ordinal (NO_DISPATCH: there is no cuda:", static_cast<int>(device.index()), ")");
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < one_exabyte, "CUDA out of memory. Tried to allocate more than 1EB memory.");
  const device_allocator* const model = fake_cuda_device.allocator();
  if (model == nullptr) return;
  std::array<char, 1024> message{};
  std::int64_t free_bytes = 0;
  if (model->has_room(model->self, static_cast<std::int64_t>(bytes), is_in_backward_pass(), message.data(), message.size(),
                      &free_bytes))
    return;
  event_sink{}.out_of_memory({space_of(device)}, bytes, static_cast<std::size_t>(free_bytes));
  TORCH_CHECK_WITH(OutOfMemoryError, false, message.data());
}

/// A new block, or none for zero bytes, as with the devices' allocators. `counted_on` is where its bytes count, `device` is the
/// device of the pointer: the two differ within Meta kernels. `has_values`: zeros are what the program requested.
[[nodiscard]] inline c10::DataPtr new_fake_block(std::size_t bytes, c10::Device counted_on, c10::Device device,
                                                 bool has_values = false) {
  if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, device};
  check_memory(bytes, counted_on);
  fake_block* block = nullptr;
  {
    const recording_suppressor hidden;
    block = new fake_block;
    block->bytes = bytes;
    block->space = space_of(counted_on);
    block->capture = fake_cuda_device.capture();
    block->has_values.store(has_values, std::memory_order_relaxed);
    find_memory(*block);
    block->is_visible = !device.is_meta();
  }
  record_simulated_allocation(block->data != nullptr ? block->data : block, bytes, block->space);
  return {device.is_meta() ? nullptr : block->data, block, &free_fake_block, device};
}

/// The same block on another device: turns a Meta kernel's allocation into a tensor's.
[[nodiscard]] inline c10::DataPtr moved_to(c10::DataPtr&& made, c10::Device device) {
  if (made.get_deleter() != &free_fake_block) return {nullptr, nullptr, &c10::detail::deleteNothing, device};
  auto* const block = static_cast<fake_block*>(made.release_context());
  block->is_visible = true;
  return {block->data, block, &free_fake_block, device};
}

[[nodiscard]] inline bool is_fake(const c10::StorageImpl& storage) {
  return storage.data_ptr().get_deleter() == &free_fake_block;
}

/// The fake block of a storage; null if the storage is not fake.
[[nodiscard]] inline fake_block* block_of(const c10::StorageImpl& storage) {
  return is_fake(storage) ? static_cast<fake_block*>(storage.data_ptr().get_context()) : nullptr;
}

/// Turns the storage of a real block of this capture into a fake one and keeps its content. Null for blocks from outside the
/// capture, and for zero bytes.
inline fake_block* adopt(c10::StorageImpl& storage) {
  if (fake_block* const known = block_of(storage)) return known;
  if (storage.nbytes() == 0 || !kernel_allocator::is_own(storage.data_ptr())) return nullptr;
  const recording_suppressor hidden;
  auto* const block = new fake_block;
  block->data = storage.mutable_data_ptr().get();
  block->bytes = storage.nbytes();
  block->behind = fake_block::memory::real;
  block->is_visible = true;
  block->has_values.store(true, std::memory_order_relaxed);
  const c10::Device device = storage.device();
  block->real = storage.set_data_ptr(c10::DataPtr{block->data, block, &free_fake_block, device});
  return block;
}

/// Marks the content as unknown: it reads as zeros from now on.
inline void forget_values(fake_block& block) {
  block.has_values.store(false, std::memory_order_relaxed);
  block.lacks_bytes.store(false, std::memory_order_relaxed);
  block.is_filled.store(false, std::memory_order_relaxed);
  if (block.data == nullptr) return;
  if (block.behind == fake_block::memory::pages) return zero_pages::clear(block.data, block.bytes);
  // Only whole pages of a real block go back to the system; the rest of its outer pages may belong to the allocator.
  auto* const first = static_cast<char*>(block.data);
  char* const last = first + block.bytes;
  const auto up = [](char* address) {
    constexpr std::uintptr_t mask = page_classes::page_bytes - 1;
    return address + ((page_classes::page_bytes - (reinterpret_cast<std::uintptr_t>(address) & mask)) & mask);
  };
  char* const first_page = up(first);
  char* const last_page = last - (reinterpret_cast<std::uintptr_t>(last) & (page_classes::page_bytes - 1));
  if (first_page >= last_page || ::madvise(first_page, static_cast<std::size_t>(last_page - first_page), MADV_DONTNEED) != 0) {
    std::memset(first, 0, block.bytes);
    return;
  }
  std::memset(first, 0, static_cast<std::size_t>(first_page - first));
  std::memset(last_page, 0, static_cast<std::size_t>(last - last_page));
}

/// The allocator that a fake storage uses when it is resized.
class fake_allocator final : public c10::Allocator {
 public:
  explicit fake_allocator(c10::Device device) noexcept : device_(device) {}

  // Only one of the two overrides, as in `forwarding_allocator`. NOLINTBEGIN(modernize-*)
  c10::DataPtr allocate(std::size_t bytes) const { return new_fake_block(bytes, device_, device_); }
  c10::DataPtr allocate(std::size_t bytes) { return new_fake_block(bytes, device_, device_); }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  // NOLINTEND(modernize-*)

 private:
  c10::Device device_;
};

/// One per device, never destroyed: storages outlive the capture.
[[nodiscard]] inline fake_allocator& allocator_of(c10::Device device) {
  const recording_suppressor hidden;
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

}  // namespace memprof::inline MEMPROF_ABI::detail
