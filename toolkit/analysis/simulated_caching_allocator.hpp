#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// PyTorch's caching allocator on the fake CUDA device of a NO_DISPATCH capture, while the program runs; `torch_device_scope` of
/// <memprof/backend/torch_no_dispatch.hpp> connects it. With a capacity in its options it refuses what PyTorch would refuse, with
/// PyTorch's message. Thread-safe.
class simulated_caching_allocator {
 public:
  /// As in `torch.cuda.memory_stats()`.
  struct statistics {
    caching_allocator_stats all;
    caching_allocator_stats large_pool;
    caching_allocator_stats small_pool;
  };

  /// Throws `memprof::error` for options that the model cannot use.
  explicit simulated_caching_allocator(const caching_allocator_options& options = {}) { restart(options); }
  simulated_caching_allocator(const simulated_caching_allocator&) = delete;
  simulated_caching_allocator& operator=(const simulated_caching_allocator&) = delete;

  /// Forgets all blocks, for another capture. Throws as the constructor does.
  void restart(const caching_allocator_options& options);

  [[nodiscard]] statistics stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  void empty_cache();

  /// Has `observer` called with all that is reserved and returned from now on, on the thread that causes it. It must neither call
  /// this object nor throw. Call this before the first request.
  void observe(segment_observer observer) { observer_ = std::move(observer); }

  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes, 1,024 for all of it) says so in the
  /// words of PyTorch 2.13, and `free_bytes` what the device has left.
  [[nodiscard]] bool has_room(std::int64_t bytes, char* message, std::size_t room, std::int64_t& free_bytes) noexcept;
  /// Allocates a block for what the program knows by `address`. A block that does not fit is not followed.
  void allocate(const void* address, std::int64_t bytes) noexcept;
  void deallocate(const void* address) noexcept;

 private:
  struct change {
    segment_action action;
    std::uint64_t address;
    std::int64_t bytes;
  };

  /// Tells the observer, without the lock.
  void report(const std::vector<change>& made) const;
  [[nodiscard]] std::int64_t free_on_device() const;
  [[nodiscard]] std::string refusal(std::int64_t bytes) const;

  mutable std::mutex lock_;
  std::unique_ptr<caching_allocator> model_;
  std::unordered_map<const void*, const cached_block*> blocks_;
  std::vector<change> changes_;
  segment_observer observer_;
};

}  // namespace memprof::inline MEMPROF_ABI
