#pragma once

#include <memprof/detail/pages.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI::detail {

/// The part of a `page_array` that does not depend on the element type, so that it is compiled only once.
class page_storage {
 public:
  page_storage() = default;
  page_storage(page_storage&& other) noexcept { swap(other); }
  page_storage& operator=(page_storage&& other) noexcept {
    swap(other);
    return *this;
  }
  ~page_storage() { unmap_pages(data_, capacity_bytes_); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_bytes_; }

 protected:
  /// Makes room for `count` elements of `element_bytes`; false if the system has no memory.
  [[nodiscard]] bool reserve_elements(std::size_t count, std::size_t element_bytes) noexcept {
    if (count > std::numeric_limits<std::size_t>::max() / 2 / element_bytes) return false;
    if (count * element_bytes <= capacity_bytes_) return true;
    std::size_t wanted = capacity_bytes_ == 0 ? (4096 + element_bytes - 1) / element_bytes * element_bytes : capacity_bytes_;
    while (wanted < count * element_bytes) wanted *= 2;
    void* const data = map_pages(wanted);
    if (data == nullptr) return false;
    if (size_ != 0) std::memcpy(data, data_, size_ * element_bytes);
    unmap_pages(data_, capacity_bytes_);
    data_ = data;
    capacity_bytes_ = wanted;
    return true;
  }

  /// Sets the size; new elements are zero. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool resize_elements(std::size_t count, std::size_t element_bytes) noexcept {
    if (!reserve_elements(count, element_bytes)) return false;
    if (count > size_) {
      std::memset(static_cast<char*>(data_) + size_ * element_bytes, 0, (count - size_) * element_bytes);
    }
    size_ = count;
    return true;
  }

  void swap(page_storage& other) noexcept {
    void* const data = data_;
    const std::size_t size = size_;
    const std::size_t capacity_bytes = capacity_bytes_;
    data_ = other.data_;
    size_ = other.size_;
    capacity_bytes_ = other.capacity_bytes_;
    other.data_ = data;
    other.size_ = size;
    other.capacity_bytes_ = capacity_bytes;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_bytes_ = 0;
};

/// A growing array of trivial elements in pages of its own, for memory that must stay invisible to the hooks. New elements are
/// zero. Operations that grow it report failure instead of throwing.
template <class T>
class page_array : public page_storage {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] T* data() noexcept { return static_cast<T*>(data_); }
  [[nodiscard]] const T* data() const noexcept { return static_cast<const T*>(data_); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data()[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }
  [[nodiscard]] T& back() noexcept { return data()[size_ - 1]; }

  /// Makes room for `count` elements; false if the system has no memory.
  [[nodiscard]] bool reserve(std::size_t count) noexcept { return reserve_elements(count, sizeof(T)); }

  /// Sets the size; new elements are zero. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool resize(std::size_t count) noexcept { return resize_elements(count, sizeof(T)); }

  [[nodiscard]] bool push_back(const T& value) noexcept {
    const T copy = value;  // `value` may lie in pages that growing unmaps
    if (!reserve(size_ + 1)) return false;
    data()[size_++] = copy;
    return true;
  }

  void pop_back() noexcept { --size_; }
  void erase(std::size_t index) noexcept { std::memmove(data() + index, data() + index + 1, (--size_ - index) * sizeof(T)); }
  void clear() noexcept { size_ = 0; }
  /// Drops all elements after the first `count`.
  void truncate(std::size_t count) noexcept { size_ = count < size_ ? count : size_; }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
