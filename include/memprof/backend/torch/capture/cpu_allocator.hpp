#pragma once

#include <memprof/backend/torch/capture/set_allocator.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/core/recorder.hpp>
#include <memprof/detail/error.hpp>

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::detail {

/// Stands in the place of libtorch's CPU allocator during a capture, forwards to it and records.
///
/// Blocks stay as the other allocator made them, with data equal to context: only the deleter is exchanged. So raw allocation and
/// copy-on-write go on as ever, and no table of blocks is needed. There is one object, which is never destroyed: tensors keep
/// pointing to it and to its deleter long after a capture.
class torch_cpu_allocator final : public c10::Allocator {
 public:
  [[nodiscard]] static torch_cpu_allocator& instance() {
    const nested_allocation hidden;
    static auto* const allocator = new torch_cpu_allocator;
    return *allocator;
  }

  /// Begins to record. Throws `memprof::error` if tensors are recorded already, or if it cannot take its place.
  void begin() {
    check_no_tensors_are_recorded();
    install();
    are_tensors_recorded.store(true, std::memory_order_relaxed);
    unrecorded_count.store(0, std::memory_order_relaxed);
    is_recording.store(true, std::memory_order_relaxed);
  }

  /// Ends it and gives libtorch its allocator back, unless another one has been put before this: then it only forwards.
  void end() noexcept {
    is_recording.store(false, std::memory_order_relaxed);
    are_tensors_recorded.store(false, std::memory_order_relaxed);
    if (c10::GetAllocator(c10::kCPU) == this) is_in_place_ = !set_allocator(c10::kCPU, *upstream());
  }

  /// Blocks of the last capture that could not be recorded, because the allocator below broke its promise about deleters.
  [[nodiscard]] std::uint64_t unrecorded_blocks() const noexcept { return unrecorded_count.load(std::memory_order_relaxed); }

  /// Puts it in the place of the present allocator, whether or not it records.
  void install() {
    c10::Allocator* const present = c10::GetAllocator(c10::kCPU);
    if (present == this || (is_in_place_ && is_reached_by(*present))) return;
    const c10::DeleterFnPtr deleter = present->raw_deleter();
    const c10::DeleterFnPtr known = upstream_deleter.load(std::memory_order_relaxed);
    if (known != nullptr && deleter != nullptr && deleter != known) {
      raise(
          "begin_capture: another CPU allocator was given to libtorch (c10::SetAllocator) since an earlier capture, and tensors "
          "that memprof recorded would be freed the wrong way; set it before the first capture");
    }
    if (deleter != nullptr) upstream_deleter.store(deleter, std::memory_order_relaxed);
    upstream_has_contexts.store(deleter == nullptr, std::memory_order_relaxed);
    // Release pairs with the acquire in `upstream`.
    upstream_allocator.store(present, std::memory_order_release);
    if (!set_allocator(c10::kCPU, *this)) {
      raise(
          "begin_capture: libtorch keeps another CPU allocator (c10::SetAllocator had no effect); capture without torch_backend");
    }
    is_in_place_ = true;
  }

  // What follows has no `override`, because what there is to override depends on libtorch: in older ones `allocate` is const, and
  // there is no `copy_data`.
  // NOLINTBEGIN(modernize-use-override)

  c10::DataPtr allocate(std::size_t bytes) { return allocate_recorded(bytes); }
  c10::DataPtr allocate(std::size_t bytes) const { return allocate_recorded(bytes); }

  /// The same for every block, whether it is recorded or not, as libtorch demands.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const {
    return upstream_has_contexts.load(std::memory_order_relaxed) ? nullptr : &delete_block;
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const {
    std::memcpy(destination, source, bytes);  // what libtorch's own does
  }

  // NOLINTEND(modernize-use-override)

 private:
  /// A block of an allocator that keeps a context of its own for each.
  struct block_with_context {
    void* address;
    void* context;
    c10::DeleterFnPtr deleter;
  };

  torch_cpu_allocator() = default;

  [[nodiscard]] static c10::Allocator* upstream() noexcept {
    // Acquire pairs with the release in `install`.
    return upstream_allocator.load(std::memory_order_acquire);
  }

  [[nodiscard]] static c10::DataPtr allocate_recorded(std::size_t bytes) {
    ++calls_of_this_thread;
    c10::DataPtr block = allocate_upstream(bytes);
    if (block.get() == nullptr) return block;
    if (!take_over(block)) {
      unrecorded_count.fetch_add(1, std::memory_order_relaxed);
    } else if (is_recording.load(std::memory_order_relaxed)) {
      record_tensor_allocation(block.get(), bytes);
    }
    return block;
  }

  [[nodiscard]] static c10::DataPtr allocate_upstream(std::size_t bytes) {
    const nested_allocation nested;  // it may take its memory from a tracked heap
    return upstream()->allocate(bytes);
  }

  /// Lets the block come back here when it is freed. False if that cannot be done.
  [[nodiscard]] static bool take_over(c10::DataPtr& block) {
    if (upstream_has_contexts.load(std::memory_order_relaxed)) return add_context(block);
    return block.get() == block.get_context() &&
           block.compare_exchange_deleter(upstream_deleter.load(std::memory_order_relaxed), &delete_block);
  }

  [[nodiscard]] static bool add_context(c10::DataPtr& block) {
    const nested_allocation hidden;
    void* const address = block.get();
    const c10::DeleterFnPtr deleter = block.get_deleter();
    const c10::Device device = block.device();
    auto* const kept = new block_with_context{address, block.get_context(), deleter};
    (void)block.release_context();
    block = c10::DataPtr{address, kept, &delete_block_with_context, device};
    return true;
  }

  static void delete_block(void* address) {
    // oneDNN frees its empty scratchpads too.
    if (address != nullptr && is_recording.load(std::memory_order_relaxed)) record_tensor_deallocation(address);
    const nested_allocation nested;
    upstream_deleter.load(std::memory_order_relaxed)(address);
  }

  static void delete_block_with_context(void* kept) {
    auto* const block = static_cast<block_with_context*>(kept);
    if (is_recording.load(std::memory_order_relaxed)) record_tensor_deallocation(block->address);
    const nested_allocation nested;
    block->deleter(block->context);
    delete block;
  }

  /// Whether an allocator that was put before this one forwards to it.
  [[nodiscard]] static bool is_reached_by(c10::Allocator& other) {
    const std::uint64_t before = calls_of_this_thread;
    const c10::DataPtr probe = other.allocate(1);
    return calls_of_this_thread != before;
  }

  // Static, because a deleter is a plain function.
  inline static constinit std::atomic<c10::Allocator*> upstream_allocator{nullptr};
  inline static constinit std::atomic<c10::DeleterFnPtr> upstream_deleter{nullptr};
  inline static constinit std::atomic<bool> upstream_has_contexts{false};  ///< its blocks are told by contexts, not by addresses
  inline static constinit std::atomic<bool> is_recording{false};
  inline static constinit std::atomic<std::uint64_t> unrecorded_count{0};
  inline static constinit thread_local std::uint64_t calls_of_this_thread = 0;
  bool is_in_place_ = false;  ///< used by control calls only
};

}  // namespace memprof::detail
