#pragma once

#include <memprof/backend/no_dispatch.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

#if __has_include(<memory_resource>)
#include <memory_resource>
#endif

#if MEMPROF_ENABLED
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/phantom_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/memory_name.hpp>
#endif

namespace memprof::inline MEMPROF_ABI {

#if !__has_include(<memory_resource>)

namespace detail {
template <class...>
inline constexpr bool has_polymorphic_memory_resources = false;
}

/// A placeholder for a standard library without polymorphic memory resources: using it fails to compile with an explanation.
class memory_resource {
 public:
  template <class... Arguments>
  explicit memory_resource(Arguments&&...) {
    static_assert(detail::has_polymorphic_memory_resources<Arguments...>,
                  "memprof::memory_resource needs <memory_resource>: use libc++ 16 or newer, libstdc++, or memprof::allocator");
  }
};

#elif MEMPROF_ENABLED
inline namespace enabled {

/// A `std::pmr::memory_resource` that records allocations and forwards them to another resource.
///
/// During a capture with `run_mode::no_dispatch`, it hands out reserved addresses instead of memory: see `dispatching`.
///
/// Thread-safe if the upstream is. Bytes are as requested, not as rounded up by the upstream. A failed allocation is not
/// recorded.
class memory_resource : public std::pmr::memory_resource {
 public:
  /// `upstream` must outlive the resource. `memory` names the memory that holds the space (`memory_space`); if it is empty, that
  /// is the host's memory, or a device's for names such as "cuda:0".
  explicit memory_resource(std::string_view space = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource(),
                           std::string_view memory = {})
      : space_(space, !memory.empty() || detail::is_device_name(space) ? memory : host_memory_name), upstream_(upstream) {}

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const address = dispatching() ? allocate_upstream(bytes, alignment) : reserve(bytes, alignment);
    detail::record_allocation(space_.id(), address, bytes);
    return address;
  }

  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    detail::record_deallocation(space_.id(), address, bytes);
    if (detail::release_phantom(address, bytes, alignment)) return;
    const detail::recording_suppressor nested;
    upstream_->deallocate(address, bytes, alignment);
  }

  // Compares identity, because two resources may count in different spaces; that needs no RTTI either.
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[nodiscard]] void* allocate_upstream(std::size_t bytes, std::size_t alignment) {
    const detail::recording_suppressor nested;
    return upstream_->allocate(bytes, alignment);
  }

  [[nodiscard, gnu::cold, gnu::noinline]] void* reserve(std::size_t bytes, std::size_t alignment) const {
    void* const address = detail::take_phantom(bytes, alignment);
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

/// Forwards everything to its upstream.
class memory_resource : public std::pmr::memory_resource {
 public:
  explicit memory_resource(std::string_view = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource(),
                           std::string_view = {})
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

}  // namespace memprof::inline MEMPROF_ABI
