#pragma once

#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

/// @file
/// CUDA's driver and CUPTI, loaded while the program runs: a program starts without them.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// CUPTI's functions, and one subscription to its callbacks. Not thread-safe, except that callbacks may arrive on any thread.
class cupti_library {
 public:
  /// Loads both, once they are there, and subscribes `receive(user, ...)` to the calls that memprof follows. Returns why that
  /// failed; empty on success.
  [[nodiscard]] std::string subscribe(callback receive, void* user) {
    if (subscriber_ != nullptr) return {};
    std::string why_not = load();
    if (!why_not.empty()) return why_not;
    why_not = subscribe_to(receive, user);
    if (!why_not.empty()) return why_not;
    is_enabled_ = false;
    // A driver older than a call does not know its number.
    for (const driver_call call : driver_calls) enable(domain::driver, static_cast<std::uint32_t>(call));
    enable(domain::resource, context_destroy_starting);
    enable(domain::synchronize, stream_synchronized);
    enable(domain::synchronize, context_synchronized);
    if (is_enabled_) return {};
    unsubscribe();
    return "CUPTI does not report the driver's calls (" + words_of(failure_) + ")";
  }

  /// No callback begins after it.
  void unsubscribe() noexcept {
    if (subscriber_ == nullptr) return;
    (void)unsubscribe_(subscriber_);
    subscriber_ = nullptr;
  }

  [[nodiscard]] int device_of(void* context, std::uint32_t* device) const noexcept {
    return device_of_ == nullptr ? invalid_parameter : device_of_(context, device);
  }
  [[nodiscard]] int number_of(void* context, std::uint32_t* number_of_context) const noexcept {
    return number_of_ == nullptr ? invalid_parameter : number_of_(context, number_of_context);
  }

  /// The driver's function of that name, or null.
  template <class Function>
  [[nodiscard]] Function* driver_function(const char* name) const noexcept {
    return driver_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(driver_, name));
  }

 private:
  [[nodiscard]] static void* open(const std::string& name, int further = 0) noexcept {
    return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | further);
  }

  /// Never closes what it has opened: the driver lives until the process ends.
  [[nodiscard]] std::string load() {
    if (cupti_ != nullptr) return {};
    if (driver_ == nullptr) driver_ = open("libcuda.so.1");
    if (driver_ == nullptr) return "there is no CUDA: libcuda.so.1, which NVIDIA's driver installs, cannot be loaded";
    int version = 0;
    if (auto* const get_version = driver_function<int(int*)>("cuDriverGetVersion"); get_version != nullptr)
      (void)get_version(&version);
    constexpr int versions_in_major = 1000;
    cupti_ = open_cupti(version / versions_in_major);
    if (cupti_ == nullptr) {
      return "CUPTI, which comes with the CUDA toolkit, cannot be loaded; put the directory of libcupti.so into LD_LIBRARY_PATH";
    }
    find(subscribe_v2_, "cuptiSubscribe_v2");
    find(subscribe_v1_, "cuptiSubscribe");
    find(unsubscribe_, "cuptiUnsubscribe");
    find(enable_, "cuptiEnableCallback");
    find(words_, "cuptiGetResultString");
    find(device_of_, "cuptiGetDeviceId");
    find(number_of_, "cuptiGetContextId");
    if (subscribe_v1_ != nullptr && unsubscribe_ != nullptr && enable_ != nullptr) return {};
    cupti_ = nullptr;
    return "the libcupti.so that was loaded is not CUPTI";
  }

  /// The one that the program has loaded; otherwise the newest that fits the driver.
  [[nodiscard]] static void* open_cupti(int newest) {
    constexpr int oldest = 11;
    if (newest < oldest) newest = 13;
    const auto versions = [&](const std::string& folder, int further) -> void* {
      for (int version = newest; version >= oldest; --version) {
        if (void* const found = open(folder + "libcupti.so." + std::to_string(version), further)) return found;
      }
      return open(folder + "libcupti.so", further);
    };
    if (void* const found = versions("", RTLD_NOLOAD)) return found;
    if (void* const found = versions("", 0)) return found;
    for (const char* const variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
      const char* const set = *variable == '\0' ? "/usr/local/cuda" : std::getenv(variable);
      if (set == nullptr) continue;
      for (const char* const folder : {"/lib64/", "/extras/CUPTI/lib64/"}) {
        if (void* const found = versions(set + std::string{folder}, 0)) return found;
      }
    }
    return nullptr;
  }

  template <class Function>
  void find(Function*& function, const char* name) const noexcept {
    function = reinterpret_cast<Function*>(::dlsym(cupti_, name));
  }

  /// As one of several subscribers, where CUPTI (13.2) and those that are there know them; or as the only one, by the call that
  /// names the one in the way; or by the older call.
  [[nodiscard]] std::string subscribe_to(callback receive, void* user) {
    std::array<char, 128> holder{};
    int result = invalid_parameter;
    if (subscribe_v2_ != nullptr) {
      subscriber_parameters asked{sizeof asked, "memprof", holder.data(), holder.size() - 1, 1, {}};
      result = subscribe_v2_(&subscriber_, receive, user, &asked);
      // CUPTI says that others are in the way, too, where it cannot share for reasons of its own.
      if (result != success) {
        asked.size = subscriber_parameters::size_without_sharing;
        asked.shares = 0;
        result = subscribe_v2_(&subscriber_, receive, user, &asked);
      }
    }
    if (result != success && result != another_subscriber) result = subscribe_v1_(&subscriber_, receive, user);
    if (result == success) return {};
    subscriber_ = nullptr;
    if (result != another_subscriber) return "CUPTI refuses (" + words_of(result) + ")";
    // A tool that used the older call has no name: "<not provided>".
    const std::string who = holder[0] == '\0' || holder[0] == '<' ? "another tool" : holder.data();
    return who +
           " has CUPTI's callbacks, which it shares with nobody; run without it (Nsight Systems and Compute, cuda-gdb, "
           "compute-sanitizer, and PyTorch's profiler use them)";
  }

  void enable(domain where, std::uint32_t id) noexcept {
    const int result = enable_(1, subscriber_, where, id);
    if (result != success) failure_ = result;
    is_enabled_ = is_enabled_ || (result == success && where == domain::driver);
  }

  [[nodiscard]] std::string words_of(int result) const {
    const char* text = nullptr;
    if (words_ != nullptr && words_(result, &text) == success && text != nullptr) return text;
    return "error " + std::to_string(result);
  }

  void* driver_ = nullptr;
  void* cupti_ = nullptr;
  void* subscriber_ = nullptr;
  bool is_enabled_ = false;
  int failure_ = success;

  int (*subscribe_v2_)(void** subscriber, callback receive, void* user, subscriber_parameters*) = nullptr;
  int (*subscribe_v1_)(void** subscriber, callback receive, void* user) = nullptr;
  int (*unsubscribe_)(void* subscriber) = nullptr;
  int (*enable_)(std::uint32_t is_on, void* subscriber, domain where, std::uint32_t id) = nullptr;
  int (*words_)(int result, const char** text) = nullptr;
  int (*device_of_)(void* context, std::uint32_t* device) = nullptr;
  int (*number_of_)(void* context, std::uint32_t* number) = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
