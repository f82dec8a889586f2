#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

/// @file
/// The blocks of a caching allocator, and the pools of free ones.

namespace memprof::inline MEMPROF_ABI {

struct cached_block;

/// The order of the best-fit search: on the same stream the smallest, and among equals the lowest.
struct free_block_key {
  std::uint64_t stream;
  std::int64_t bytes;
  std::uint64_t address;

  [[nodiscard]] bool operator<(const free_block_key& other) const noexcept {
    if (stream != other.stream) return stream < other.stream;
    return bytes != other.bytes ? bytes < other.bytes : address < other.address;
  }
};

using free_block_map = std::map<free_block_key, cached_block*>;

class block_pool;

/// A stretch of a segment. The blocks of a segment are linked in order of address and leave no gap.
struct cached_block {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested = 0;  ///< the requested bytes, while allocated
  std::uint64_t stream = 0;
  block_pool* pool = nullptr;
  cached_block* previous = nullptr;
  cached_block* next = nullptr;
  free_block_map::iterator position{};  ///< while it is in its pool
  std::int64_t free_since = 0;          ///< the number of searches of its pool when it became free
  std::uint64_t expandable_base = 0;    ///< start of its expandable segment; 0: its segment has a fixed size
  bool is_allocated = false;
  bool awaits_streams = false;  ///< another stream uses it, so deallocating it does not free it at once
  bool is_mapped = true;        ///< its addresses are backed by memory

  [[nodiscard]] bool is_expandable() const noexcept { return expandable_base != 0; }
  /// Whether it is only a part of its segment.
  [[nodiscard]] bool is_split() const noexcept { return previous != nullptr || next != nullptr; }
  /// Whether it is unavailable: allocated, or freed while another stream may still use it.
  [[nodiscard]] bool is_active() const noexcept { return is_allocated || awaits_streams; }
};

/// The free blocks of one size class, on all streams. Insertion and removal take logarithmic time, and do not allocate as long as
/// they alternate.
class block_pool {
 public:
  explicit block_pool(bool is_small, std::size_t id = 0, bool whole = false) : is_small_(is_small), is_whole_(whole), id_(id) {}
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  [[nodiscard]] bool is_small() const noexcept { return is_small_; }
  /// Whether each of its blocks is a segment.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  /// Its number in its allocator; 0: the shared pool.
  [[nodiscard]] std::size_t id() const noexcept { return id_; }
  [[nodiscard]] const free_block_map& free() const noexcept { return free_; }
  /// Free blocks not backed by memory, by stream and address.
  [[nodiscard]] const free_block_map& unmapped() const noexcept { return unmapped_; }

  void add(cached_block& block);

  void remove(const cached_block& block) { spare_ = (block.is_mapped ? free_ : unmapped_).extract(block.position); }

  void count_search() noexcept { ++searches_; }
  /// The number of searches of the pool since the block became free.
  [[nodiscard]] std::int64_t age(const cached_block& block) const noexcept { return searches_ - block.free_since; }

 private:
  [[nodiscard]] static free_block_key key_of(const cached_block& block) noexcept;

  bool is_small_;
  bool is_whole_;
  std::size_t id_;
  std::int64_t searches_ = 0;
  free_block_map free_;
  free_block_map unmapped_;
  free_block_map::node_type spare_;  // node of the last removed block, for reuse
};

/// Storage for blocks: their addresses are stable, and storage is reused.
class block_store {
 public:
  [[nodiscard]] cached_block& take();
  void give_back(cached_block& block) noexcept;

  /// Calls `visit(const cached_block&)` for each block, in no particular order.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const cached_block& block : blocks_) {
      if (block.pool != nullptr) visit(block);
    }
  }

 private:
  std::deque<cached_block> blocks_;
  cached_block* unused_ = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI
