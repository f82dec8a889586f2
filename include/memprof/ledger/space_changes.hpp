#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/event.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Which memory spaces have changed in the open segment, and of which names an unchanged one has ended a segment since its last
/// change: any further segment of that name is the same, and need not be looked at.
class space_changes {
 public:
  /// A space is about to change in the open segment.
  void begin(std::size_t space) noexcept { has_changed_[space] = true; }
  [[nodiscard]] bool has_changed(std::size_t space) const noexcept { return has_changed_[space]; }

  /// Whether a segment of the name in that row of the history would be as the last one was.
  [[nodiscard]] bool may_skip(std::size_t space, std::size_t row) const noexcept {
    return !has_changed_[space] && row < ended_.size() && ended_[row].after_change[space] == changes_[space] + 1;
  }

  /// A segment of the name in that row has ended in the space.
  void end_segment(std::size_t space, std::size_t row) noexcept {
    if (has_changed_[space]) {
      has_changed_[space] = false;
      if (++changes_[space] == ~std::uint32_t{0}) forget();
    } else if (row < ended_.size() || ended_.resize(row + 1)) {  // without memory, no segment is skipped
      ended_[row].after_change[space] = changes_[space] + 1;
    }
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return ended_.bytes(); }

 private:
  struct last_ends {
    std::uint32_t after_change[any_space + 1];  ///< number of the change after which a segment has ended, plus one
  };

  /// Begins to count changes anew; until it knows more, no segment is skipped.
  void forget() noexcept {
    ended_.clear();
    for (std::uint32_t& count : changes_) count = 0;
  }

  bool has_changed_[any_space + 1] = {};
  std::uint32_t changes_[any_space + 1] = {};
  page_array<last_ends> ended_;  ///< by row of the history
};

}  // namespace memprof::inline MEMPROF_ABI::detail
