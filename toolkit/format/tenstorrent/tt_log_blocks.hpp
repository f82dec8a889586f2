#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The first part of a block that is freed while the rest stays live.
struct tt_split {
  std::uint64_t block = 0;
  std::int64_t bytes = 0;
};

/// The blocks of one kind of memory, as far as states show: each increase is a block of the operation before, and each decrease
/// frees blocks. If a tensor is deallocated, its own block goes first; then the newest block of that size, then the newest
/// blocks, the last of them in part.
///
/// A block of a trace is freed as a whole, so a block that is freed in parts must be several blocks from the start. The first
/// pass over the log finds out which ones are; see `tt_splits`.
class tt_blocks {
 public:
  struct block {
    std::uint64_t number = 0;
    std::uint64_t address = 0;  ///< of what is left
    std::int64_t bytes = 0;     ///< that are left
    std::string tensor;         ///< its tensor, if known
  };

  void add(block&& made) { live_.push_back(std::move(made)); }

  /// Frees `bytes`; calls `free(block, part)` for each block that loses some or all of its bytes, before it does.
  void remove(std::int64_t bytes, const std::vector<std::string>& tensors,
              const std::function<void(const block& from, std::int64_t part)>& free);

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t max_tried = 4096;  ///< bounds the cost of a state, however many blocks are live

  /// The newest block for which `is_wanted` is true.
  template <class Predicate>
  [[nodiscard]] std::size_t find(Predicate&& is_wanted) const;

  [[nodiscard]] std::int64_t take(std::size_t index, std::int64_t bytes,
                                  const std::function<void(const block& from, std::int64_t part)>& free);

  std::vector<block> live_;
};

/// The parts in which blocks are freed: written by the first pass, read by the second.
class tt_splits {
 public:
  void add(const tt_split& split) { splits_.push_back(split); }
  void finish();

  /// Calls `part(bytes)` for the parts of a block in the order in which they are freed. Blocks must be queried in order.
  void for_each_part(std::uint64_t block, std::int64_t bytes, const std::function<void(std::int64_t bytes)>& part);

 private:
  std::vector<tt_split> splits_;
  std::size_t next_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
