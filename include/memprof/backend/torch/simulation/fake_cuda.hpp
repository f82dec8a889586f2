#pragma once

#include <memprof/backend/torch/version.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstddef>
#include <memory>

/// @file
/// One CUDA device that is only claimed, for programs that ask whether there is one before they move their model to it. Where
/// libtorch finds a device itself, its own guard and hooks stay. A libtorch that was built with CUDA and finds none keeps its
/// hooks, and gets the guard.

namespace memprof::inline MEMPROF_ABI::detail {

[[gnu::visibility("default")]] inline constinit std::atomic<bool> is_cuda_faked{false};

// No function is marked as an override: which of them exist differs between versions, and clang wants all of a class or none.
// NOLINTBEGIN(modernize-use-override)

/// What autograd and the guards of devices and streams ask: there is one device with one stream, and it is always ready.
struct fake_cuda_guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Device only_device() noexcept { return {c10::kCUDA, 0}; }
  static c10::Stream only_stream() noexcept { return c10::Stream{c10::Stream::DEFAULT, only_device()}; }

  [[nodiscard]] c10::DeviceType type() const { return c10::kCUDA; }
  [[nodiscard]] c10::Device exchangeDevice(c10::Device) const { return only_device(); }
  [[nodiscard]] c10::Device getDevice() const { return only_device(); }
  void setDevice(c10::Device) const {}
  void uncheckedSetDevice(c10::Device) const noexcept {}
  // The base lost a noexcept here between versions; keeping it suits both.
  [[nodiscard]] c10::Stream getStream(c10::Device) const noexcept { return only_stream(); }
  [[nodiscard]] c10::Stream exchangeStream(c10::Stream) const noexcept { return only_stream(); }
  [[nodiscard]] c10::DeviceIndex deviceCount() const noexcept { return 1; }
  c10::Stream getDefaultStream(c10::Device) const { return only_stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const { return only_stream(); }
  c10::Stream getNewStream(c10::Device, int) const { return only_stream(); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const {}
  void block(void*, const c10::Stream&) const {}
  bool queryEvent(void*) const { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept {}
  bool queryStream(const c10::Stream&) const { return true; }
  void synchronizeStream(const c10::Stream&) const {}
  void synchronizeEvent(void*) const {}
  void synchronizeDevice(const c10::DeviceIndex) const {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const {}
};
// NOLINTEND(modernize-use-override)

/// What `torch::cuda::is_available()` and the seeding of generators ask. Outside a capture that claims CUDA there is no device.
// As above. NOLINTBEGIN(modernize-use-override,readability-identifier-naming)
struct fake_cuda_hooks final : at::CUDAHooksInterface {
  static const at::Generator& only_generator() {
    static const at::Generator* const generator = new at::Generator{at::detail::createCPUGenerator()};
    return *generator;
  }
  static bool is_fake() noexcept { return is_cuda_faked.load(std::memory_order_relaxed); }

  bool hasCUDA() const { return is_fake(); }
  int getNumGPUs() const { return is_fake() ? 1 : 0; }
  c10::DeviceIndex deviceCount() const { return is_fake() ? 1 : 0; }
  bool isBuilt() const { return is_fake(); }
  bool isAvailable() const { return is_fake(); }
  bool hasPrimaryContext(c10::DeviceIndex) const { return is_fake(); }
  void init() const {}
  void initCUDA() const {}
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const { return only_generator(); }
  const at::Generator& getDefaultCUDAGenerator(c10::DeviceIndex) const { return only_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const { return at::detail::createCPUGenerator(); }
  c10::DeviceIndex current_device() const { return 0; }
  c10::DeviceIndex getCurrentDevice() const { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const { return 0; }
  void deviceSynchronize(c10::DeviceIndex) const {}
};
// NOLINTEND(modernize-use-override,readability-identifier-naming)

/// Puts the guard in the place of a missing one, or of one without a device (a CUDA build on a machine without). The slot stays
/// taken after the capture: what was made in it may ask to the end of the process.
inline void install_fake_cuda_guard() {
  auto& slot = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)];
  const c10::impl::DeviceGuardImplInterface* const present = slot.load();
  if (present != nullptr && present->deviceCount() != 0) return;
  static const fake_cuda_guard* const guard = new fake_cuda_guard;
  slot.store(guard);
}

/// Registers the hooks, below any real ones: those of a CUDA library that is loaded later replace them. True, to be called when
/// the program starts: libtorch asks for hooks once and keeps the answer.
[[nodiscard]] inline bool register_fake_cuda_hooks() {
  auto* const registry = at::CUDAHooksRegistry();
  if (!registry->Has("CUDAHooks")) {
    registry->Register(
        "CUDAHooks", [](at::CUDAHooksArgs) { return std::unique_ptr<at::CUDAHooksInterface>{new fake_cuda_hooks}; },
        c10::REGISTRY_FALLBACK);
  }
  return true;
}
[[gnu::visibility("default")]] inline const bool has_cuda_hooks = register_fake_cuda_hooks();

}  // namespace memprof::inline MEMPROF_ABI::detail
