#pragma once

#include <memprof/toolkit/analysis/caching_allocator.hpp>

#include <cstdint>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Which pool serves which thread and stream: PyTorch's private pools, and what is now allocated from them. Not synchronised.
class request_places {
 public:
  /// What PyTorch knows a private pool by.
  using pool_handle = std::pair<std::uint64_t, std::uint64_t>;

  struct place {
    std::uint64_t stream = 0;             ///< 0: the default one
    caching_allocator::pool_id pool = 0;  ///< 0: the shared one
    pool_handle handle{};

    bool operator==(const place&) const = default;
  };

  /// The calling thread's stream; 0, the default one, until it says another.
  [[nodiscard]] std::uint64_t stream() const noexcept;
  void use_stream(std::uint64_t stream) noexcept;

  /// The place of the calling thread's requests, or of the one that makes its backward passes on a device, for which no use by a
  /// thread is: the last begun use decides.
  [[nodiscard]] place here(bool is_backward = false) const;

  /// Counts a user of a pool, which is made if there is none. False if there is one without users.
  [[nodiscard]] bool retain(caching_allocator& model, pool_handle pool, bool whole = false);
  /// Returns the number of users left; -1: there is no such pool.
  int release(caching_allocator& model, pool_handle pool);
  [[nodiscard]] int users(pool_handle pool) const;

  /// Whether requests go to the pool already.
  [[nodiscard]] bool is_used(pool_handle pool) const;
  /// From now on, the calling thread's requests go to the pool.
  void begin_use(pool_handle pool);
  /// From now on, requests on the stream do, which is captured. Returns the number of the capture, from 1.
  std::uint64_t begin_capture(pool_handle pool, std::uint64_t stream);
  /// False if no requests go there.
  bool end_use(pool_handle pool);

  /// The capture that a stream is part of; 0: none.
  [[nodiscard]] std::uint64_t capture_of(std::uint64_t stream) const;
  /// The stream has work to do, which counts if it is captured.
  void add_work(std::uint64_t stream);
  /// Marks what a captured stream and those that it has waited for have done so far. Returns the mark's number, from 1; 0: the
  /// stream is not captured.
  std::uint64_t mark(std::uint64_t stream);
  /// Work of the stream now depends on that before a mark of a captured one, whose capture it is part of from then on.
  void join(std::uint64_t stream, std::uint64_t capture, std::uint64_t mark);
  /// Whether the stream that the capture began on has waited for all work of the others.
  [[nodiscard]] bool is_joined(std::uint64_t capture) const;
  /// The capture has failed: requests no longer go to its pool, but PyTorch still takes it for underway.
  void fail(std::uint64_t capture);
  void fail_all();
  [[nodiscard]] bool has_failed(std::uint64_t capture) const;

  /// Whether any stream is captured.
  [[nodiscard]] bool are_captured() const;
  [[nodiscard]] bool is_any_used() const noexcept { return !uses_.empty(); }

  /// Has the pools without users give back what they have cached, and forgets those that have nothing left. `only`, if it is not
  /// {0, 0}: this one.
  void empty_unused(caching_allocator& model, pool_handle only = {});

 private:
  struct private_pool {
    caching_allocator::pool_id id;
    int users;
  };
  /// How much work of each stream is done, by stream.
  using done_work = std::map<std::uint64_t, std::uint64_t>;

  struct captured_stream {
    std::uint64_t stream;
    done_work done;  ///< before what it does next; its own, too
  };
  struct use {
    pool_handle pool;
    std::thread::id thread;                ///< none: a capture
    std::uint64_t capture;                 ///< its number; 0: no capture
    std::vector<captured_stream> streams;  ///< the first is the one that it began on
    std::vector<done_work> marks{};

    [[nodiscard]] captured_stream* find(std::uint64_t stream);
    [[nodiscard]] bool has(std::uint64_t stream) const;
  };

  std::map<pool_handle, private_pool> pools_;
  std::vector<use> uses_;  // in the order in which they began
  std::uint64_t captures_ = 0;
  std::uint64_t run_ = next_run();

  [[nodiscard]] static std::uint64_t next_run() noexcept;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
