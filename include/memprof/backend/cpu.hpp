#pragma once

#include <memprof/backend/memory_resource.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#if MEMPROF_ENABLED
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#endif

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// The global `operator new` and `operator delete` for any alignment.
struct plain_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes, std::size_t alignment) {
    return alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? ::operator new (bytes, std::align_val_t{alignment})
                                                        : ::operator new(bytes);
  }
  static void deallocate(void* address, std::size_t, std::size_t alignment) noexcept {
    if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete (address, std::align_val_t{alignment});
    } else {
      ::operator delete(address);
    }
  }
};

#if MEMPROF_ENABLED
/// As `plain_heap`, recorded in the space `cpu`.
struct tracked_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = allocate_hidden(bytes, alignment);
    record_allocation(cpu_space, address, bytes);
    return address;
  }
  static void deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    record_deallocation(cpu_space, address, bytes);
    const recording_suppressor nested;
    plain_heap::deallocate(address, bytes, alignment);
  }

 private:
  [[nodiscard]] static void* allocate_hidden(std::size_t bytes, std::size_t alignment) {
    const recording_suppressor nested;
    return plain_heap::allocate(bytes, alignment);
  }
};
#endif

/// A stateless standard allocator over a heap.
template <class T, class Heap>
class heap_allocator {
 public:
  using value_type = T;

  heap_allocator() noexcept = default;
  template <class Other>
  heap_allocator(const heap_allocator<Other, Heap>&) noexcept {}  // implicit, as the allocator requirements demand

  /// Throws `std::bad_array_new_length` if the size of `count` objects overflows, `std::bad_alloc` if out of memory.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) refuse_length();
    return static_cast<T*>(Heap::allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* address, std::size_t count) noexcept { Heap::deallocate(address, count * sizeof(T), alignof(T)); }

  template <class Other>
  bool operator==(const heap_allocator<Other, Heap>&) const noexcept {
    return true;
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_length() {
#if defined(__cpp_exceptions)
    throw std::bad_array_new_length{};
#else
    std::abort();
#endif
  }
};

}  // namespace detail

/// A standard allocator whose blocks are recorded in the space `cpu`: `std::vector<float, memprof::allocator<float>>`. It takes
/// memory from the global `operator new`; all instances are equal.
#if MEMPROF_ENABLED
template <class T>
using allocator = detail::heap_allocator<T, detail::tracked_heap>;
#else
template <class T>
using allocator = detail::heap_allocator<T, detail::plain_heap>;
#endif

}  // namespace memprof::inline MEMPROF_ABI
