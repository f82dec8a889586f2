#pragma once

#include <nano_gpt/extents.hpp>
#include <nano_gpt/tensor_memory.hpp>

#include <memprof/backend/no_dispatch.hpp>
#include <memprof/record.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace nano_gpt {

/// A non-owning view of a matrix. Strides count elements, so a head of a [tokens, heads * width] array or a transposed matrix is
/// a view, too.
template <class T>
struct matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;

  [[nodiscard]] T* row(std::size_t index) const { return data + index * row_stride; }
  [[nodiscard]] T& at(std::size_t row, std::size_t column) const { return data[row * row_stride + column * column_stride]; }
  [[nodiscard]] matrix part(std::size_t row, std::size_t row_count, std::size_t column, std::size_t column_count) const {
    return {data + row * row_stride + column * column_stride, row_count, column_count, row_stride, column_stride};
  }
  [[nodiscard]] matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }

  // NOLINTNEXTLINE(google-explicit-constructor): a view of mutable elements is a view of const ones, as with std::span
  operator matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns, row_stride, column_stride}; }
};

/// Whether `tensor::free` gives memory back. If not, only the tensor's next contents or its end do, as in a program that does not
/// think of it.
inline bool frees_early = true;

/// A dense row-major array from a memory resource; move-only. Elements are uninitialised; use `zeros` for accumulation.
template <class T>
class tensor {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t alignment = 64;

  tensor() = default;
  tensor(const extents& shape, const tensor_memory& memory)
      : shape_{shape},
        size_{shape.count(sizeof(T))},
        bytes_{memory.bytes<T>(shape)},
        memory_{memory.resource()},
        data_{static_cast<T*>(memory_->allocate(bytes_, alignment))} {}

  tensor(tensor&& other) noexcept { swap(other); }
  tensor& operator=(tensor&& other) noexcept {
    tensor{std::move(other)}.swap(*this);
    return *this;
  }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  ~tensor() {
    if (data_ != nullptr) memory_->deallocate(data_, bytes_, alignment);
  }

  [[nodiscard]] static tensor zeros(const extents& shape, const tensor_memory& memory) {
    tensor result{shape, memory};
    result.fill(T(0));
    return result;
  }

  void fill(T constant) {
    if (memprof::dispatching()) std::ranges::fill(elements(), constant);
  }

  /// Gives the memory back, as soon as nothing needs it.
  void free() noexcept {
    if (frees_early) tensor{}.swap(*this);
  }

  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const extents& shape() const { return shape_; }
  // All access to the elements is through these, so that a trace can have the uses of the tensor.
  [[nodiscard]] T* data() { return used(); }
  [[nodiscard]] const T* data() const { return used(); }
  [[nodiscard]] std::span<T> elements() { return {used(), size_}; }
  [[nodiscard]] std::span<const T> elements() const { return {used(), size_}; }

  /// A matrix with all dimensions but the last as rows.
  [[nodiscard]] matrix<T> as_matrix() { return {used(), size_ / shape_.last(), shape_.last(), shape_.last()}; }
  [[nodiscard]] matrix<const T> as_matrix() const { return {used(), size_ / shape_.last(), shape_.last(), shape_.last()}; }

 private:
  [[nodiscard]] T* used() const {
    memprof::mark_use(data_);
    return data_;
  }
  void swap(tensor& other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
  }

  extents shape_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;  ///< at least those of the elements; a device may pad
  std::pmr::memory_resource* memory_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace nano_gpt
