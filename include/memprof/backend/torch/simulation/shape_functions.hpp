#pragma once

#include <memprof/backend/torch/simulation/meta_views.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

/// @file
/// Shape functions, which libtorch calls Meta kernels.

namespace memprof::inline MEMPROF_ABI::detail {

/// Sets the device on which new tensors of the running Meta kernel count, until the end of the scope.
class [[nodiscard]] meta_device_scope {
 public:
  explicit meta_device_scope(c10::Device device) : outer_(std::exchange(this_simulating_thread.meta_device, device)) {}
  meta_device_scope(const meta_device_scope&) = delete;
  meta_device_scope& operator=(const meta_device_scope&) = delete;
  ~meta_device_scope() { this_simulating_thread.meta_device = outer_; }

 private:
  std::optional<c10::Device> outer_;
};

/// Runs the Meta kernel on arguments on the Meta device.
inline void run_on_meta(torch_call& call) {
  const std::size_t results = call.called().schema().returns().size();
  call.called().redispatchBoxed(c10::DispatchKeySet{c10::DispatchKey::Meta}, &call.stack());
  torch::jit::Stack& stack = call.stack();
  if (!this_simulating_thread.meta_device.has_value()) return;  // the program's own use of the Meta device
  for (std::size_t index = stack.size() - results; index < stack.size(); ++index) {
    if (stack[index].isTensor()) replace_resized_block(stack[index].toTensor());
  }
}

/// Replaces all tensors with views on the Meta device, and all other devices with the Meta device.
inline void view_arguments(torch_call& call, meta_views& views) {
  const std::vector<c10::Argument>& schema = call.called().schema().arguments();
  bool has_tensor = false;
  std::optional<std::size_t> missing_device;
  for (std::size_t index = 0; index < call.size(); ++index) {
    c10::IValue& value = call.argument(index);
    if (value.isDevice()) {
      views.set_device(value.toDevice());
      value = c10::IValue{c10::Device{c10::kMeta}};
    } else if (value.isNone()) {
      if (schema[index].name() == "device") missing_device = index;
    } else if (value.isBool()) {
      if (schema[index].name() == "pin_memory") value = c10::IValue{};  // the Meta device has no host memory to pin
    } else {
      map_tensors(value, [&](const at::Tensor& tensor) {
        has_tensor = true;
        return views.view_of(tensor);
      });
    }
  }
  // A factory without a device creates its tensor on the CPU; other operators take the device from their input.
  if (!has_tensor && missing_device.has_value()) call.argument(*missing_device) = c10::IValue{c10::Device{c10::kMeta}};
}

/// Runs the operator's Meta kernel on views of the arguments and turns its results into fake tensors.
inline void run_shape_function(torch_call& call) {
  bool is_on_meta = false;
  for (std::size_t index = 0; index < call.size() && !is_on_meta; ++index) {
    const c10::IValue& value = call.argument(index);
    is_on_meta = (value.isDevice() && value.toDevice().is_meta()) || (value.isTensor() && value.toTensor().is_meta());
    if (value.isTensorList()) {
      for (const c10::IValue& element : value.toListRef()) is_on_meta |= element.toTensor().is_meta();
    }
  }
  if (is_on_meta) return run_on_meta(call);
  const std::size_t results = call.called().schema().returns().size();
  meta_views views;
  view_arguments(call, views);
  {
    const meta_device_scope scope{views.device()};
    call.called().redispatchBoxed(c10::DispatchKeySet{c10::DispatchKey::Meta}, &call.stack());
    torch::jit::Stack& stack = call.stack();
    for (std::size_t index = stack.size() - results; index < stack.size(); ++index) {
      map_tensors(stack[index], [&](const at::Tensor& made) { return views.original_of(made); });
    }
  }
  views.take_over_changes();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
