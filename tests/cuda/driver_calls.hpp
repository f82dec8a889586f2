#pragma once

#include <memprof/backend/cuda/driver_events.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof_tests::cuda {

namespace interface = memprof::detail::cuda;
using interface::driver_call;

inline constexpr int success = 0;
inline constexpr int invalid_value = 1;  // CUDA_ERROR_INVALID_VALUE

/// A driver with two devices: context 1 is of device 0, context 2 of device 1.
inline interface::context_queries two_devices() {
  return {[](void* context, std::uint32_t* device) {
            *device = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context)) - 1;
            return success;
          },
          [](void* context, std::uint32_t* number) {
            *number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context));
            return success;
          }};
}

/// A call of the driver as CUPTI reports it, in two parts.
template <class Parameters>
class call {
 public:
  call(interface::driver_events& events, driver_call id, Parameters parameters, std::uintptr_t context = 1)
      : events_(events), id_(id), parameters_(parameters) {
    data_.parameters = &parameters_;
    data_.context = reinterpret_cast<void*>(context);
    data_.context_number = static_cast<std::uint32_t>(context);
    data_.kept = &kept_;
    tell(interface::call_begins);
  }
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  void end(int result = success) {
    data_.result = &result;
    tell(1);
    data_.result = nullptr;
  }

 private:
  void tell(int site) {
    data_.site = site;
    events_(interface::domain::driver, static_cast<std::uint32_t>(id_), &data_);
  }

  interface::driver_events& events_;
  driver_call id_;
  Parameters parameters_;
  std::uint64_t kept_ = 0;
  interface::callback_data data_ {};
};

/// The calls as a program makes them.
class program {
 public:
  program() { events.clear(two_devices()); }

  void alloc(driver_call id, std::uint64_t address, std::size_t bytes, std::uintptr_t context = 1, int result = success) {
    call{events, id, interface::alloc_parameters{&address, bytes}, context}.end(result);
  }
  void alloc_async(std::uint64_t address, std::size_t bytes, std::uint64_t stream, int result = success) {
    call{events, driver_call::alloc_async, interface::alloc_async_parameters{&address, bytes, stream}}.end(result);
  }
  /// By a file that was compiled for each thread's own default stream, which is stream 0.
  void alloc_async_per_thread(std::uint64_t address, std::size_t bytes) {
    call{events, driver_call::alloc_async_per_thread, interface::alloc_async_parameters{&address, bytes, 0}}.end();
  }
  void alloc_from_pool_per_thread(std::uint64_t address, std::size_t bytes, std::uint64_t pool) {
    call{events, driver_call::alloc_from_pool_async_per_thread, interface::alloc_from_pool_parameters{&address, bytes, pool, 0}}
        .end();
  }
  void free_async_per_thread(std::uint64_t address) {
    call{events, driver_call::free_async_per_thread, interface::free_async_parameters{address, 0}}.end();
  }
  void alloc_from_pool(std::uint64_t address, std::size_t bytes, std::uint64_t pool, std::uint64_t stream) {
    call{events, driver_call::alloc_from_pool_async, interface::alloc_from_pool_parameters{&address, bytes, pool, stream}}.end();
  }
  void free(std::uint64_t address, driver_call id = driver_call::free, int result = success, std::uintptr_t context = 1) {
    call{events, id, interface::free_parameters{address}, context}.end(result);
  }
  void free_async(std::uint64_t address, std::uint64_t stream, int result = success) {
    call{events, driver_call::free_async, interface::free_async_parameters{address, stream}}.end(result);
  }
  void make_pool(std::uint64_t pool, interface::allocation_properties properties) {
    call{events, driver_call::pool_create, interface::pool_parameters{&pool, &properties}}.end();
  }
  void get_pool(std::uint64_t pool, interface::location where, int type, driver_call id = driver_call::get_pool) {
    call{events, id, interface::get_pool_parameters{&pool, &where, type}}.end();
  }
  void create(std::uint64_t handle, std::size_t bytes, int device = 0, int result = success) {
    const interface::allocation_properties properties {
      1, 0, { 1, device }
    };
    call{events, driver_call::create, interface::create_parameters{&handle, bytes, &properties}}.end(result);
  }
  void release(std::uint64_t handle, int result = success) { free(handle, driver_call::release, result); }
  void map(std::uint64_t address, std::size_t bytes, std::uint64_t handle) {
    call{events, driver_call::map, interface::map_parameters{address, bytes, 0, handle}}.end();
  }
  void unmap(std::uint64_t address, std::size_t bytes, int result = success) {
    call{events, driver_call::unmap, interface::unmap_parameters{address, bytes}}.end(result);
  }
  void retain(std::uint64_t handle, std::uint64_t address) {
    call{events, driver_call::retain_handle, interface::retain_parameters{&handle, address}}.end();
  }
  void synchronize_stream(std::uint64_t stream, std::uintptr_t context = 1) {
    tell(interface::domain::synchronize, interface::stream_synchronized, context, stream);
  }
  void synchronize_context(std::uintptr_t context = 1) {
    tell(interface::domain::synchronize, interface::context_synchronized, context, 0);
  }
  void destroy_context(std::uintptr_t context) {
    tell(interface::domain::resource, interface::context_destroy_starting, context, 0);
  }

  interface::driver_events events;

 private:
  void tell(interface::domain where, std::uint32_t id, std::uintptr_t context, std::uint64_t stream) {
    const void* const data[3] = {reinterpret_cast<void*>(context), reinterpret_cast<void*>(stream), nullptr};
    events(where, id, data);
  }
};

}  // namespace memprof_tests::cuda
