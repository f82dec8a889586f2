#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// An owner with a colour of its own in a page: an operation with a category, or the rest of a category.
struct page_owner {
  static constexpr std::int64_t others = -2;

  std::int64_t operation = others;  ///< index into `profile::operations`; -1: outside every operation
  std::uint32_t category = 0;
};

/// The owners of a page. In each space those with the most bytes have a row each, and the others share one row per category.
class page_owners {
 public:
  /// `spaces`: the ids of those shown; at most `count` owners of each, 246 or fewer.
  page_owners(const run_survey& survey, const std::vector<std::uint8_t>& spaces, std::size_t count);

  [[nodiscard]] const std::vector<page_owner>& owners() const noexcept { return owners_; }

  /// The slot of a block's owner in its space.
  [[nodiscard]] std::size_t slot_of(std::size_t space, const page_block& block) const noexcept {
    return by_space_[space].slot_of_key[block.owner_key()];
  }
  /// By slot: indices into `owners`.
  [[nodiscard]] const std::vector<std::uint32_t>& of_space(std::size_t space) const noexcept { return by_space_[space].owners; }

 private:
  struct space_owners {
    std::vector<std::uint8_t> slot_of_key;
    std::vector<std::uint32_t> owners;
  };

  void choose(const std::vector<run_survey::owner_total>& totals, space_owners& chosen, std::size_t count);

  [[nodiscard]] std::uint32_t index_of(const page_owner& owner);

  std::vector<page_owner> owners_;
  std::array<space_owners, ledger::max_spaces + 1> by_space_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
