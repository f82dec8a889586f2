#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The first part of a block that is freed while the rest stays live.
struct tt_split {
  std::uint64_t block = 0;
  std::int64_t bytes = 0;
};

/// What one kind of memory is made of, as far as states tell: each growth is a block of the operation before it, and each
/// decrease frees blocks. Of a tensor that is deallocated its own block goes first, then the newest of as many bytes, then the
/// newest ones, of the last only a part.
///
/// A block of a trace is freed as a whole, so that one which goes in parts has to be several from the begin. Which ones those
/// are, a first pass over the log finds out; see `tt_splits`.
class tt_blocks {
 public:
  struct block {
    std::uint64_t number = 0;
    std::uint64_t address = 0;  ///< of what is left of it
    std::int64_t bytes = 0;     ///< these
    std::string tensor;         ///< whose it is, if that is known
  };

  void add(block&& made) { live_.push_back(std::move(made)); }

  /// Frees `bytes`; calls `free(block, part)` for each block that loses a part or all, before it does.
  template <class Free>
  void remove(std::int64_t bytes, const std::vector<std::string>& tensors, Free&& free) {
    for (const std::string& tensor : tensors) {
      const std::size_t index = find([&](const block& each) { return each.tensor == tensor; });
      if (index != none && bytes > 0) bytes -= take(index, bytes, free);
    }
    while (bytes > 0 && !live_.empty()) {
      const std::size_t equal = find([&](const block& each) { return each.bytes == bytes; });
      bytes -= take(equal == none ? live_.size() - 1 : equal, bytes, free);
    }
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t most_tried = 4096;  ///< so that no state costs more, whatever is live

  /// The newest block of which `is_wanted` is true.
  template <class Predicate>
  [[nodiscard]] std::size_t find(Predicate&& is_wanted) const {
    const std::size_t oldest = live_.size() - std::min(live_.size(), most_tried);
    for (std::size_t index = live_.size(); index > oldest; --index) {
      if (is_wanted(live_[index - 1])) return index - 1;
    }
    return none;
  }

  template <class Free>
  std::int64_t take(std::size_t index, std::int64_t bytes, Free&& free) {
    block& from = live_[index];
    const std::int64_t part = std::min(bytes, from.bytes);
    free(from, part);
    from.bytes -= part;
    from.address += static_cast<std::uint64_t>(part);
    if (from.bytes == 0) live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
    return part;
  }

  std::vector<block> live_;
};

/// In which parts blocks go: what the first pass writes and the second reads.
class tt_splits {
 public:
  void add(const tt_split& split) { splits_.push_back(split); }
  void finish() {
    std::stable_sort(splits_.begin(), splits_.end(),
                     [](const tt_split& left, const tt_split& right) { return left.block < right.block; });
  }

  /// Calls `part(bytes)` for the parts of a block, in the order in which they are freed. Blocks must be asked for in order.
  template <class Part>
  void for_each_part(std::uint64_t block, std::int64_t bytes, Part&& part) {
    for (; next_ < splits_.size() && splits_[next_].block <= block; ++next_) {
      // The file may have changed since the first pass.
      if (splits_[next_].block != block || splits_[next_].bytes >= bytes) continue;
      part(splits_[next_].bytes);
      bytes -= splits_[next_].bytes;
    }
    part(bytes);
  }

 private:
  std::vector<tt_split> splits_;
  std::size_t next_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
