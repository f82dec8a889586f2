#pragma once

#include <memprof/backend/cuda/cupti_library.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What memprof asks the driver, outside of callbacks.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A pool's counters. Bytes.
struct pool_counters {
  std::uint64_t reserved = 0;
  std::uint64_t reserved_peak = 0;  ///< since the last reset
  std::uint64_t used = 0;
  std::uint64_t used_peak = 0;
};

/// A device's memory. Bytes.
struct device_counters {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// Functions of the driver; those that it lacks answer nothing. None creates a context.
class driver_questions {
 public:
  void find(const cupti_library& library) noexcept {
    find(library, count_, "cuDeviceGetCount");
    find(library, current_device_, "cuCtxGetDevice");
    find(library, state_, "cuDevicePrimaryCtxGetState");
    find(library, retain_, "cuDevicePrimaryCtxRetain");
    find(library, release_, "cuDevicePrimaryCtxRelease_v2");
    find(library, push_, "cuCtxPushCurrent_v2");
    find(library, pop_, "cuCtxPopCurrent_v2");
    find(library, memory_, "cuMemGetInfo_v2");
    find(library, own_pool_, "cuDeviceGetDefaultMemPool");
    find(library, get_, "cuMemPoolGetAttribute");
    find(library, set_, "cuMemPoolSetAttribute");
  }

  /// 0 before the program has initialised CUDA.
  [[nodiscard]] int device_count() const noexcept {
    int count = 0;
    return count_ != nullptr && count_(&count) == success ? count : 0;
  }

  /// False if the device has no context that could be asked.
  [[nodiscard]] bool memory_of(int device, device_counters& found) const noexcept {
    if (memory_ == nullptr) return false;
    int current = -1;
    if (current_device_ != nullptr && current_device_(&current) == success && current == device)
      return memory_(&found.free, &found.total) == success;
    if (!is_in_use(device)) return false;
    void* context = nullptr;
    if (retain_(&context, device) != success) return false;
    bool is_found = false;
    if (push_(context) == success) {
      is_found = memory_(&found.free, &found.total) == success;
      (void)pop_(&context);
    }
    (void)release_(device);
    return is_found;
  }

  /// The pool that a device has from the start; 0 if it has none.
  [[nodiscard]] number own_pool_of(int device) const noexcept {
    number pool = 0;
    return own_pool_ != nullptr && own_pool_(&pool, device) == success ? pool : 0;
  }

  [[nodiscard]] bool counters_of(number pool, pool_counters& found) const noexcept {
    if (get_ == nullptr) return false;
    return get_(pool, reserved_attribute, &found.reserved) == success &&
           get_(pool, reserved_attribute + 1, &found.reserved_peak) == success &&
           get_(pool, used_attribute, &found.used) == success && get_(pool, used_attribute + 1, &found.used_peak) == success;
  }

  /// Begins the high-water marks of a pool again, at what it holds now.
  void reset_peaks_of(number pool) const noexcept {
    if (set_ == nullptr) return;
    std::uint64_t none = 0;
    (void)set_(pool, reserved_attribute + 1, &none);
    (void)set_(pool, used_attribute + 1, &none);
  }

 private:
  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT and CU_MEMPOOL_ATTR_USED_MEM_CURRENT, each followed by its high-water mark.
  static constexpr int reserved_attribute = 5;
  static constexpr int used_attribute = 7;

  template <class Function>
  static void find(const cupti_library& library, Function*& function, const char* name) noexcept {
    function = library.driver_function<Function>(name);
  }

  [[nodiscard]] bool is_in_use(int device) const noexcept {
    if (state_ == nullptr || retain_ == nullptr || release_ == nullptr || push_ == nullptr || pop_ == nullptr) return false;
    unsigned flags = 0;
    int is_active = 0;
    return state_(device, &flags, &is_active) == success && is_active != 0;
  }

  int (*count_)(int* count) = nullptr;
  int (*current_device_)(int* device) = nullptr;
  int (*state_)(int device, unsigned* flags, int* is_active) = nullptr;
  int (*retain_)(void** context, int device) = nullptr;
  int (*release_)(int device) = nullptr;
  int (*push_)(void* context) = nullptr;
  int (*pop_)(void** context) = nullptr;
  int (*memory_)(std::size_t* free, std::size_t* total) = nullptr;
  int (*own_pool_)(number* pool, int device) = nullptr;
  int (*get_)(number pool, int attribute, void* value) = nullptr;
  int (*set_)(number pool, int attribute, void* value) = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
