#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// Numbers texts in the order of their first occurrence. A `std::map` would do, but every translation unit that includes the
/// library would pay for instantiating it for each type of its values.

namespace memprof::inline MEMPROF_ABI::detail {

/// The number of a text, from 0, and whether it is new.
struct text_row {
  std::size_t index;
  bool is_new;
};

/// A hash table of texts, which must outlive it.
class text_rows {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }

  /// The row of a text, a new one at its first occurrence.
  [[nodiscard]] text_row find_or_add(std::string_view text) {
    if (2 * (texts_.size() + 1) > slots_.size()) grow();
    std::size_t& slot = slot_of(text);
    if (slot != free_slot) return {slot, false};
    slot = texts_.size();
    texts_.push_back(text);
    return {slot, true};
  }

 private:
  static constexpr std::size_t free_slot = SIZE_MAX;

  [[nodiscard]] std::size_t& slot_of(std::string_view text) noexcept {
    std::size_t at = 14695981039346656037U;  // FNV-1a
    for (const char byte : text) at = (at ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    at ^= at >> 32;
    for (;; ++at) {
      std::size_t& slot = slots_[at & (slots_.size() - 1)];
      if (slot == free_slot || texts_[slot] == text) return slot;
    }
  }

  void grow() {
    slots_ = vector<std::size_t>(slots_.empty() ? 16 : 2 * slots_.size(), free_slot);
    for (std::size_t row = 0; row < texts_.size(); ++row) slot_of(texts_[row]) = row;
  }

  vector<std::string_view> texts_;
  vector<std::size_t> slots_;  ///< a power of two of them, at most half of them taken
};

}  // namespace memprof::inline MEMPROF_ABI::detail
