#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

/// @file
/// Tensors from before the capture. Simulated operations must not write to them, so the first write gives their storage a shadow
/// that replaces it until the capture ends: with a copy of its content if that is small, else without values.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a storage holds data from outside the capture.
[[nodiscard]] inline bool is_outside(const c10::StorageImpl& storage) {
  return !is_fake(storage) && storage.nbytes() != 0 && !kernel_allocator::is_own(storage.data_ptr());
}

/// Gives a storage a larger block as a resize does: allocates the new one before freeing the old one. The content of a CPU
/// storage from outside the capture is copied.
inline void enlarge(c10::StorageImpl& storage, std::size_t bytes, c10::Device device) {
  const std::size_t kept = is_outside(storage) && device.is_cpu() ? storage.nbytes() : 0;
  const c10::DataPtr old = storage.set_data_ptr(new_fake_block(bytes, device, device));
  storage.set_nbytes(bytes);
  const fake_block* const block = block_of(storage);
  if (kept != 0 && block->data != nullptr) std::memcpy(block->data, old.get(), kept);
}

/// The shadows of a capture, by storage. Thread-safe.
class outside_shadows {
 public:
  [[nodiscard]] static outside_shadows& instance() {
    const recording_suppressor hidden;
    static auto* const all = new outside_shadows;
    return *all;
  }

  /// The shadow of a storage; empty if it has not been written yet.
  [[nodiscard]] c10::Storage find(const c10::StorageImpl& storage) {
    // Relaxed: an unsynchronised write by another thread may be missed.
    if (count_.load(std::memory_order_relaxed) == 0) return {};
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    const auto known = shadows_.find(&storage);
    return known == shadows_.end() ? c10::Storage{} : known->second.shadow;
  }

  /// Call before a write; storages of at most `max_copied` bytes keep their values.
  [[nodiscard]] c10::Storage find_or_make(const c10::Storage& storage, std::size_t max_copied) {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    c10::StorageImpl* const original = storage.unsafeGetStorageImpl();
    const auto known = shadows_.find(original);
    if (known != shadows_.end()) return known->second.shadow;
    c10::Storage shadow = make(*original, max_copied);
    shadows_.emplace(original, entry{c10::weak_intrusive_ptr<c10::StorageImpl>{storage.getWeakStorageImpl()}, shadow});
    count_.fetch_add(1, std::memory_order_relaxed);
    return shadow;
  }

  void forget() noexcept {
    const recording_suppressor hidden;
    std::unordered_map<const c10::StorageImpl*, entry> forgotten;
    const std::lock_guard<std::mutex> guard{lock_};
    forgotten.swap(shadows_);
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  struct entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> original;  ///< keeps its address from being reused
    c10::Storage shadow;
  };

  [[nodiscard]] static c10::Storage make(c10::StorageImpl& original, std::size_t max_copied) {
    auto* const block = new fake_block;
    block->bytes = original.nbytes();
    block->is_recorded = false;
    block->is_visible = true;
    find_memory(*block);
    const bool is_copied = block->data != nullptr && original.device().is_cpu() && block->bytes <= max_copied;
    if (is_copied) std::memcpy(block->data, original.data(), block->bytes);
    block->has_values.store(is_copied, std::memory_order_relaxed);
    const c10::Device device = original.device();
    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(block->bytes),
                                                 c10::DataPtr{block->data, block, &free_fake_block, device},
                                                 &allocator_of(device), true);
  }

  std::mutex lock_;
  std::unordered_map<const c10::StorageImpl*, entry> shadows_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
