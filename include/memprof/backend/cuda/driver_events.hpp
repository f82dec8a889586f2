#pragma once

#include <memprof/backend/cuda/array_bytes.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/pool_table.hpp>
#include <memprof/backend/cuda/tracker.hpp>
#include <memprof/config.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// CUPTI's callbacks as calls of the tracker.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// What CUPTI says of a context: `cuptiGetDeviceId` and `cuptiGetContextId`; and who calls.
struct context_queries {
  int (*device)(void* context, std::uint32_t* device) = nullptr;
  int (*number)(void* context, std::uint32_t* number) = nullptr;
  label (*asking_library)(std::size_t bytes) = nullptr;  ///< on this thread; 0: none
};

/// Reads the arguments of the driver's calls. Every call may be made on any thread; none calls CUDA.
class driver_events {
 public:
  /// As where a capture begins.
  void clear(const context_queries& queries) noexcept {
    queries_ = queries;
    for (auto& known : devices_) known.store(0, std::memory_order_relaxed);
    pools_.clear();
    blocks_.clear();
  }

  void operator()(domain where, std::uint32_t id, const void* data) noexcept {
    switch (where) {
      case domain::driver: return on_call(driver_call{id}, read<callback_data>(data));
      case domain::resource: {
        std::uint32_t context = 0;
        if (id == context_destroy_starting && number_of(read<resource_data>(data).context, context))
          blocks_.context_ends(context);
        return;
      }
      case domain::synchronize: return on_synchronize(id, read<resource_data>(data));
    }
  }

  [[nodiscard]] pool_table& pools() noexcept { return pools_; }
  [[nodiscard]] tracker& blocks() noexcept { return blocks_; }

 private:
  /// A copy: the types of CUDA's headers are others.
  template <class T>
  [[nodiscard]] static T read(const void* source) noexcept {
    T copy;
    std::memcpy(&copy, source, sizeof copy);
    return copy;
  }
  [[nodiscard]] static number number_at(const void* result) noexcept { return result == nullptr ? 0 : read<number>(result); }

  [[nodiscard]] bool number_of(void* context, std::uint32_t& found) const noexcept {
    return context != nullptr && queries_.number != nullptr && queries_.number(context, &found) == success;
  }

  [[nodiscard]] label asking_library(std::size_t bytes) const noexcept {
    return queries_.asking_library == nullptr ? label{0} : queries_.asking_library(bytes);
  }

  /// The device of the thread's current context, asked once for each context.
  [[nodiscard]] std::uint32_t device_of(const callback_data& call) noexcept {
    if (call.context == nullptr || queries_.device == nullptr) return 0;
    std::atomic<std::uint64_t>& known = devices_[call.context_number % devices_.size()];
    const std::uint64_t word = known.load(std::memory_order_relaxed);  // a whole answer or none
    if (word >> 32 == call.context_number + std::uint64_t{1}) return static_cast<std::uint32_t>(word);
    std::uint32_t device = 0;
    if (queries_.device(call.context, &device) != success) return 0;
    known.store((call.context_number + std::uint64_t{1}) << 32 | device, std::memory_order_relaxed);
    return device;
  }

  [[nodiscard]] place here(const callback_data& call, memory_kind kind = memory_kind::device) noexcept {
    return {kind, device_of(call), call.context_number, false, 0, 0, 0};
  }

  [[nodiscard]] static number stream_of(number stream, bool is_per_thread) noexcept {
    if (stream == 0) return is_per_thread ? per_thread_stream : legacy_stream;
    return stream;
  }

  [[nodiscard]] place on_stream(const callback_data& call, number stream, number pool, bool is_per_thread) noexcept {
    place at = here(call);
    const known_pool of = pools_.find(pool, {pool, at.kind, at.device});
    return {of.kind, of.device, at.context, true, stream_of(stream, is_per_thread), pool, 0};
  }

  void on_call(driver_call id, const callback_data& call) noexcept {
    if (call.site == call_begins) return on_begin(id, call);
    on_end(id, call, call.result == nullptr ? success : read<int>(call.result));
  }

  /// A pool in the bits that CUPTI keeps for a call; never 0.
  [[nodiscard]] static std::uint64_t packed(const known_pool& pool) noexcept {
    return std::uint64_t{1} << 63 | std::uint64_t{static_cast<std::uint8_t>(pool.kind)} << 32 | pool.device;
  }
  [[nodiscard]] static known_pool unpacked(number handle, std::uint64_t bits) noexcept {
    return {handle, static_cast<memory_kind>(bits >> 32 & 0xFFU), static_cast<std::uint32_t>(bits)};
  }

  /// Frees, which take effect before the call.
  void on_begin(driver_call id, const callback_data& call) noexcept {
    ticket taken = 0;
    switch (id) {
      case driver_call::free:
      case driver_call::free_host:
      case driver_call::array_destroy:
      case driver_call::mipmapped_array_destroy:
        taken = blocks_.free_begins(here(call), read<free_parameters>(call.parameters).freed);
        break;
      case driver_call::free_async:
      case driver_call::free_async_per_thread: {
        const auto arguments = read<free_async_parameters>(call.parameters);
        const bool is_per_thread = id == driver_call::free_async_per_thread;
        taken = blocks_.free_begins(on_stream(call, arguments.stream, 0, is_per_thread), arguments.freed);
        break;
      }
      case driver_call::release: taken = blocks_.release_begins(read<free_parameters>(call.parameters).freed); break;
      case driver_call::unmap: {
        const auto arguments = read<unmap_parameters>(call.parameters);
        taken = blocks_.unmap_begins(arguments.address, arguments.bytes);
        break;
      }
      case driver_call::pool_destroy: {  // before it is gone, so that nobody asks it any more
        known_pool ended{};
        if (pools_.take(read<free_parameters>(call.parameters).freed, ended)) taken = packed(ended);
        break;
      }
      default: return;
    }
    if (call.kept != nullptr) *call.kept = taken;
  }

  void on_end(driver_call id, const callback_data& call, int result) noexcept {
    const bool is_done = result == success;
    const ticket taken = call.kept == nullptr ? 0 : *call.kept;
    switch (id) {
      case driver_call::free:
      case driver_call::array_destroy:
      case driver_call::mipmapped_array_destroy:
      case driver_call::free_async:
      case driver_call::free_async_per_thread:
        return blocks_.free_ends(here(call), read<free_parameters>(call.parameters).freed, taken, is_done);
      case driver_call::free_host:
        return blocks_.free_ends(here(call, memory_kind::pinned), read<free_parameters>(call.parameters).freed, taken, is_done);
      case driver_call::release:
      case driver_call::unmap: return blocks_.ends(taken, is_done);
      case driver_call::pool_destroy:
        if (!is_done && taken != 0) pools_.add(unpacked(read<free_parameters>(call.parameters).freed, taken));
        return;
      default: break;
    }
    if (is_done) return on_success(id, call);
    if (result == out_of_memory) on_out_of_memory(id, call);
  }

  void on_success(driver_call id, const callback_data& call) noexcept {
    switch (id) {
      case driver_call::create: {
        const auto arguments = read<create_parameters>(call.parameters);
        place at = place_of(arguments, call);
        at.asked_by = asking_library(arguments.bytes);
        return blocks_.created(at, number_at(arguments.handle), arguments.bytes);
      }
      case driver_call::retain_handle: return blocks_.retained(number_at(read<retain_parameters>(call.parameters).handle));
      case driver_call::map: {
        const auto arguments = read<map_parameters>(call.parameters);
        return blocks_.mapped(arguments.address, arguments.bytes, arguments.handle);
      }
      case driver_call::pool_create: {
        const auto arguments = read<pool_parameters>(call.parameters);
        if (arguments.properties == nullptr) return;
        return pools_.add(pool_of(number_at(arguments.pool), *arguments.properties, device_of(call)));
      }
      case driver_call::get_default_pool:
      case driver_call::get_pool: {
        const auto arguments = read<get_pool_parameters>(call.parameters);
        if (arguments.where == nullptr) return;
        const allocation_properties properties{arguments.type, 0, *arguments.where};
        return pools_.add_unknown(pool_of(number_at(arguments.pool), properties, device_of(call)));
      }
      default: break;
    }
    request asked = request_of(id, call);
    if (asked.bytes == 0) return;
    asked.at.asked_by = asking_library(asked.bytes);
    blocks_.allocated(asked.at, number_at(asked.address), asked.bytes);
  }

  void on_out_of_memory(driver_call id, const callback_data& call) noexcept {
    if (id == driver_call::create) {
      const auto arguments = read<create_parameters>(call.parameters);
      return blocks_.failed(place_of(arguments, call), arguments.bytes);
    }
    const request asked = request_of(id, call);
    if (asked.bytes != 0) blocks_.failed(asked.at, asked.bytes);
  }

  [[nodiscard]] place place_of(const create_parameters& arguments, const callback_data& call) noexcept {
    place at = here(call);
    if (arguments.properties == nullptr) return at;
    const known_pool of = pool_of(0, *arguments.properties, at.device);
    at.kind = of.kind;
    at.device = of.device;
    return at;
  }

  /// What a call allocates; 0 bytes: nothing.
  struct request {
    place at;
    const void* address = nullptr;  ///< where the call puts it
    std::size_t bytes = 0;
  };

  [[nodiscard]] request request_of(driver_call id, const callback_data& call) noexcept {
    switch (id) {
      case driver_call::alloc: return plain(call, memory_kind::device);
      case driver_call::alloc_managed: return plain(call, memory_kind::managed);
      case driver_call::alloc_host:
      case driver_call::host_alloc:
      case driver_call::host_alloc_v2: return plain(call, memory_kind::pinned);
      case driver_call::alloc_pitch: {
        const auto arguments = read<alloc_pitch_parameters>(call.parameters);
        // Without a pitch, as where the call failed, what was asked for.
        const std::size_t pitch = arguments.pitch == nullptr ? 0 : *arguments.pitch;
        return {here(call), arguments.address, (pitch < arguments.width ? arguments.width : pitch) * arguments.height};
      }
      case driver_call::alloc_async:
      case driver_call::alloc_async_per_thread: {
        const auto arguments = read<alloc_async_parameters>(call.parameters);
        const bool is_per_thread = id == driver_call::alloc_async_per_thread;
        return {on_stream(call, arguments.stream, 0, is_per_thread), arguments.address, arguments.bytes};
      }
      case driver_call::alloc_from_pool_async:
      case driver_call::alloc_from_pool_async_per_thread: {
        const auto arguments = read<alloc_from_pool_parameters>(call.parameters);
        const bool is_per_thread = id == driver_call::alloc_from_pool_async_per_thread;
        return {on_stream(call, arguments.stream, arguments.pool, is_per_thread), arguments.address, arguments.bytes};
      }
      case driver_call::array_create:
      case driver_call::array_3d_create:
      case driver_call::mipmapped_array_create: return array(id, call);
      default: return {};
    }
  }

  [[nodiscard]] request plain(const callback_data& call, memory_kind kind) noexcept {
    const auto arguments = read<alloc_parameters>(call.parameters);
    return {here(call, kind), arguments.address, arguments.bytes};
  }

  [[nodiscard]] request array(driver_call id, const callback_data& call) noexcept {
    const auto arguments = read<array_parameters>(call.parameters);
    if (arguments.described == nullptr) return {};
    if (id == driver_call::array_create) {
      const auto [width, height, format, channels] = read<array_descriptor>(arguments.described);
      return {here(call), arguments.array, array_bytes({width, height, 0, format, channels, 0})};
    }
    const auto described = read<array_3d_descriptor>(arguments.described);
    if ((described.flags & array_without_memory) != 0) return {};
    const bool is_mipmapped = id == driver_call::mipmapped_array_create;
    const unsigned levels = is_mipmapped ? read<array_3d_parameters>(call.parameters).levels : 1;
    return {here(call), arguments.array, mipmapped_array_bytes(described, levels)};
  }

  void on_synchronize(std::uint32_t id, const resource_data& data) noexcept {
    std::uint32_t context = 0;
    if (!number_of(data.context, context)) return;
    if (id == context_synchronized) return blocks_.context_synchronized(context);
    if (id != stream_synchronized) return;
    std::uint64_t stream = 0;
    std::memcpy(&stream, &data.stream, sizeof data.stream);
    blocks_.stream_synchronized(context, stream_of(stream, false));
  }

  context_queries queries_;
  std::array<std::atomic<std::uint64_t>, 64> devices_{};  ///< by context: its number plus 1, and its device
  pool_table pools_;
  tracker blocks_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
