#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <set>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// Finds the ring that a thread's number means: of several, the first, as in the ledger. For readers of traces: it allocates.
class thread_numbers {
 public:
  static constexpr std::uint32_t no_ring = ~std::uint32_t{0};

  void add(std::uint32_t number, std::uint32_t ring) { known_.emplace(number, ring); }
  /// The thread of a ring has another number from now on.
  void change(std::uint32_t from, std::uint32_t to, std::uint32_t ring) {
    if (from == to) return;
    known_.erase({from, ring});
    add(to, ring);
  }
  /// `no_ring` if there is none.
  [[nodiscard]] std::uint32_t ring_of(std::uint32_t number) const {
    const auto found = known_.lower_bound({number, 0});
    return found == known_.end() || found->first != number ? no_ring : found->second;
  }

 private:
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_;  ///< number and ring
};

}  // namespace memprof::inline MEMPROF_ABI::detail
