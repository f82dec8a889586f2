#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector_storage.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

/// A growing array in one allocation from `operator new`, with the interface of `std::vector` as far as profiles need it.
///
/// It exists because of what `std::vector` costs programs that use memprof header-only: for each of some 60 types of elements,
/// a unit that prints a profile compiled 80 functions. Here iterators are pointers, and what moves bytes is compiled once. To
/// get a standard vector: `std::vector<T>(rows.begin(), rows.end())`.
///
/// Constructors that run out of memory, and whatever makes it grow, throw `std::bad_alloc`; a size beyond what fits into memory
/// is no exception. `push_back` and `emplace_back` then change nothing. Moving and destroying elements must not throw.
template <class T>
class vector : public detail::vector_storage {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;

  vector() = default;
  /// `count` elements with their default values.
  explicit vector(std::size_t count) : vector() { resize(count); }
  vector(std::size_t count, const T& value) : vector() { resize(count, value); }
  [[gnu::cold, gnu::noinline]] vector(std::initializer_list<T> values) : vector() { append(values.begin(), values.end()); }
  template <std::forward_iterator Iterator>
  vector(Iterator first, Iterator last) : vector() {
    append(first, last);
  }
  [[gnu::cold, gnu::noinline]] vector(const vector& other) : vector() { append(other.begin(), other.end()); }
  [[gnu::always_inline]] vector(vector&& other) noexcept : vector_storage(std::move(other)) {}
  vector& operator=(const vector& other) {  // NOLINT(cert-oop54-cpp): swaps with a copy
    vector copy(other);
    swap(copy);
    return *this;
  }
  [[gnu::always_inline]] vector& operator=(vector&& other) noexcept {
    vector taken(std::move(other));
    swap(taken);
    return *this;
  }
  [[gnu::always_inline]] ~vector() {
    if constexpr (std::is_trivially_destructible_v<T>) {
      free_elements(sizeof(T));
    } else if (data_ != nullptr) {
      release();
    }
  }
  void swap(vector& other) noexcept { vector_storage::swap(other); }

  [[nodiscard, gnu::always_inline]] T* data() noexcept { return static_cast<T*>(data_); }
  [[nodiscard, gnu::always_inline]] const T* data() const noexcept { return static_cast<const T*>(data_); }
  [[nodiscard, gnu::always_inline]] T* begin() noexcept { return static_cast<T*>(data_); }
  [[nodiscard, gnu::always_inline]] const T* begin() const noexcept { return static_cast<const T*>(data_); }
  [[nodiscard, gnu::always_inline]] const T* cbegin() const noexcept { return static_cast<const T*>(data_); }
  [[nodiscard, gnu::always_inline]] T* end() noexcept { return static_cast<T*>(data_) + size_; }
  [[nodiscard, gnu::always_inline]] const T* end() const noexcept { return static_cast<const T*>(data_) + size_; }
  [[nodiscard, gnu::always_inline]] const T* cend() const noexcept { return static_cast<const T*>(data_) + size_; }
  [[nodiscard, gnu::always_inline]] T& operator[](std::size_t index) noexcept { return static_cast<T*>(data_)[index]; }
  [[nodiscard, gnu::always_inline]] const T& operator[](std::size_t index) const noexcept {
    return static_cast<const T*>(data_)[index];
  }
  /// Throws `std::out_of_range` if there is none.
  [[nodiscard]] T& at(std::size_t index) {
    check_index(index);
    return (*this)[index];
  }
  [[nodiscard]] const T& at(std::size_t index) const {
    check_index(index);
    return (*this)[index];
  }
  [[nodiscard, gnu::always_inline]] T& front() noexcept { return *static_cast<T*>(data_); }
  [[nodiscard, gnu::always_inline]] const T& front() const noexcept { return *static_cast<const T*>(data_); }
  [[nodiscard, gnu::always_inline]] T& back() noexcept { return static_cast<T*>(data_)[size_ - 1]; }
  [[nodiscard, gnu::always_inline]] const T& back() const noexcept { return static_cast<const T*>(data_)[size_ - 1]; }

  void reserve(std::size_t count) {
    if (count > capacity_) set_capacity(count, sizeof(T), relocator());
  }

  /// New elements have their default values.
  void resize(std::size_t count) {
    truncate(count);
    make_room(count - size_, sizeof(T), relocator());
    for (; size_ < count; ++size_) ::new (static_cast<void*>(end())) T();
  }
  /// New elements are copies of `value`, which is not in this vector.
  void resize(std::size_t count, const T& value) {
    truncate(count);
    make_room(count - size_, sizeof(T), relocator());
    while (size_ < count) add(value);
  }
  void clear() noexcept { truncate(0); }
  template <std::forward_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    *this = vector(first, last);
  }

  /// The value may lie in this vector, here and below.
  [[gnu::always_inline]] void push_back(const T& value) {
    T copy(value);
    push(copy);
  }
  [[gnu::always_inline]] void push_back(T&& value) { push(value); }
  template <class... Arguments>
  [[gnu::always_inline]] T& emplace_back(Arguments&&... arguments) {
    T made(std::forward<Arguments>(arguments)...);
    push(made);
    return back();
  }
  void pop_back() noexcept { truncate(size_ - 1); }

  /// Puts the value before `position`.
  T* insert(const T* position, T value) {
    const std::size_t index = static_cast<std::size_t>(position - begin());
    push(value);
    for (std::size_t at = size_ - 1; at > index; --at) std::swap((*this)[at], (*this)[at - 1]);
    return begin() + index;
  }
  /// Copies of the elements from `first` to `last`, which are not in this vector, go behind the last.
  template <std::forward_iterator Iterator>
  void append(Iterator first, Iterator last) {
    make_room(static_cast<std::size_t>(std::distance(first, last)), sizeof(T), relocator());
    for (; first != last; ++first) add(*first);
  }
  T* erase(const T* first, const T* last) noexcept {
    T* const kept = begin() + (first - begin());
    if (first == last) return kept;
    T* target = kept;
    for (T* source = begin() + (last - begin()); source != end(); ++source, ++target) *target = std::move(*source);
    truncate(static_cast<std::size_t>(target - begin()));
    return kept;
  }
  T* erase(const T* position) noexcept { return erase(position, position + 1); }

  /// Erases the elements that it applies to, and returns their number.
  template <class Predicate>
  friend std::size_t erase_if(vector& values, Predicate applies) {
    T* kept = values.begin();
    for (T& value : values) {
      if (applies(std::as_const(value))) continue;
      if (kept != &value) *kept = std::move(value);
      ++kept;
    }
    const auto erased = static_cast<std::size_t>(values.end() - kept);
    values.erase(kept, values.end());
    return erased;
  }

  friend bool operator==(const vector& left, const vector& right) {
    if (left.size() != right.size()) return false;
    for (std::size_t index = 0; index < left.size(); ++index) {
      if (!(left[index] == right[index])) return false;
    }
    return true;
  }
  /// With the elements of another container, such as `std::vector`.
  template <class Other>
  requires std::same_as<typename Other::value_type, T> &&(!std::same_as<Other, vector>)friend bool operator==(
      const vector& left, const Other& right) {
    if (left.size() != right.size()) return false;
    auto other = right.begin();
    for (const T& value : left) {
      if (!(value == *other++)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] static constexpr relocation relocator() noexcept {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);
    if constexpr (std::is_trivially_copyable_v<T>) {
      return nullptr;
    } else {
      return relocate;
    }
  }
  [[gnu::cold]] static void relocate(void* to, void* from, std::size_t count) noexcept {
    T* target = static_cast<T*>(to);
    for (T* source = static_cast<T*>(from); count != 0; --count, ++source, ++target) {
      ::new (static_cast<void*>(target)) T(std::move(*source));
      source->~T();
    }
  }

  /// Adds an element that takes over `value`.
  [[gnu::cold, gnu::noinline]] void push(T& value) {
    T* source = &value;
    if (size_ == capacity_) {
      const std::size_t index = static_cast<std::size_t>(source - begin());
      const bool is_inside = source >= begin() && source < end();
      make_room(1, sizeof(T), relocator());
      if (is_inside) source = begin() + index;
    }
    add(std::move(*source));
  }

  /// Where there is room.
  template <class Value>
  void add(Value&& value) {
    ::new (static_cast<void*>(end())) T(std::forward<Value>(value));
    ++size_;
  }

  void truncate(std::size_t count) noexcept {
    if constexpr (std::is_trivially_destructible_v<T>) {
      size_ = count < size_ ? count : size_;
    } else {
      while (size_ > count) (*this)[--size_].~T();
    }
  }

  [[gnu::cold, gnu::noinline]] void release() noexcept {
    truncate(0);
    free_elements(sizeof(T));
  }
};

}  // namespace memprof::inline MEMPROF_ABI
