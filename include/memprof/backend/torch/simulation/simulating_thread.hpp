#pragma once

#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
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
/// The simulation's state of each thread, and how a thread records blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a simulation is active.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> is_simulating{false};

/// Whether operations that run for real may read simulated tensors: in a forked process that only loads data.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> are_simulated_tensors_read{false};

/// A block that a thread has allocated or is about to free, not yet recorded.
struct pending_block {
  const void* address;
  std::size_t bytes;  ///< for a free, 0 if only the ledger knows the size
  std::uint8_t space;
  bool is_free;
  bool is_earlier = false;  ///< a free of a block of an earlier capture
};

/// Small, because a module loaded at run time takes its thread-local storage from a scarce reserve.
struct simulating_thread {
  std::optional<c10::Device> meta_device;  ///< the device on which a Meta kernel's blocks count; none: no Meta kernel runs
  std::int64_t allocated_bytes = 0;        ///< the total of the simulation
  std::uint64_t made_blocks = 0;
  double mask_share = std::numeric_limits<double>::quiet_NaN();  ///< of the masks that a shape function reads
  bool is_mask_share_said = false;
  std::size_t max_kernel_bytes = std::numeric_limits<std::size_t>::max();  ///< what the real kernel may still allocate
  std::vector<pending_block>* pending = nullptr;                           ///< null: blocks are recorded at once
  unsigned real_scopes = 0;                                                ///< the number of open ones
  unsigned open_prints = 0;        ///< what is read within one is printed, and decides only how it looks
  unsigned hidden_kernels = 0;     ///< real kernels whose blocks are not those of the program
  bool was_multithreading = true;  ///< autograd's previous setting on this thread
};

[[gnu::visibility("default")]] inline thread_local constinit simulating_thread this_simulating_thread{};

/// Whether operations of this thread run for real.
[[nodiscard]] inline bool runs_for_real() noexcept {
  // Relaxed: the program orders the beginning and end of the capture with its own work.
  return !is_simulating.load(std::memory_order_relaxed) || this_simulating_thread.real_scopes != 0;
}

/// Records a block, or adds it to the pending ones.
inline void record_or_keep(const pending_block& block, std::vector<pending_block>* pending) noexcept {
  if (pending != nullptr) {
    const recording_suppressor hidden;
    try {
      pending->push_back(block);
      return;
    } catch (...) {  // out of memory: the order is lost, but not the event
    }
  }
  if (block.is_free) {
    const bool is_followed = block.space != cpu_space && !block.is_earlier;
    const label where = is_followed ? fake_cuda_device.deallocate(block.address) : 0;
    record_tensor_deallocation(block.address, block.bytes, block.space, where);
  } else {
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    const label where = block.space != cpu_space ? fake_cuda_device.allocate(block.address, bytes) : 0;
    record_tensor_allocation(block.address, block.bytes, block.space, where);
  }
}

/// Call after a block was allocated.
inline void record_simulated_allocation(const void* address, std::size_t bytes, std::uint8_t space) noexcept {
  simulating_thread& self = this_simulating_thread;
  self.allocated_bytes += static_cast<std::int64_t>(bytes);
  record_or_keep({address, bytes, space, false}, self.pending);
}

/// Call before a block is freed, perhaps long after the capture.
inline void record_simulated_deallocation(const void* address, std::size_t bytes, std::uint8_t space,
                                          bool is_earlier = false) noexcept {
  record_or_keep({address, bytes, space, true, is_earlier}, this_simulating_thread.pending);
}

/// Holds back what this thread records until it is known whether the running kernel does what the program requested: `commit`
/// records the events, the destructor discards the rest.
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

  /// Whether everything allocated has been freed again, and nothing else.
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
