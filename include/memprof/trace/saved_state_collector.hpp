#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/definitions.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// Assembles the parts of a saved state.
class saved_state_collector {
 public:
  /// Adds a part; true if the state is now complete. A part without its predecessors is useless; nothing is lost by waiting for
  /// the next state.
  [[nodiscard]] bool add(const saved_state_part& part) noexcept {
    if (part.index == 0) {
      bytes_.clear();
      next_ = 0;
    }
    const std::size_t filled = bytes_.size();
    if (part.index != next_ || !bytes_.resize(filled + part.bytes.size())) return false;
    if (!part.bytes.empty()) std::memcpy(bytes_.data() + filled, part.bytes.data(), part.bytes.size());
    ++next_;
    return part.is_last;
  }

  [[nodiscard]] const unsigned char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  void clear() noexcept {
    bytes_ = {};
    next_ = none;
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  page_array<unsigned char> bytes_;
  std::uint64_t next_ = none;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
