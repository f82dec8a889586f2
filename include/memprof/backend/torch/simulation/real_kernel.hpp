#pragma once

#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/Parallel.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

/// @file
/// Real CPU kernels in a simulated run. What they allocate and free is recorded, so their memory is right by construction. Their
/// results are kept if everything they read has values, and otherwise given back to the system.

namespace memprof::inline MEMPROF_ABI::detail {

/// How much a kernel may allocate in total.
inline constexpr std::size_t max_kernel_bytes = std::size_t{1} << 30;
/// How many bytes its arguments may have, which take no memory as zeros.
inline constexpr std::size_t max_argument_bytes = std::size_t{16} << 30;
/// Kernels that read at most this much run for real even if there is a rule: that takes microseconds. Tests of rules set it to 0.
[[gnu::visibility("default")]] inline constinit std::atomic<std::size_t> small_kernel_bytes{std::size_t{64} << 10};

/// Lets this thread run kernels for real until the end of the scope.
class [[nodiscard]] kernel_scope {
 public:
  kernel_scope(std::size_t max_bytes, bool is_hidden)
      : outer_most_bytes_(std::exchange(this_simulating_thread.max_kernel_bytes, max_bytes)), is_hidden_(is_hidden) {
    running_kernels.fetch_add(1, std::memory_order_relaxed);
    begun_kernels.fetch_add(1, std::memory_order_relaxed);
    if (is_hidden_) {
      ++this_simulating_thread.hidden_kernels;
      running_hidden_kernels.fetch_add(1, std::memory_order_relaxed);
    }
  }
  kernel_scope(const kernel_scope&) = delete;
  kernel_scope& operator=(const kernel_scope&) = delete;
  ~kernel_scope() {
    if (is_hidden_) {
      --this_simulating_thread.hidden_kernels;
      running_hidden_kernels.fetch_sub(1, std::memory_order_relaxed);
    }
    running_kernels.fetch_sub(1, std::memory_order_relaxed);
    this_simulating_thread.max_kernel_bytes = outer_most_bytes_;
  }

 private:
  c10::impl::ExcludeDispatchKeyGuard below_{c10::DispatchKeySet{{c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}}};
  std::size_t outer_most_bytes_;
  bool is_hidden_;
};

/// The arguments of a call, and the sizes of those that it writes, to be restored if a kernel fails.
class saved_arguments {
 public:
  saved_arguments(torch_call& call, const std::vector<at::Tensor>& written)
      : stack_(call.stack()),
        first_(call.stack().size() - call.size()),
        arguments_(stack_.begin() + static_cast<std::ptrdiff_t>(first_), stack_.end()) {
    for (const at::Tensor& tensor : written) {
      if (!is_dense(tensor)) continue;
      shapes_.push_back({tensor, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()});
    }
  }

  void restore() {
    stack_.resize(first_);
    stack_.insert(stack_.end(), arguments_.begin(), arguments_.end());
    // `resize_` sets the sizes before it asks for the memory.
    for (const shape& one : shapes_) {
      one.of.unsafeGetTensorImpl()->set_sizes_and_strides(one.sizes, one.strides);
      one.of.unsafeGetTensorImpl()->set_storage_offset(one.offset);
    }
  }

 private:
  struct shape {
    at::Tensor of;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t offset;
  };

  torch::jit::Stack& stack_;
  std::size_t first_;
  std::vector<c10::IValue> arguments_;
  std::vector<shape> shapes_;
};

/// Replaces the arguments with stand-ins.
inline void stand_in_for_arguments(torch_call& call, const operator_plan& plan, stand_ins& replaced) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    c10::IValue& value = call.argument(index);
    if (value.isDevice()) {
      value = c10::IValue{c10::Device{c10::kCPU}};
    } else if (plan.roles[index].is_pin_memory) {
      value = c10::IValue{};
    } else {
      map_tensors(value, [&](const at::Tensor& tensor) {
        if (is_sparse_on_cuda(tensor)) return replaced.sparse_stand_in_of(tensor, plan.roles[index].is_written);
        return is_dense(tensor) ? replaced.stand_in_of(tensor, plan.roles[index].is_written) : tensor;
      });
    }
  }
}

/// Turns a tensor made by a real kernel into one of the program's. Its block has already been recorded.
[[nodiscard]] inline at::Tensor simulated_result(const at::Tensor& made, bool has_values) {
  if (!made.has_storage() || !is_dense(made) || !made.is_cpu()) return made;
  c10::StorageImpl& storage = *made.storage().unsafeGetStorageImpl();
  const bool is_new = !is_fake(storage);
  if (is_new && storage.nbytes() != 0) {
    fake_block* const block = adopt(storage);
    if (block == nullptr) return made;  // from outside the capture
    const bool is_small = block->bytes <= max_valued_bytes(made.scalar_type());
    block->has_values.store(has_values && is_small, std::memory_order_relaxed);
    // Small tensors keep their bytes, although they are meaningless: any indices among them are valid.
    if (!is_small) forget_values(*block);
  }
  if (made.key_set().has(c10::DispatchKey::Fake)) return made;
  at::Tensor result = tensor_over(made.storage(), made.dtype(), made.sizes(), made.strides(), made.storage_offset());
  if (made.is_conj()) result._set_conj(true);
  if (made.is_neg()) result._set_neg(true);
  return result;
}

/// The results of a call, the last values on the stack.
template <class Visit>
void for_each_result(torch_call& call, Visit visit) {
  torch::jit::Stack& stack = call.stack();
  for (std::size_t index = stack.size() - call.called().schema().returns().size(); index < stack.size(); ++index) {
    visit(stack[index]);
  }
}

/// The keys below the Fake key by which the dispatcher finds the CPU kernel.
[[nodiscard]] inline c10::DispatchKeySet kernel_keys(c10::DispatchKeySet keys, bool has_cuda_tensor) {
  if (has_cuda_tensor) return c10::DispatchKeySet{c10::DispatchKey::CPU};
  return keys & c10::DispatchKeySet{c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake};
}

[[nodiscard]] inline std::vector<at::Tensor> written_tensors(const torch_call& call, const operator_plan& plan) {
  std::vector<at::Tensor> written;
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    if (role.is_written) written.push_back(tensor);
  });
  return written;
}

/// Runs the CPU kernel on what CPU tensors hold, and ends the call with its results. Rethrows what the kernel throws, including
/// `kernel_too_large` if it requests more than `max_bytes`, with the arguments unchanged.
/// `after(results)` is called before the results become the program's.
template <class After>
void run_kernel(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys, bool has_values, std::size_t max_bytes,
                After after) {
  const std::vector<at::Tensor> written = written_tensors(call, plan);
  saved_arguments saved{call, written};
  stand_ins replaced;
  try {
    stand_in_for_arguments(call, plan, replaced);
    const kernel_scope scope{max_bytes, false};
    call.called().redispatchBoxed(kernel_keys(keys, false), &call.stack());
  } catch (...) {
    saved.restore();
    throw;
  }
  after(torch::jit::last(call.stack(), call.called().schema().returns().size()).vec());
  replaced.take_over_sizes();
  for_each_result(call, [&](c10::IValue& result) {
    map_tensors(result, [&](const at::Tensor& made) {
      const at::Tensor original = replaced.original_of(made);
      if (original.defined()) return original;
      for (const at::Tensor& one : written) {
        if (one.unsafeGetTensorImpl() == made.unsafeGetTensorImpl()) return one;
      }
      return simulated_result(made, has_values);
    });
  });
  for (const at::Tensor& tensor : written) has_values ? keep_values(tensor) : discard_values(tensor);
}

inline void run_kernel(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys, bool has_values,
                       std::size_t max_bytes) {
  run_kernel(call, plan, keys, has_values, max_bytes, [](const torch::jit::Stack&) {});
}

/// The same on true values: the call either happens completely, or not at all and returns false.
[[nodiscard]] inline bool run_on_values(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys) {
  constexpr std::size_t max_bytes = std::size_t{64} << 20;
  pending_events events;
  try {
    run_kernel(call, plan, keys, true, max_bytes);
  } catch (const kernel_too_large&) {
    return false;
  }
  events.commit();
  return true;
}

/// What a hidden kernel has returned; as its blocks were not recorded, neither are their frees.
class [[nodiscard]] hidden_results {
 public:
  explicit hidden_results(torch::jit::Stack results) : results_(std::move(results)) {}
  hidden_results(hidden_results&& other) noexcept : results_(std::exchange(other.results_, {})) {}
  hidden_results& operator=(hidden_results&&) = delete;
  ~hidden_results() {
    ++this_simulating_thread.hidden_kernels;
    results_.clear();
    --this_simulating_thread.hidden_kernels;
  }

  [[nodiscard]] const torch::jit::Stack& all() const noexcept { return results_; }

 private:
  torch::jit::Stack results_;
};

/// What the CPU kernel computes for fake CUDA tensors. Nothing is recorded, and the call goes on as if nothing had happened,
/// except that the arguments that the kernel writes are written.
[[nodiscard]] inline hidden_results compute_hidden(const torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys,
                                                   stand_ins& replaced, std::size_t max_bytes) {
  torch::jit::Stack stack;
  bool has_tensor = false;
  for (std::size_t index = 0; index < call.size(); ++index) stack.push_back(call.argument(index));
  torch_call copy{call.called(), stack, nullptr};
  for_each_tensor(copy, plan, [&](const at::Tensor&, const argument_role&) { has_tensor = true; });
  stand_in_for_arguments(copy, plan, replaced);
  const bool is_of_sparse = replaced.has_sparse() || (plan.has_sparse_kernel && names_sparse_layout(call, plan));
  const kernel_scope scope{max_bytes, true};
  const c10::DispatchKeySet of_sparse{c10::DispatchKey::SparseCPU};
  call.called().redispatchBoxed(is_of_sparse ? of_sparse : kernel_keys(keys, has_tensor), &stack);
  return hidden_results{std::move(stack)};
}

/// The same for a call on values; none if the kernel needs too much memory, or refuses them.
[[nodiscard]] inline std::optional<hidden_results> compute_for_cuda(const torch_call& call, const operator_plan& plan,
                                                                    c10::DispatchKeySet keys) {
  constexpr std::size_t max_bytes = std::size_t{64} << 20;
  stand_ins replaced;
  try {
    return compute_hidden(call, plan, keys, replaced, max_bytes);
  } catch (const kernel_too_large&) {
    return std::nullopt;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

/// Gives the results of a finished call the bytes that were computed for them; those of small results are kept, and are values if
/// `has_values`.
inline void take_over_values(torch_call& call, const hidden_results& computed, bool has_values) {
  std::size_t index = 0;
  for_each_result(call, [&](c10::IValue& result) {
    const c10::IValue& value = computed.all()[index++];
    if (!result.isTensor()) {
      if (!result.isTensorList()) result = value;
      return;
    }
    const at::Tensor& to = result.toTensor();
    if (!to.defined() || !is_dense(to) || !value.isTensor() || !value.toTensor().defined()) return;
    if (to.sizes() != value.toTensor().sizes()) return;
    if (!is_small(to)) {
      if (has_values) forget_values(to);
      return;
    }
    stand_ins replaced;
    const at::Tensor memory = replaced.stand_in_of(to, true);
    if (memory.storage().data() != value.toTensor().storage().data()) {
      const kernel_scope scope{max_kernel_bytes, true};
      memory.copy_(value.toTensor());
    }
    if (has_values) keep_values(to);
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
