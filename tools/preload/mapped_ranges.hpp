#pragma once

#include <memprof/detail/page_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof_preload {

struct mapped_range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// Ranges of addresses that do not overlap, by address. In memory of its own.
class mapped_ranges {
 public:
  /// Whether one has that address in it.
  [[nodiscard]] bool has(std::uintptr_t address) const noexcept {
    const std::size_t index = first_behind(address);
    return index != rows_.size() && rows_[index].begin <= address;
  }

  /// False if the system has no memory.
  [[nodiscard]] bool insert(const mapped_range& added) noexcept {
    const std::size_t index = first_behind(added.begin);
    if (!rows_.resize(rows_.size() + 1)) return false;
    mapped_range* const place = rows_.data() + index;
    std::memmove(place + 1, place, (rows_.size() - 1 - index) * sizeof *place);
    *place = added;
    return true;
  }

  /// Removes the first that overlaps with `wanted` into `taken`; false if none does.
  [[nodiscard]] bool take(const mapped_range& wanted, mapped_range& taken) noexcept {
    const std::size_t index = first_behind(wanted.begin);
    if (index == rows_.size() || rows_[index].begin >= wanted.end) return false;
    taken = rows_[index];
    rows_.erase(index);
    return true;
  }

 private:
  /// The first that ends behind the address.
  [[nodiscard]] std::size_t first_behind(std::uintptr_t address) const noexcept {
    const mapped_range* const first = rows_.data();
    const auto* const found =
        std::partition_point(first, first + rows_.size(), [address](const mapped_range& range) { return range.end <= address; });
    return static_cast<std::size_t>(found - first);
  }

  memprof::detail::page_array<mapped_range> rows_;
};

}  // namespace memprof_preload
