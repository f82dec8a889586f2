#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>
#include <memprof/toolkit/analysis/request_places.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

  /// The stream and the pool of a block.
  using place = detail::request_places::place;

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
  /// As `torch.cuda.set_per_process_memory_fraction`; from 0 to 1.
  void set_memory_fraction(double fraction);
  [[nodiscard]] double memory_fraction() const;

  /// Has `observer` called with all that is reserved and returned from now on, on the thread that causes it, for which stream and
  /// pool, and whether the program asked for it, as `empty_cache` does. It must neither call this object nor throw. Call this
  /// before the first request.
  using observer =
      std::function<void(segment_action action, std::uint64_t address, std::int64_t bytes, place where, bool was_asked)>;
  void observe(observer called) { observer_ = std::move(called); }

  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes, 1,024 for all of it) says so in the
  /// words of PyTorch 2.13, and `free_bytes` what the device has left.
  [[nodiscard]] bool has_room(std::int64_t bytes, char* message, std::size_t room, std::int64_t& free_bytes,
                              bool is_backward = false) noexcept;
  /// Allocates a block for what the program knows by `address`. A block that does not fit is not followed. Returns its stream and
  /// pool. `is_backward`: PyTorch makes a backward pass on a thread of its own, which uses no pool by `begin_use`.
  place allocate(const void* address, std::int64_t bytes, bool is_backward = false) noexcept;
  /// Returns the same.
  place deallocate(const void* address) noexcept;

  // --- streams and private pools, as a program's calls of PyTorch change them; the rules are those of its allocator ------------

  using pool_handle = detail::request_places::pool_handle;

  /// The stream of the calling thread's requests; 0 is the default one.
  void use_stream(std::uint64_t stream);
  [[nodiscard]] std::uint64_t stream() const;
  /// Whether the calling thread may wait for its stream. Not if it is captured, and then the capture has failed.
  [[nodiscard]] bool try_to_wait();
  /// The calling thread's stream has work to do.
  void add_work();

  /// Calls `apply(places, model)` under the lock.
  template <class Apply>
  auto change_places(Apply apply) {
    const std::lock_guard locked{lock_};
    return apply(places_, *model_);
  }
  /// Has a pool without users give back what it has cached.
  void empty_pool(pool_handle pool);

  /// Calls `visit(const cached_block&, pool_handle)` for the first block of each segment, under the lock.
  template <class Visitor>
  void for_each_segment(Visitor visit) const {
    const std::lock_guard locked{lock_};
    model_->for_each_block([&](const cached_block& block) {
      if (block.previous == nullptr) visit(block, handles_[block.pool->id()]);
    });
  }

 private:
  struct change {
    segment_action action;
    std::uint64_t address;
    std::int64_t bytes;
    place where;
    bool was_asked;
  };
  struct held_block {
    const cached_block* block;
    place where;
  };

  /// Tells the observer, without the lock.
  void report(const std::vector<change>& made) const;
  void add_change(segment_action action, std::uint64_t address, std::int64_t bytes);
  /// The block for a request of the calling thread, and the place.
  [[nodiscard]] held_block request(std::int64_t bytes, bool is_backward);
  template <class Release>
  void release_as_asked(Release release);
  [[nodiscard]] std::int64_t free_on_device() const;
  [[nodiscard]] std::string refusal(std::int64_t bytes) const;

  mutable std::mutex lock_;
  std::unique_ptr<caching_allocator> model_;
  std::unordered_map<const void*, held_block> blocks_;
  std::vector<change> changes_;
  observer observer_;
  detail::request_places places_;
  std::vector<pool_handle> handles_;        ///< of the model's pools
  place where_;                             ///< of the request that is being served
  std::map<std::uint64_t, place> origins_;  ///< of ranges, by address
  bool was_asked_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI
