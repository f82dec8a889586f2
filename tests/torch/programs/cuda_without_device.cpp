// A libtorch with CUDA on a machine without a device, as plain `pip install torch` gives: its hooks, guard and kernels are
// registered, and fail. NO_DISPATCH on a claimed device reaches none of them, and gives them back.

#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/trace/device_presets.hpp>

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("fault: %s\n", what);
  ++faults;
}

[[noreturn]] void fail() { TORCH_CHECK(false, "CUDA driver version is insufficient for CUDA runtime version"); }

// Which functions exist differs between versions. NOLINTBEGIN(modernize-use-override,readability-identifier-naming)
struct hooks_without_device final : at::CUDAHooksInterface {
  explicit hooks_without_device(at::CUDAHooksArgs) {}
  bool isBuilt() const { return true; }
  bool isAvailable() const { return false; }
  bool hasCuDNN() const { return true; }
  bool compiledWithCuDNN() const { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const { fail(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const { fail(); }
  const at::Generator& getDefaultCUDAGenerator(c10::DeviceIndex) const { fail(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const { fail(); }
};

struct guard_without_device final : c10::impl::NoOpDeviceGuardImpl<c10::kCUDA> {
  c10::DeviceIndex deviceCount() const noexcept { return 0; }
};
// NOLINTEND(modernize-use-override,readability-identifier-naming)

[[maybe_unused]] const bool is_registered = [] {
  at::CUDAHooksRegistry()->Register(
      "CUDAHooks",
      [](at::CUDAHooksArgs arguments) { return std::unique_ptr<at::CUDAHooksInterface>{new hooks_without_device{arguments}}; },
      c10::REGISTRY_DEFAULT);
  static const guard_without_device guard;
  c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::kCUDA)].store(&guard);
  return true;
}();

void fail_at_call(const c10::OperatorHandle&, torch::jit::Stack*) { fail(); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  for (const char* const name : {"empty.memory_format", "empty_strided", "_foreach_add.List", "_foreach_mul.Scalar",
                                 "_foreach_norm.Scalar", "_fused_adamw_", "mm", "add.Tensor", "fill_.Scalar", "silu_backward"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&fail_at_call>());
  }
}

std::string fault_of_creation() {
  try {
    (void)at::empty({4}, at::kCUDA);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return "";
}

}  // namespace

int main() {
  check(fault_of_creation().find("insufficient") != std::string::npos, "there is no device");
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = memprof::device_preset("gpu-24gb")});
    const auto live = [&] { return capture.profile().space("cuda:0").cumulative_current; };
    check(at::hasCUDA() && !at::detail::getCUDAHooks().compiledWithCuDNN(), "libtorch asks our hooks");

    at::Tensor made;
    std::thread{[&] { made = at::empty({256}, at::kCUDA); }}.join();
    check(live() == 1024, "a thread's first operation creates its tensor on the claimed device");

    const std::vector<at::Tensor> tensors{at::ones({64, 64}, at::kCUDA), at::ones({128}, at::kCUDA)};
    constexpr std::int64_t bytes = 4 * (64 * 64 + 128);
    check(live() == 1024 + bytes, "tensors are made there");
    const auto sums = at::_foreach_add(at::_foreach_mul(tensors, 2), tensors);
    check(live() == 1024 + 2 * bytes && sums[1][0].item<float>() == 3, "an operator on lists works tensor by tensor");
    check(at::_foreach_norm(tensors, 2).size() == 2, "so does that of clip_grad_norm_");

    auto layer = torch::nn::Linear(64, 64);
    layer->to(at::kCUDA);
    torch::silu(layer->forward(tensors[0])).sum().backward();
    check(layer->weight.grad().is_cuda(), "a backward pass runs");
    check(at::globalContext().defaultGenerator(at::kCUDA).defined(), "there is a generator");
  }
  check(!at::hasCUDA() && at::detail::getCUDAHooks().compiledWithCuDNN(), "the hooks are libtorch's again");
  check(!fault_of_creation().empty(), "the device is gone");
  const at::Tensor x = torch::ones({3}, torch::requires_grad());
  (x * 2).sum().backward();
  check(x.grad().sum().item<float>() == 6, "a backward pass on the CPU runs after the capture");
  return faults == 0 ? 0 : 1;
}
