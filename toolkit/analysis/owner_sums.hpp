#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

/// @file
/// The bytes of several runs, summed by owner: what a comparison of two and a waterfall of several are made of.

namespace memprof::inline MEMPROF_ABI::detail {

/// What one owner had in one run.
struct owner_sum {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t allocated = 0;                ///< -1: unknown
  std::set<std::vector<std::string>> paths;  ///< of its operations that had something live

  void add(const held_bytes& held);
  [[nodiscard]] bool is_live() const noexcept { return bytes != 0 || blocks != 0; }
};

/// For each owner, what it had in each run. An owner that had nothing live in any of them is left out on reading.
using owner_sums = std::map<std::string, std::vector<owner_sum>>;

/// The sums of one owner, with one for each of `runs`.
[[nodiscard]] std::vector<owner_sum>& sums_of_owner(owner_sums& sums, const std::string& owner, std::size_t runs);

/// Sums what was held by `owner_of(held)`.
template <class OwnerOf>
[[nodiscard]] owner_sums sums_by(const std::vector<const compared_run*>& runs, OwnerOf&& owner_of) {
  owner_sums sums;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const held_bytes& held : runs[run]->held) sums_of_owner(sums, owner_of(held), runs.size())[run].add(held);
  }
  return sums;
}

[[nodiscard]] owner_sums sums_by_category(const std::vector<const compared_run*>& runs);

}  // namespace memprof::inline MEMPROF_ABI::detail
