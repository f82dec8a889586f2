#pragma once

#include <memprof/backend/torch/capture/set_allocator.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// Wraps libtorch's CPU allocator during a capture: forwards to it and reports each block to `Observer`, which has
/// `allocated(address, bytes)` and `freeing(address)`, both noexcept, and `check(bytes)`, which may refuse by throwing.
///
/// Blocks stay as the upstream allocator made them, with data equal to context; only the deleter is replaced. Raw allocation and
/// copy-on-write therefore work as before, and no table of blocks is needed. There is one instance per observer. It is never
/// destroyed: tensors keep pointing to it and to its deleter long after a capture.
template <class Observer>
class forwarding_allocator final : public c10::Allocator {
 public:
  [[nodiscard]] static forwarding_allocator& instance() {
    const recording_suppressor hidden;
    static auto* const allocator = new forwarding_allocator;
    return *allocator;
  }

  /// Starts reporting. Throws `memprof::error` if libtorch keeps its own allocator.
  void begin() {
    install();
    is_reporting.store(true, std::memory_order_relaxed);
  }

  /// Stops reporting and restores libtorch's allocator, unless another allocator has been installed on top: then it only
  /// forwards.
  void end() noexcept {
    is_reporting.store(false, std::memory_order_relaxed);
    if (c10::GetAllocator(c10::kCPU) == this) is_in_place_ = !set_allocator(c10::kCPU, *upstream());
  }

  /// Whether a block is one of this allocator's.
  [[nodiscard]] static bool is_own(const c10::DataPtr& block) noexcept {
    return block.get_deleter() == &delete_block || block.get_deleter() == &delete_block_with_context;
  }

  /// Replaces the current allocator, whether or not this one reports.
  void install() {
    c10::Allocator* const present = c10::GetAllocator(c10::kCPU);
    if (present == this || (is_in_place_ && is_reached_by(*present))) return;
    const c10::DeleterFnPtr deleter = present->raw_deleter();
    const c10::DeleterFnPtr known = upstream_deleter.load(std::memory_order_relaxed);
    if (known != nullptr && deleter != nullptr && deleter != known) {
      raise(
          "begin_capture: libtorch was given another CPU allocator (c10::SetAllocator) since an earlier capture, whose tensors "
          "would be freed with the wrong deleter; set it before the first capture");
    }
    if (deleter != nullptr) upstream_deleter.store(deleter, std::memory_order_relaxed);
    upstream_has_contexts.store(deleter == nullptr, std::memory_order_relaxed);
    // Release pairs with the acquire in `upstream`.
    upstream_allocator.store(present, std::memory_order_release);
    if (!set_allocator(c10::kCPU, *this)) {
      raise(
          "begin_capture: libtorch keeps another CPU allocator (c10::SetAllocator had no effect); capture without torch_backend "
          "and torch_no_dispatch");
    }
    is_in_place_ = true;
  }

  // No `override`, because the base differs between versions of libtorch: in older ones `allocate` is const, and there is no
  // `copy_data`.
  // NOLINTBEGIN(modernize-use-override)

  c10::DataPtr allocate(std::size_t bytes) { return allocate_reported(bytes); }
  c10::DataPtr allocate(std::size_t bytes) const { return allocate_reported(bytes); }

  /// The same deleter for every block, reported or not, as libtorch requires.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const {
    return upstream_has_contexts.load(std::memory_order_relaxed) ? nullptr : &delete_block;
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const {
    std::memcpy(destination, source, bytes);  // as libtorch's own allocator does
  }

  // NOLINTEND(modernize-use-override)

 private:
  /// A block of an allocator that keeps its own context for each block.
  struct block_with_context {
    void* address;
    void* context;
    c10::DeleterFnPtr deleter;
  };

  forwarding_allocator() = default;

  [[nodiscard]] static c10::Allocator* upstream() noexcept {
    // Acquire pairs with the release in `install`.
    return upstream_allocator.load(std::memory_order_acquire);
  }

  [[nodiscard]] static c10::DataPtr allocate_reported(std::size_t bytes) {
    ++calls_of_this_thread;
    const bool reports = is_reporting.load(std::memory_order_relaxed);
    if (reports) Observer::check(bytes);
    c10::DataPtr block = allocate_upstream(bytes);
    if (block.get() == nullptr) return block;
    const bool is_taken_over = take_over(block);
    if (!reports) return block;
    if (is_taken_over) {
      Observer::allocated(block.get(), bytes);
    } else {  // the upstream allocator broke its promise about deleters
      event_sink{}.count_dropped_event();
    }
    return block;
  }

  [[nodiscard]] static c10::DataPtr allocate_upstream(std::size_t bytes) {
    const recording_suppressor nested;  // the upstream may take its memory from a tracked heap
    return upstream()->allocate(bytes);
  }

  /// Makes freeing the block come back here. False if that is impossible.
  [[nodiscard]] static bool take_over(c10::DataPtr& block) {
    if (upstream_has_contexts.load(std::memory_order_relaxed)) return add_context(block);
    return block.get() == block.get_context() &&
           block.compare_exchange_deleter(upstream_deleter.load(std::memory_order_relaxed), &delete_block);
  }

  [[nodiscard]] static bool add_context(c10::DataPtr& block) {
    const recording_suppressor hidden;
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
    if (address != nullptr && is_reporting.load(std::memory_order_relaxed)) Observer::freeing(address);
    const recording_suppressor nested;
    upstream_deleter.load(std::memory_order_relaxed)(address);
  }

  static void delete_block_with_context(void* kept) {
    auto* const block = static_cast<block_with_context*>(kept);
    if (is_reporting.load(std::memory_order_relaxed)) Observer::freeing(block->address);
    const recording_suppressor nested;
    block->deleter(block->context);
    delete block;
  }

  /// Whether an allocator installed on top of this one forwards to it.
  [[nodiscard]] static bool is_reached_by(c10::Allocator& other) {
    const std::uint64_t before = calls_of_this_thread;
    const c10::DataPtr probe = other.allocate(1);
    return calls_of_this_thread != before;
  }

  // Static, because a deleter is a plain function.
  inline static constinit std::atomic<c10::Allocator*> upstream_allocator{nullptr};
  inline static constinit std::atomic<c10::DeleterFnPtr> upstream_deleter{nullptr};
  inline static constinit std::atomic<bool> upstream_has_contexts{false};
  inline static constinit std::atomic<bool> is_reporting{false};
  inline static constinit thread_local std::uint64_t calls_of_this_thread = 0;
  bool is_in_place_ = false;  ///< used by control calls only
};

}  // namespace memprof::inline MEMPROF_ABI::detail
