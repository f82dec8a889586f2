#pragma once

#include <memprof/backend/cuda/block_table.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A call that frees, from its begin to its end; 0: it freed nothing that is known.
using ticket = std::uint64_t;

/// What a call did when it began, to take back if it fails.
struct begun_call {
  enum class what : std::uint8_t { free, release, unmap };

  ticket of;
  what done;
  held_block block;
  held_memory memory;  ///< as it was before
  mapping unmapped;
};

/// Of the calls that have not ended: few, so they are searched one by one.
class begun_calls {
 public:
  /// False if the system has no memory: then a call that fails is taken for one that succeeded.
  [[nodiscard]] bool add(const begun_call& begun) noexcept { return rows_.push_back(begun); }

  /// Forgets what a call did, and passes each to `visit`, the last one first.
  template <class Visitor>
  void take(ticket of, Visitor&& visit) noexcept {
    for (std::size_t index = rows_.size(); index-- != 0;) {
      if (rows_[index].of != of) continue;
      const begun_call begun = rows_[index];
      rows_.erase(index);
      visit(begun);
    }
  }

 private:
  page_array<begun_call> rows_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
