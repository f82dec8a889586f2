#pragma once

#include <memprof/backend/no_dispatch.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#endif

namespace memprof {

#if MEMPROF_ENABLED
inline namespace enabled {

/// A `std::pmr::memory_resource` that records what passes through it and takes the memory from another.
///
/// During a capture with `run_mode::no_dispatch` it records and hands out reserved addresses: see `dispatching`.
///
/// Thread-safe if the upstream is. Bytes are those asked for, not what the upstream rounds them to. An allocation that the
/// upstream refuses is not recorded.
class memory_resource : public std::pmr::memory_resource {
 public:
  /// Throws `memprof::error` if the process has too many memory spaces. `upstream` must outlive the resource.
  explicit memory_resource(std::string_view space = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource())
      : space_(space), upstream_(upstream) {}

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const address = dispatching() ? allocate_upstream(bytes, alignment) : reserve(bytes, alignment);
    detail::record_allocation(space_.id(), address, bytes);
    return address;
  }

  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    detail::record_deallocation(space_.id(), address, bytes);
    if (detail::give_back_reserved(address, bytes, alignment)) return;
    const detail::nested_allocation nested;
    upstream_->deallocate(address, bytes, alignment);
  }

  // Identity, which needs no run-time types: two resources may count in different spaces.
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[nodiscard]] void* allocate_upstream(std::size_t bytes, std::size_t alignment) {
    const detail::nested_allocation nested;
    return upstream_->allocate(bytes, alignment);
  }

  [[nodiscard, gnu::cold, gnu::noinline]] void* reserve(std::size_t bytes, std::size_t alignment) const {
    void* const address = detail::take_reserved(bytes, alignment);
    if (address == nullptr) {
      detail::raise("memory_resource: no reserved addresses are left for " + std::to_string(bytes) +
                    " bytes; a NO_DISPATCH capture can have up to 64 TiB live, or what the limit on address space allows");
    }
    return address;
  }

  memory_space space_;
  std::pmr::memory_resource* upstream_;
};

}  // namespace enabled

#else
inline namespace disabled {

/// Passes everything on to its upstream.
class memory_resource : public std::pmr::memory_resource {
 public:
  explicit memory_resource(std::string_view = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource())
      : upstream_(upstream) {}

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return upstream_->allocate(bytes, alignment); }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(address, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
};

}  // namespace disabled
#endif

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
/// The same, recorded in the space `cpu`.
struct tracked_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = allocate_hidden(bytes, alignment);
    record_allocation(cpu_space, address, bytes);
    return address;
  }
  static void deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    record_deallocation(cpu_space, address, bytes);
    const nested_allocation nested;
    plain_heap::deallocate(address, bytes, alignment);
  }

 private:
  [[nodiscard]] static void* allocate_hidden(std::size_t bytes, std::size_t alignment) {
    const nested_allocation nested;
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
  heap_allocator(const heap_allocator<Other, Heap>&) noexcept {}  // implicit, as the allocator requirements ask

  /// Throws `std::bad_array_new_length` if `count` objects have no size, `std::bad_alloc` if there is no memory.
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

/// A standard allocator whose blocks are recorded in the space `cpu`: `std::vector<float, memprof::allocator<float>>`. Takes
/// its memory from the global `operator new`; all of them are equal.
#if MEMPROF_ENABLED
template <class T>
using allocator = detail::heap_allocator<T, detail::tracked_heap>;
#else
template <class T>
using allocator = detail::heap_allocator<T, detail::plain_heap>;
#endif

}  // namespace memprof
