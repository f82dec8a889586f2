#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory_resource>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace nano_gpt {

/// The name of an element type, as the field spells it.
template <class T>
inline constexpr std::string_view dtype_name = "unknown";
template <>
inline constexpr std::string_view dtype_name<float> = "float32";
template <>
inline constexpr std::string_view dtype_name<double> = "float64";
template <>
inline constexpr std::string_view dtype_name<std::int32_t> = "int32";

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
    for (const std::size_t size : std::span(sizes_).first(rank_)) {
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

/// A matrix somebody else owns. Strides count elements, so a head of a [tokens, heads * width] array or a transposed matrix is
/// a view as well.
template <class T>
struct matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;

  [[nodiscard]] T* row(std::size_t index) const { return data + index * row_stride; }
  [[nodiscard]] T& at(std::size_t row, std::size_t column) const { return data[row * row_stride + column * column_stride]; }
  [[nodiscard]] matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }

  // NOLINTNEXTLINE(google-explicit-constructor): a view of mutable elements is a view of const ones, as with std::span
  operator matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns, row_stride, column_stride}; }
};

/// A dense row-major array from a memory resource; move-only. Its elements start out uninitialised, so whoever creates one for
/// accumulation asks for `zeros`.
template <class T>
class tensor {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t alignment = 64;

  tensor() = default;
  tensor(const extents& shape, std::pmr::memory_resource* memory)
      : shape_{shape},
        size_{shape.count(sizeof(T))},
        memory_{memory},
        data_{static_cast<T*>(memory->allocate(size_ * sizeof(T), alignment))} {}

  tensor(tensor&& other) noexcept { swap(other); }
  tensor& operator=(tensor&& other) noexcept {
    tensor{std::move(other)}.swap(*this);
    return *this;
  }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  ~tensor() {
    if (data_ != nullptr) memory_->deallocate(data_, size_ * sizeof(T), alignment);
  }

  [[nodiscard]] static tensor zeros(const extents& shape, std::pmr::memory_resource* memory) {
    tensor result{shape, memory};
    for (T& element : result.elements()) element = T{};
    return result;
  }

  /// Gives the memory back.
  void free() noexcept { tensor{}.swap(*this); }

  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }
  [[nodiscard]] const extents& shape() const { return shape_; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::span<T> elements() { return {data_, size_}; }
  [[nodiscard]] std::span<const T> elements() const { return {data_, size_}; }

  /// All dimensions but the last as rows.
  [[nodiscard]] matrix<T> as_matrix() { return {data_, size_ / shape_.last(), shape_.last(), shape_.last()}; }
  [[nodiscard]] matrix<const T> as_matrix() const { return {data_, size_ / shape_.last(), shape_.last(), shape_.last()}; }

 private:
  void swap(tensor& other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(size_, other.size_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
  }

  extents shape_;
  std::size_t size_ = 0;
  std::pmr::memory_resource* memory_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace nano_gpt
