#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The part of a `vector` that does not depend on the type of its elements, so that it is compiled only once.
class vector_storage {
 public:
  [[nodiscard, gnu::always_inline]] std::size_t size() const noexcept { return size_; }
  [[nodiscard, gnu::always_inline]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard, gnu::always_inline]] std::size_t capacity() const noexcept { return capacity_; }

 protected:
  /// Moves elements into other memory, and ends those that it moved from.
  using relocation = void (*)(void* to, void* from, std::size_t count) noexcept;

  vector_storage() = default;
  [[gnu::always_inline]] vector_storage(vector_storage&& other) noexcept
      : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  ~vector_storage() = default;

  void swap(vector_storage& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  /// Gives it room for `count` elements. Elements are moved as bytes if `relocate` is null.
  [[gnu::cold, gnu::noinline]] void set_capacity(std::size_t count, std::size_t element_bytes, relocation relocate) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = SIZE_MAX;  // for which `operator new` throws
    void* const data = ::operator new(bytes);
    if (relocate != nullptr) {
      relocate(data, data_, size_);
    } else if (size_ != 0) {
      std::memcpy(data, data_, size_ * element_bytes);
    }
    free_elements(element_bytes);
    data_ = data;
    capacity_ = count;
  }

  /// Makes room for `count` more elements, and for at least as many as there is now, so that adding elements one by one takes
  /// linear time.
  [[gnu::cold, gnu::noinline]] void make_room(std::size_t count, std::size_t element_bytes, relocation relocate) {
    if (count <= capacity_ - size_) return;
    std::size_t least = 0;
    if (__builtin_add_overflow(size_, count, &least)) least = SIZE_MAX;
    const std::size_t doubled = capacity_ <= SIZE_MAX / 2 ? 2 * capacity_ : SIZE_MAX;
    set_capacity(least < doubled ? doubled : least, element_bytes, relocate);
  }

  void check_index(std::size_t index) const {
    if (index < size_) return;
#if defined(__cpp_exceptions)
    throw std::out_of_range("memprof::vector::at: the index is not below the size");
#else
    std::abort();
#endif
  }

  void free_elements([[maybe_unused]] std::size_t element_bytes) noexcept {
#if defined(__cpp_sized_deallocation)
    if (data_ != nullptr) ::operator delete(data_, capacity_* element_bytes);
#else
    ::operator delete(data_);
#endif
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
