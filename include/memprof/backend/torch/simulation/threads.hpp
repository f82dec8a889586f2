#pragma once

#include <memprof/backend/torch/simulation/dispatch.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>

#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <atomic>
#include <memory>

/// @file
/// Decides which threads are simulated: the one that begins the capture, those that inherit its state (autograd's, at::launch),
/// and every other thread from its first tensor on a fake CUDA device, or else its second operation on.

namespace memprof::inline MEMPROF_ABI::detail {

/// Makes the dispatcher call our kernels for every operation of this thread.
inline void simulate_this_thread() noexcept {
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake)) return;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, true);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::DeferredInit, true);
  // Backward passes of fake CUDA tensors run on the calling thread: autograd creates its device threads at first use, when there
  // may have been no device.
  this_simulating_thread.was_multithreading = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

inline void leave_this_thread() noexcept {
  if (!c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake)) return;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, false);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::DeferredInit, false);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(this_simulating_thread.was_multithreading);
}

/// Whether this thread works for a real kernel that another thread has called.
[[nodiscard]] inline bool is_worker_of_kernel() {
  return running_kernels.load(std::memory_order_relaxed) != 0 && at::in_parallel_region();
}

/// Has this thread simulated from now on, if there is a simulation.
inline void join_simulation() noexcept {
  if (is_simulating.load(std::memory_order_relaxed) && !is_worker_of_kernel()) simulate_this_thread();
}

/// The kernel of the Fake key, between autograd and the devices' kernels: called for every operation of a simulated thread, and
/// for every operation on a fake tensor.
inline void dispatch_simulated(const c10::OperatorHandle& called, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  torch_call call{called, *stack, run_shape_function};
  if (!is_simulating.load(std::memory_order_relaxed)) leave_this_thread();
  if (runs_for_real()) return run_for_real(call, keys);
  if (is_worker_of_kernel()) return run_composed(call, keys);
  simulate_this_thread();
  simulate(call, keys);
}

/// The kernel of the CUDA key where there is no device: called if a thread that is not simulated yet creates a tensor on the fake
/// one.
inline void dispatch_to_fake_cuda(const c10::OperatorHandle& called, c10::DispatchKeySet, torch::jit::Stack* stack) {
  check_fake_device();
  const bool joins = !runs_for_real() && is_cuda_faked.load(std::memory_order_relaxed) && !is_worker_of_kernel() &&
                     !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Fake);
  TORCH_CHECK_NOT_IMPLEMENTED(joins, "Could not run '", called.operator_name(),
                              "' on a CUDA device: there is none, and the operation is not part of a NO_DISPATCH capture "
                              "that claims one");
  simulate_this_thread();
  called.callBoxed(stack);
}

/// Has libtorch call that kernel. A libtorch without CUDA has none. One with CUDA that finds no device has kernels that ask the
/// driver for memory, and would warn that they are replaced; its other kernels are given tensors.
inline void create_on_fake_cuda() {
  const auto empty = c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty", "memory_format");
  if (!empty.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) {
    static auto* const on_cuda = new torch::Library{torch::Library::IMPL, "_", c10::DispatchKey::CUDA, __FILE__, __LINE__};
    on_cuda->fallback(torch::CppFunction::makeFromBoxedFunction<&dispatch_to_fake_cuda>());
  } else if (!at::detail::getCUDAHooks().hasCUDA()) {
    struct silent_handler final : c10::WarningHandler {
      void process(const c10::Warning&) override {}
    } silent;
    const c10::WarningUtils::WarningHandlerGuard no_warning{&silent};
    static auto* const factories = new torch::Library{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};
    for (const char* const name : {"empty.memory_format", "empty_strided"})
      factories->impl(name, torch::CppFunction::makeFromBoxedFunction<&dispatch_to_fake_cuda>());
  }
}

/// Called before every operation of every thread. The dispatcher has already chosen the kernel of that operation.
inline std::unique_ptr<at::ObserverContext> join_before_operation(const at::RecordFunction&) {
  join_simulation();
  return nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
