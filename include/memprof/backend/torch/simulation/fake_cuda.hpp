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
#include <typeinfo>
#include <utility>

/// @file
/// A fake CUDA device, for programs that check for one before they move their model to it. If libtorch finds a real device, its
/// own guard and hooks stay; those of a libtorch built with CUDA that finds none are replaced, too.

namespace memprof::inline MEMPROF_ABI::detail {

[[gnu::visibility("default")]] inline constinit std::atomic<bool> is_cuda_faked{false};

// No function is marked `override`: which of them exist differs between versions, and clang demands all of a class or none.
// NOLINTBEGIN(modernize-use-override)

/// Answers autograd and the device and stream guards: there is one device with one stream, which is always ready.
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
  double elapsedTime(void*, void*, const c10::DeviceIndex) const { return 0; }
};
// NOLINTEND(modernize-use-override)

/// Answers `torch::cuda::is_available()` and the seeding of generators. Outside a capture that fakes CUDA, there is no device.
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

/// Installs the guard if there is none, or only one without a device (a CUDA build on a machine without one). It stays after the
/// capture: objects created during the capture may use it until the process ends.
inline void install_fake_cuda_guard() {
  auto& slot = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)];
  const c10::impl::DeviceGuardImplInterface* const present = slot.load();
  if (present != nullptr && present->deviceCount() != 0) return;
  static const fake_cuda_guard* const guard = new fake_cuda_guard;
  slot.store(guard);
}

/// Registers the hooks with a lower priority than real ones: those of a CUDA library that is loaded later replace them. Always
/// returns true, to be called at program start: libtorch looks the hooks up once and keeps the result.
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

/// The hooks that libtorch asks, by the address of its table of virtual functions, which is all that such an object holds.
class [[nodiscard]] asked_cuda_hooks {
 public:
  /// Makes libtorch ask our hooks, whichever it looked up before this library was loaded: it keeps that object for good, and only
  /// calls it through the table. Hooks that find a device stay.
  void take_over() {
    const at::CUDAHooksInterface& present = at::detail::getCUDAHooks();
    if (typeid(present) == typeid(fake_cuda_hooks) || present.hasCUDA()) return;
    static const fake_cuda_hooks ours;
    static_assert(sizeof ours == sizeof(const void*));
    original_ = table_of(present).exchange(table_of(ours).load());
  }
  [[nodiscard]] bool are_taken_over() const noexcept { return original_ != nullptr; }
  void restore() noexcept {
    if (original_ != nullptr) table_of(at::detail::getCUDAHooks()).store(std::exchange(original_, nullptr));
  }

 private:
  static std::atomic_ref<const void*> table_of(const at::CUDAHooksInterface& hooks) noexcept {
    return std::atomic_ref{*static_cast<const void**>(const_cast<void*>(static_cast<const void*>(&hooks)))};
  }

  const void* original_ = nullptr;
};

[[nodiscard]] inline asked_cuda_hooks& process_cuda_hooks() {
  static asked_cuda_hooks hooks;
  return hooks;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
