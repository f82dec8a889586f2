#pragma once

/// @file
/// `memprof::cuda::memory_resource_adaptor`: records what a memory resource of `cuda::mr` (CCCL, RMM) hands out.
///
/// Needs CCCL 3.0 or later, from a CUDA toolkit or by itself, and CUDA's runtime headers. With CCCL 3.0, whose resources are
/// experimental, define `LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE`.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#if MEMPROF_ENABLED
#include <memprof/backend/cuda/places.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#endif

namespace memprof::inline MEMPROF_ABI::cuda {

namespace detail {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Records blocks in one space.
class resource_events {
 public:
  explicit resource_events(std::string_view space) noexcept : space_(space) {}

  void allocated(const void* address, std::size_t bytes) const noexcept { extend::event_sink{}.allocate(space_, address, bytes); }
  void deallocates(const void* address, std::size_t bytes) const noexcept {
    extend::event_sink{}.deallocate(space_, address, bytes);
  }
  void allocated(const void* address, std::size_t bytes, ::cuda::stream_ref stream) const noexcept {
    extend::event_sink{}.allocate_on_stream(space_, address, bytes, name_of(stream));
  }
  void deallocates(const void* address, std::size_t bytes, ::cuda::stream_ref stream) const noexcept {
    extend::event_sink{}.deallocate_on_stream(space_, address, name_of(stream), bytes);
  }

  /// Hides what the upstream takes from the hooks of the heap.
  using upstream_guard = memprof::detail::recording_suppressor;

 private:
  /// Streams are few: most calls find theirs in the thread's cache.
  [[nodiscard]] static extend::stream_and_pool name_of(::cuda::stream_ref stream) noexcept {
    static thread_local memprof::detail::cuda::stream_names names;
    return names.find(reinterpret_cast<std::uintptr_t>(stream.get()), 0);
  }

  memory_space space_;
};

}  // namespace enabled
#else
inline namespace disabled {

class resource_events {
 public:
  explicit resource_events(std::string_view) noexcept {}
  void allocated(const void*, std::size_t) const noexcept {}
  void deallocates(const void*, std::size_t) const noexcept {}
  void allocated(const void*, std::size_t, ::cuda::stream_ref) const noexcept {}
  void deallocates(const void*, std::size_t, ::cuda::stream_ref) const noexcept {}
  struct upstream_guard {
    ~upstream_guard() {}
  };
};

}  // namespace disabled
#endif

}  // namespace detail

/// A resource that records what `Upstream` hands out in a memory space, and forwards all else to it, properties included. It has
/// the functions of its upstream: those of CCCL 3.0 (`allocate`, `allocate_async`) or of 3.1 and later (`allocate_sync`,
/// `allocate` on a stream). Blocks on streams count by stream (`space_profile::streams`), and are over when they are freed.
///
/// Put it over a pool, to see the pool's blocks; `cuda_backend` sees what the pool takes from CUDA. In one capture, give the two
/// different spaces, or they count the same memory. Thread-safe if the upstream is. A failed allocation is not recorded.
///
/// @code
/// memprof::cuda::memory_resource_adaptor pool{cuda::mr::async_memory_resource{cuda::device_ref{0}}, "cuda:0"};
/// rmm::mr::set_current_device_resource(pool);
/// @endcode
template <class Upstream>
class memory_resource_adaptor : public ::cuda::forward_property<memory_resource_adaptor<Upstream>, Upstream> {
 public:
  explicit memory_resource_adaptor(Upstream upstream, std::string_view space = "cuda:0")
      : upstream_(std::move(upstream)), events_(space) {}

  [[nodiscard]] Upstream& upstream_resource() const noexcept { return upstream_; }

  // --- CCCL 3.1 and later ---------------------------------------------------------------------------------------------

  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment) requires
      requires(Upstream& up) {
    up.allocate_sync(bytes, alignment);
  }
  {
    void* const address = quietly([&] { return upstream_.allocate_sync(bytes, alignment); });
    events_.allocated(address, bytes);
    return address;
  }
  void deallocate_sync(void* address, std::size_t bytes, std::size_t alignment = default_alignment) noexcept requires
      requires(Upstream& up) {
    up.deallocate_sync(address, bytes, alignment);
  }
  {
    events_.deallocates(address, bytes);
    quietly([&] { upstream_.deallocate_sync(address, bytes, alignment); });
  }
  [[nodiscard]] void* allocate(::cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = default_alignment) requires
      requires(Upstream& up) {
    up.allocate(stream, bytes, alignment);
  }
  {
    void* const address = quietly([&] { return upstream_.allocate(stream, bytes, alignment); });
    events_.allocated(address, bytes, stream);
    return address;
  }
  void deallocate(::cuda::stream_ref stream, void* address, std::size_t bytes,
                  std::size_t alignment = default_alignment) noexcept requires requires(Upstream& up) {
    up.deallocate(stream, address, bytes, alignment);
  }
  {
    events_.deallocates(address, bytes, stream);
    quietly([&] { upstream_.deallocate(stream, address, bytes, alignment); });
  }

  // --- CCCL 3.0 -------------------------------------------------------------------------------------------------------

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) requires requires(Upstream& up) {
    up.allocate(bytes, alignment);
  }
  {
    void* const address = quietly([&] { return upstream_.allocate(bytes, alignment); });
    events_.allocated(address, bytes);
    return address;
  }
  void deallocate(void* address, std::size_t bytes, std::size_t alignment = default_alignment) noexcept requires
      requires(Upstream& up) {
    up.deallocate(address, bytes, alignment);
  }
  {
    events_.deallocates(address, bytes);
    quietly([&] { upstream_.deallocate(address, bytes, alignment); });
  }
  [[nodiscard]] void* allocate_async(std::size_t bytes, std::size_t alignment, ::cuda::stream_ref stream) requires
      requires(Upstream& up) {
    up.allocate_async(bytes, alignment, stream);
  }
  {
    void* const address = quietly([&] { return upstream_.allocate_async(bytes, alignment, stream); });
    events_.allocated(address, bytes, stream);
    return address;
  }
  void deallocate_async(void* address, std::size_t bytes, std::size_t alignment, ::cuda::stream_ref stream) noexcept requires
      requires(Upstream& up) {
    up.deallocate_async(address, bytes, alignment, stream);
  }
  {
    events_.deallocates(address, bytes, stream);
    quietly([&] { upstream_.deallocate_async(address, bytes, alignment, stream); });
  }

  /// Memory of one can be freed by the other. The spaces do not matter.
  friend bool operator==(const memory_resource_adaptor& left, const memory_resource_adaptor& right) {
    return left.upstream_ == right.upstream_;
  }

 private:
  static constexpr std::size_t default_alignment = 256;  // of CUDA's own allocations

  template <class Work>
  static decltype(auto) quietly(Work&& work) {
    const typename detail::resource_events::upstream_guard hidden;
    return work();
  }

  mutable Upstream upstream_;  // not const, although references to a resource are
  detail::resource_events events_;
};

}  // namespace memprof::inline MEMPROF_ABI::cuda
