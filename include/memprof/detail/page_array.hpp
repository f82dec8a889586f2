#pragma once

#include <memprof/detail/pages.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace memprof::detail {

/// A growing array of trivial elements in pages of its own: what `std::vector` is to users, for memory that must stay
/// invisible to the hooks. New elements are zero. Every operation that grows reports failure instead of throwing.
template <class T>
class page_array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  page_array() = default;
  page_array(page_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  page_array& operator=(page_array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~page_array() { unmap_pages(data_, bytes()); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data_[index]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& back() noexcept { return data_[size_ - 1]; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_ * sizeof(T); }

  /// Makes room for `count` elements; false if the system has none.
  [[nodiscard]] bool reserve(std::size_t count) noexcept {
    if (count <= capacity_) return true;
    std::size_t capacity = capacity_ == 0 ? (4096 + sizeof(T) - 1) / sizeof(T) : capacity_;
    while (capacity < count) capacity *= 2;
    T* const data = static_cast<T*>(map_pages(capacity * sizeof(T)));
    if (data == nullptr) return false;
    if (size_ != 0) std::memcpy(static_cast<void*>(data), data_, size_ * sizeof(T));
    unmap_pages(data_, bytes());
    data_ = data;
    capacity_ = capacity;
    return true;
  }

  /// Sets the size; new elements are zero. False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool resize(std::size_t count) noexcept {
    if (!reserve(count)) return false;
    if (count > size_) std::memset(static_cast<void*>(data_ + size_), 0, (count - size_) * sizeof(T));
    size_ = count;
    return true;
  }

  [[nodiscard]] bool push_back(const T& value) noexcept {
    if (size_ == capacity_) [[unlikely]] {
      const T copy = value;  // `value` may lie in the pages that growing gives back
      if (!reserve(size_ + 1)) return false;
      data_[size_++] = copy;
      return true;
    }
    data_[size_++] = value;
    return true;
  }

  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace memprof::detail
