#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Bytes of one operation by category; those of "other" are not counted.
using category_sums = std::array<std::int64_t, category_names.size()>;

/// Of the blocks that were live at a peak, those freed since, by operation and category. A new peak is a new epoch, which costs
/// nothing.
class freed_categories {
 public:
  /// Counts a block that was live at the peak of `epoch`. If the system has no memory for it, its operation may lack a category.
  void add(std::uint64_t epoch, const block& freed) noexcept {
    if (category_sums* const sums = find_or_make(epoch, freed.operation())) {
      std::int64_t& bytes = (*sums)[freed.category()];
      bytes = add_saturating(bytes, static_cast<std::int64_t>(freed.bytes));
    }
  }
  /// Null if the system has no memory for it.
  [[nodiscard]] category_sums* find_or_make(std::uint64_t epoch, std::size_t operation) noexcept {
    if (operation >= rows_.size() && !rows_.resize(operation + 1)) return nullptr;
    row& of = rows_[operation];
    if (of.epoch != epoch) of = {epoch, {}};
    return &of.sums;
  }
  [[nodiscard]] category_sums of(std::uint64_t epoch, std::size_t operation) const noexcept {
    return operation < rows_.size() && rows_[operation].epoch == epoch ? rows_[operation].sums : category_sums{};
  }
  [[nodiscard]] std::size_t operation_count() const noexcept { return rows_.size(); }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }

 private:
  struct row {
    std::uint64_t epoch;
    category_sums sums;
  };

  page_array<row> rows_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
