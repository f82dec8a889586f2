#pragma once

#include <memprof/record/memory_space.hpp>
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
#include <vector>

#include "../memprof/torch/backend.h"

namespace memprof_python {

/// What PyTorch's caching allocator does with the blocks of a claimed CUDA device, while the program runs. Records what it
/// reserves. Thread-safe.
class claimed_allocator {
 public:
  /// The sums since the capture began, and the numbers of this moment, as in `torch.cuda.memory_stats()`.
  struct statistics {
    memprof::caching_allocator_stats now;
    memprof::allocator_stat blocks;
    memprof::allocator_stat segments;
    std::int64_t all_requested = 0;
    std::int64_t all_allocated = 0;
    std::int64_t all_reserved = 0;
    std::int64_t all_blocks = 0;
    std::int64_t all_segments = 0;
  };

  /// Begins a capture. With a capacity, requests that PyTorch would refuse are refused.
  void begin(const memprof::caching_allocator_options& options);
  [[nodiscard]] statistics stats() const;
  void reset_peaks();
  void empty_cache();

  /// What the library that simulates calls; lives as long as this object.
  [[nodiscard]] const memprof_torch_allocator& calls() const noexcept { return calls_; }

 private:
  struct change {
    memprof::segment_action action;
    std::uint64_t address;
    std::int64_t bytes;
  };

  [[nodiscard]] bool has_room(std::int64_t bytes, char* message, std::size_t room, std::int64_t& free_bytes);
  void allocate(const void* address, std::int64_t bytes);
  void deallocate(const void* address);
  void note(const change& made);
  /// Records what the model has reserved and returned, without the lock.
  void record_changes(const std::vector<change>& made) const;
  [[nodiscard]] std::string refusal(std::int64_t bytes) const;

  mutable std::mutex lock_;
  std::unique_ptr<memprof::caching_allocator> model_;
  std::unordered_map<const void*, const memprof::cached_block*> blocks_;
  std::vector<change> changes_;
  statistics stats_;
  memprof::memory_space space_{"cuda:0"};
  memprof_torch_allocator calls_{
      this,
      [](void* self, std::int64_t bytes, char* message, std::size_t room, std::int64_t* free_bytes) {
        return static_cast<claimed_allocator*>(self)->has_room(bytes, message, room, *free_bytes);
      },
      [](void* self, const void* address, std::int64_t bytes) {
        static_cast<claimed_allocator*>(self)->allocate(address, bytes);
      },
      [](void* self, const void* address) { static_cast<claimed_allocator*>(self)->deallocate(address); }};
};

}  // namespace memprof_python
