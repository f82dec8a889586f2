#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The beginnings, or the ends, of the stacks so far, by their hash. Where one is, all shorter ones are.
class stack_parts {
 public:
  /// The longest part of at most so many frames that an earlier stack has, too. `hash_of` gives the hash of so many frames.
  template <class HashOf>
  [[nodiscard]] stack_part longest(std::size_t most, HashOf hash_of) noexcept {
    std::size_t begin = 0;
    for (std::size_t end = most + 1; end - begin > 1;) {
      const std::size_t middle = begin + (end - begin) / 2;
      (place_of(hash_of(middle))->hash != 0 ? begin : end) = middle;
    }
    return begin == 0 ? stack_part{} : stack_part{place_of(hash_of(begin))->stack, begin};
  }

  /// Adds one that is not there. There must be room.
  void add(std::uint64_t hash, label stack) noexcept {
    *place_of(hash) = {hash, stack};
    ++used_;
  }

  /// Makes room for so many more. False if the system has no memory.
  [[nodiscard]] bool reserve(std::size_t more) noexcept {
    while (2 * (used_ + more) > entries_.size()) {
      if (!grow()) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes(); }

 private:
  struct entry {
    std::uint64_t hash;  ///< 0: free
    label stack;
  };

  /// Where it is, or would be.
  [[nodiscard]] entry* place_of(std::uint64_t hash) noexcept {
    std::size_t place = hash >> 20;
    const auto at = [&] { return &entries_[place & (entries_.size() - 1)]; };
    while (at()->hash != 0 && at()->hash != hash) ++place;
    return at();
  }

  [[nodiscard]] bool grow() noexcept {
    page_array<entry> before;
    std::swap(before, entries_);
    if (!entries_.resize(before.empty() ? 1024 : 2 * before.size())) {
      std::swap(before, entries_);
      return false;
    }
    for (const entry& each : before) {
      if (each.hash != 0) *place_of(each.hash) = each;
    }
    return true;
  }

  page_array<entry> entries_;
  std::size_t used_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
