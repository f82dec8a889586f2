#pragma once

#include <memprof/backend/torch/simulation/estimated_call.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/meta_views.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// @file
/// The kernel of the Fake dispatch key, which stands between autograd and the kernels of the devices: it is called for every
/// operation of a simulated thread and for every operation on a claimed tensor, and makes the results without data.

namespace memprof::detail {

/// Whether a capture simulates.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> is_simulating{false};

/// Whether operations of this thread run for real.
[[nodiscard]] inline bool runs_for_real() noexcept {
  // Relaxed: the program orders begin and end of the capture with its own work.
  return !is_simulating.load(std::memory_order_relaxed) || this_simulating_thread.real_scopes != 0;
}

/// Calls `visit` for every tensor among the arguments of a call, also within lists.
template <class Visit>
void for_each_tensor(const torch_call& call, Visit visit) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    const c10::IValue& value = call.argument(index);
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() && element.toTensor().defined()) visit(element.toTensor());
      }
    }
  }
}

/// Whether a call is one within a Meta kernel, or the program's own on the Meta device: it is already without data.
[[nodiscard]] inline bool is_on_meta(const torch_call& call) {
  bool is_meta = false;
  for (std::size_t index = 0; index < call.size() && !is_meta; ++index) {
    is_meta = call.argument(index).isDevice() && call.argument(index).toDevice().is_meta();
  }
  if (!is_meta) for_each_tensor(call, [&](const at::Tensor& tensor) { is_meta |= tensor.is_meta(); });
  return is_meta;
}

/// Runs the kernels of the devices, as if the Fake key were not there.
inline void run_for_real(torch_call& call, c10::DispatchKeySet keys) {
  for_each_tensor(call, [&](const at::Tensor& tensor) {
    TORCH_CHECK(!is_fake(tensor), call.called().operator_name(),
                is_simulating.load(std::memory_order_relaxed)
                    ? ": a tensor of a NO_DISPATCH capture has no data, so it cannot be computed with in a real_scope; make its "
                      "data in the scope"
                    : ": this tensor was made in a NO_DISPATCH capture that has ended, so it has no data; make it anew");
  });
  call.called().redispatchBoxed(keys & c10::DispatchKeySet{c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake},
                                &call.stack());
}

/// Runs the Meta kernel on arguments that are on the Meta device.
inline void run_on_meta(torch_call& call) {
  const std::size_t results = call.called().schema().returns().size();
  call.called().redispatchBoxed(c10::DispatchKeySet{c10::DispatchKey::Meta}, &call.stack());
  torch::jit::Stack& stack = call.stack();
  if (!this_simulating_thread.claimed.has_value()) return;  // the program's own
  for (std::size_t index = stack.size() - results; index < stack.size(); ++index) {
    if (stack[index].isTensor()) fake_resized_storage(stack[index].toTensor());
  }
}

/// Where new tensors of the operation that runs are counted, until the end of the scope.
class [[nodiscard]] claimed_scope {
 public:
  explicit claimed_scope(c10::Device device) : before_(std::exchange(this_simulating_thread.claimed, device)) {}
  claimed_scope(const claimed_scope&) = delete;
  claimed_scope& operator=(const claimed_scope&) = delete;
  ~claimed_scope() { this_simulating_thread.claimed = before_; }

 private:
  std::optional<c10::Device> before_;
};

/// Puts shells in the place of the tensors of one argument; false if it has none.
inline bool shell_argument(c10::IValue& value, meta_views& shells) {
  if (value.isTensor()) {
    const bool is_defined = value.toTensor().defined();
    value = c10::IValue{shells.shell_of(value.toTensor())};
    return is_defined;
  }
  if (value.isTensorList()) {
    std::vector<at::Tensor> tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = shells.shell_of(tensor);
    value = c10::IValue{std::move(tensors)};
    return true;
  }
  if (!value.isList()) return false;
  bool has_tensor = false;
  c10::List<c10::IValue> elements = value.toList().copy();  // of optional tensors
  for (std::size_t index = 0; index < elements.size(); ++index) {
    const c10::IValue& element = elements.get(index);
    if (!element.isTensor() || !element.toTensor().defined()) continue;
    elements.set(index, c10::IValue{shells.shell_of(element.toTensor())});
    has_tensor = true;
  }
  if (has_tensor) value = c10::IValue{elements};
  return has_tensor;
}

/// Puts shells in the place of all arguments, and the Meta device in that of others.
inline void shell_arguments(torch_call& call, meta_views& shells) {
  const std::vector<c10::Argument>& schema = call.called().schema().arguments();
  bool has_tensor = false;
  std::optional<std::size_t> missing_device;
  for (std::size_t index = 0; index < call.size(); ++index) {
    c10::IValue& value = call.argument(index);
    if (value.isDevice()) {
      shells.set_device(value.toDevice());
      value = c10::IValue{c10::Device{c10::kMeta}};
    } else if (value.isNone()) {
      if (schema[index].name() == "device") missing_device = index;
    } else if (value.isBool()) {
      if (schema[index].name() == "pin_memory") value = c10::IValue{};  // the Meta device has no host memory to pin
    } else {
      has_tensor |= shell_argument(value, shells);
    }
  }
  // A factory without a device makes its tensor on the CPU; what has an input takes the device from that.
  if (!has_tensor && missing_device.has_value()) call.argument(*missing_device) = c10::IValue{c10::Device{c10::kMeta}};
}

/// Runs the operator's Meta kernel on shells of the arguments, and turns its results into claimed tensors.
inline void run_meta_kernel(torch_call& call) {
  if (is_on_meta(call)) return run_on_meta(call);
  const std::size_t results = call.called().schema().returns().size();
  meta_views shells;
  shell_arguments(call, shells);
  {
    const claimed_scope scope{shells.device()};
    call.called().redispatchBoxed(c10::DispatchKeySet{c10::DispatchKey::Meta}, &call.stack());
    torch::jit::Stack& stack = call.stack();
    for (std::size_t index = stack.size() - results; index < stack.size(); ++index) {
      if (stack[index].isTensor()) {
        stack[index] = c10::IValue{shells.original_of(stack[index].toTensor())};
      } else if (stack[index].isTensorList()) {
        std::vector<at::Tensor> tensors = stack[index].toTensorVector();
        for (at::Tensor& tensor : tensors) tensor = shells.original_of(tensor);
        stack[index] = c10::IValue{std::move(tensors)};
      }
    }
  }
  shells.take_over_changes();
}

/// Guesses, and says so in the profile; throws `c10::Error` if there is nothing to guess by.
[[gnu::cold, gnu::noinline]] inline void run_estimate(torch_call& call, const operator_plan& plan) {
  call.approximate("no rule and no shape function: results take the sizes of the inputs");
  TORCH_CHECK(estimate_call(call), "NO_DISPATCH: nothing is known of the results of '", plan.name,
              "'; tell them before the capture in one line: memprof::register_torch_rule(\"", plan.name,
              "\", [](memprof::torch_call& call) { call.returns(call.empty(sizes, call.tensor(0))); });");
}

/// One operation of a simulated thread.
inline void simulate(torch_call& call) {
  operator_plan& plan = all_operator_plans().plan_of(call.called());
  const std::int64_t bytes_before = this_simulating_thread.allocated_bytes;
  // Acquire pairs with the release where the rule is set.
  if (const torch_rule_function* const rule = plan.rule.load(std::memory_order_acquire)) {
    (*rule)(call);
  } else if (plan.has_meta_kernel) {
    if (plan.is_only_composed)
      call.approximate("simulated by the operators it can be composed of; its kernel may hold other memory");
    run_meta_kernel(call);
  } else {
    run_estimate(call, plan);
  }
  if (call.cause() != nullptr) plan.count_estimate(call.cause(), this_simulating_thread.allocated_bytes - bytes_before);
}

}  // namespace memprof::detail
