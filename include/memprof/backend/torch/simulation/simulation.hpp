#pragma once

#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/rules/rule_table.hpp>
#include <memprof/backend/torch/simulation/composite_overrides.hpp>
#include <memprof/backend/torch/simulation/cublas_workspace.hpp>
#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/backend/torch/simulation/dispatch.hpp>
#include <memprof/backend/torch/simulation/fake_cuda.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch/simulation/meta_allocator.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/skipped_draws.hpp>
#include <memprof/backend/torch/simulation/threads.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/zero_pages.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/trace/device_description.hpp>

#include <ATen/record_function.h>
#include <torch/library.h>

#include <pthread.h>

#include <atomic>
#include <string>
#include <string_view>

/// @file
/// Beginning and end of a simulation in the process. Start reading here; the other files of this folder:
///
/// | subject | files |
/// |---|---|
/// | the path of a call through the simulation | dispatch, operator_plans, composite_overrides |
/// | tensors without data, and their bytes | fake_tensor, fake_block, zero_pages, outside_tensors, sparse_tensors |
/// | which tensors hold values | values, nominal_values, likely_shares, unknown_reads, read_memory |
/// | real kernels on zeros | real_kernel, stand_ins, refused_zeros, kernel_tape, taped_kernel |
/// | shape functions (Meta kernels) | shape_functions, exact_shape_functions, meta_views, meta_allocator, type_promotion |
/// | rules | torch_call, the interface for writing them, torch_call_tensors; the folder rules, starting with rule_table |
/// | guesses | estimated_call |
/// | CUDA without a device | fake_cuda, cuda_memory, cuda_properties, cuda_reduction, cublas_workspace, fake_device |
/// | results of CPU kernels on it | fake_cuda_copies |
/// | threads | threads, simulating_thread |
/// | compiled once, or in each file | simulation_control, implementation |

namespace memprof::inline MEMPROF_ABI::detail {

/// Registers our kernels with libtorch for the keys that it reserves for out-of-tree fake tensors. Returns why that failed; empty
/// on success. Permanent: a registration cannot be withdrawn while tensors carry the key.
[[nodiscard]] inline const std::string& register_kernels() {
  static const std::string* const fault = [] {
    auto* const text = new std::string;
    try {
      static auto* const fake = new torch::Library{torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__};
      fake->fallback(torch::CppFunction::makeFromBoxedFunction<&dispatch_simulated>());
      static auto* const above =
          new torch::Library{torch::Library::IMPL, "_", c10::DispatchKey::DeferredInit, __FILE__, __LINE__};
      above->fallback(torch::CppFunction::makeFallthrough());
      override_composites();
      keep_whole_on_cuda();
      create_on_fake_cuda();
    } catch (const std::exception& thrown) {
      *text = thrown.what();
    }
    return text;
  }();
  return *fault;
}

/// Whether a described device is a CUDA device, by its own name or by that of a memory space.
[[nodiscard]] inline bool is_cuda(const device_description& device) {
  const auto begins = [](const short_name& name) { return name.view().substr(0, 4) == "cuda"; };
  bool found = begins(device.name);
  for (std::size_t index = 0; index < device.space_count; ++index) found |= begins(device.spaces[index].name);
  return found;
}

/// The handle of the callback through which threads join the simulation.
[[nodiscard]] inline at::CallbackHandle& join_callback() noexcept {
  static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  return handle;
}

/// Throws `memprof::error` if libtorch does not accept our kernels or allocators, if tensors are already recorded, or if no
/// addresses can be reserved.
inline void begin_simulation(const device_description& device) {
  check_no_tensors_are_recorded();
  if (const std::string& fault = register_kernels(); !fault.empty()) {
    raise(
        "torch_no_dispatch: another library of this process has taken libtorch's Fake dispatch key, so operations cannot be "
        "simulated; link without it (torchdistX is one). libtorch says: " +
        fault);
  }
  if (!process_zero_pages().is_usable()) {
    raise(
        "torch_no_dispatch: cannot reserve 64 GiB of addresses (they take no memory); raise `ulimit -v`, and set "
        "vm.overcommit_memory to 0 or 1");
  }
  add_known_rules();
  all_operator_plans().forget_estimates();
  unknown_reads::instance().begin();
  assumed_sizes::instance().begin();
  skipped_draws::instance().begin();
  cublas_workspaces::instance().begin(cublas_workspace_bytes(device));
  install_meta_allocator();
  const bool has_fake_cuda = is_cuda(device);
  fake_cuda_device.begin_capture();
  if (has_fake_cuda) {
    static const int watches_forks = ::pthread_atfork(nullptr, nullptr, [] { fake_cuda_device.leave_to_parent(); });
    if (watches_forks != 0) raise("torch_no_dispatch: no memory to watch for forks");
    install_fake_cuda_guard();
    process_cuda_hooks().take_over();
    claimed_cuda.store(cuda_properties_of(device.name.view()), std::memory_order_relaxed);
  }
  kernel_allocator::instance().begin();
  try {
    join_callback() = at::addGlobalCallback(at::RecordFunctionCallback(join_before_operation));
  } catch (...) {
    kernel_allocator::instance().end();
    throw;
  }
  is_cuda_faked.store(has_fake_cuda, std::memory_order_relaxed);
  are_tensors_recorded.store(true, std::memory_order_relaxed);
  is_simulating.store(true, std::memory_order_relaxed);
  simulate_this_thread();
  this_simulating_thread.made_blocks = 0;  // nominal values are those of every other capture
}

/// Other threads leave the simulation at their next operation.
inline void end_simulation() noexcept {
  is_simulating.store(false, std::memory_order_relaxed);
  are_tensors_recorded.store(false, std::memory_order_relaxed);
  is_cuda_faked.store(false, std::memory_order_relaxed);
  process_cuda_hooks().restore();
  at::removeCallback(join_callback());
  leave_this_thread();
  kernel_allocator::instance().end();
  outside_shadows::instance().forget();
  kernel_tapes::instance().forget();
}

/// In a forked process that only loads data: operations are executed from now on, and simulated tensors on the CPU hold zeros or,
/// if they are small, their values.
inline void execute_in_this_process() noexcept {
  is_simulating.store(false, std::memory_order_relaxed);
  are_simulated_tensors_read.store(true, std::memory_order_relaxed);
  leave_this_thread();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
