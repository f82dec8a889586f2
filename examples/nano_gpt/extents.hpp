#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <new>
#include <span>
#include <string>

namespace nano_gpt {

/// The sizes of up to four dimensions, slowest first.
class extents {
 public:
  extents() = default;
  extents(std::initializer_list<std::size_t> sizes) : rank_{sizes.size()} {
    std::size_t dimension = 0;
    for (const std::size_t size : sizes) sizes_.at(dimension++) = size;
  }

  [[nodiscard]] std::size_t operator[](std::size_t dimension) const { return sizes_[dimension]; }
  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::span<const std::size_t> sizes() const { return std::span(sizes_).first(rank_); }
  [[nodiscard]] std::size_t last() const { return rank_ == 0 ? 0 : sizes_[rank_ - 1]; }

  /// The same shape with another last dimension.
  [[nodiscard]] extents with_last(std::size_t size) const {
    extents result = *this;
    result.sizes_[rank_ - 1] = size;
    return result;
  }

  /// The product of all sizes; throws `std::bad_array_new_length` if `element_bytes` times it does not fit the address space.
  [[nodiscard]] std::size_t count(std::size_t element_bytes) const {
    std::size_t product = rank_ == 0 ? 0 : 1;
    for (const std::size_t size : sizes()) {
      const std::size_t limit = std::numeric_limits<std::ptrdiff_t>::max() / element_bytes;
      if (size != 0 && product > limit / size) throw std::bad_array_new_length{};
      product *= size;
    }
    return product;
  }

  /// As in "[65, 128]".
  [[nodiscard]] std::string to_string() const {
    std::string text = "[";
    for (std::size_t dimension = 0; dimension < rank_; ++dimension) {
      if (dimension != 0) text += ", ";
      text += std::to_string(sizes_[dimension]);
    }
    return text + "]";
  }

  bool operator==(const extents&) const = default;

 private:
  std::array<std::size_t, 4> sizes_{};
  std::size_t rank_ = 0;
};

}  // namespace nano_gpt
