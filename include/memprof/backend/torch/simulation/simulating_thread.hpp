#pragma once

#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/record/recorder.hpp>

#include <c10/core/Device.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

/// @file
/// What the simulation keeps for each thread, and how a thread records blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a capture simulates.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> is_simulating{false};

/// A block that a thread has allocated or is about to free, and that is not recorded yet.
struct pending_block {
  const void* address;
  std::size_t bytes;  ///< of a free: 0 if only the ledger knows
  std::uint8_t space;
  bool is_free;
};

/// Small, because a module that is loaded at run time takes thread-local storage from a scarce reserve.
struct simulating_thread {
  std::optional<c10::Device> meta_device;  ///< where blocks count that a Meta kernel allocates; none: no Meta kernel runs
  std::int64_t allocated_bytes = 0;        ///< by the simulation, ever
  std::size_t most_kernel_bytes = std::numeric_limits<std::size_t>::max();  ///< that the real kernel may still allocate
  std::vector<pending_block>* pending = nullptr;                            ///< null: blocks are recorded at once
  unsigned real_scopes = 0;                                                 ///< that are open
  unsigned hidden_kernels = 0;     ///< real kernels whose blocks are not those of the program
  bool was_multithreading = true;  ///< what autograd did on this thread before
};

[[gnu::visibility("default")]] inline thread_local constinit simulating_thread this_simulating_thread{};

/// Whether operations of this thread run for real.
[[nodiscard]] inline bool runs_for_real() noexcept {
  // Relaxed: the program orders begin and end of the capture with its own work.
  return !is_simulating.load(std::memory_order_relaxed) || this_simulating_thread.real_scopes != 0;
}

/// Records a block, or keeps it with the pending ones.
inline void record_or_keep(const pending_block& block, std::vector<pending_block>* pending) noexcept {
  if (pending != nullptr) {
    const recording_suppressor hidden;
    try {
      pending->push_back(block);
      return;
    } catch (...) {  // without memory the order is lost, not the event
    }
  }
  if (block.is_free)
    record_tensor_deallocation(block.address, block.bytes, block.space);
  else
    record_tensor_allocation(block.address, block.bytes, block.space);
}

/// To be called after the block was allocated.
inline void record_simulated_allocation(const void* address, std::size_t bytes, std::uint8_t space) noexcept {
  simulating_thread& self = this_simulating_thread;
  self.allocated_bytes += static_cast<std::int64_t>(bytes);
  record_or_keep({address, bytes, space, false}, self.pending);
}

/// To be called before the block is freed, which may be long after the capture.
inline void record_simulated_deallocation(const void* address, std::size_t bytes, std::uint8_t space) noexcept {
  record_or_keep({address, bytes, space, true}, this_simulating_thread.pending);
}

/// Keeps what this thread records until it is known whether the kernel that runs does what the program asked for: `commit`
/// records it, the destructor forgets the rest.
class [[nodiscard]] pending_events {
 public:
  pending_events() : outer_(this_simulating_thread.pending) { this_simulating_thread.pending = &blocks_; }
  pending_events(const pending_events&) = delete;
  pending_events& operator=(const pending_events&) = delete;
  ~pending_events() {
    const recording_suppressor hidden;
    this_simulating_thread.pending = outer_;
    for (const pending_block& block : blocks_) {
      if (!block.is_free) this_simulating_thread.allocated_bytes -= static_cast<std::int64_t>(block.bytes);
    }
    blocks_ = {};
  }

  /// Whether all that was allocated is free again, and nothing else was freed.
  [[nodiscard]] bool have_left_nothing() const {
    const recording_suppressor hidden;
    std::vector<const void*> live;
    for (const pending_block& block : blocks_) {
      if (!block.is_free) {
        live.push_back(block.address);
        continue;
      }
      const auto known = std::find(live.rbegin(), live.rend(), block.address);
      if (known == live.rend()) return false;
      live.erase(std::next(known).base());
    }
    return live.empty();
  }

  void commit() noexcept {
    this_simulating_thread.pending = outer_;
    for (const pending_block& block : blocks_) record_or_keep(block, outer_);
    const recording_suppressor hidden;
    blocks_ = {};
  }

 private:
  std::vector<pending_block>* outer_;
  std::vector<pending_block> blocks_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
