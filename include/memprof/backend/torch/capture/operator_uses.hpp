#pragma once

#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/record/event_sink.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <vector>

/// @file
/// Which blocks operators read and write, for captures with `capture_options::uses`: what the outermost operator gets is used
/// until it ends, and what it returns is used then. What operators within it pass to each other they also free.

namespace memprof::inline MEMPROF_ABI::detail {

inline void record_use(const at::Tensor& tensor, bool until_operation_ends) {
  const void* const address = tensor.is_nested() ? nullptr : address_of_elements(tensor);
  if (address != nullptr) event_sink{}.use(address, until_operation_ends);
}

inline void record_uses(c10::ArrayRef<const c10::IValue> values, bool until_operation_ends) noexcept {
  try {
    for (const c10::IValue& value : values) {
      if (value.isTensor()) {
        record_use(value.toTensor(), until_operation_ends);
      } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef()) {
          if (element.isTensor()) record_use(element.toTensor(), until_operation_ends);
        }
      }
    }
  } catch (...) {  // a tensor without a storage, or out of memory: the operator's scope still begins
  }
}

// As for `shapes_of_inputs`, a unit without NDEBUG must not ask libtorch for the inputs.
#if defined(NDEBUG)

inline namespace with_inputs {

/// Call when an operator has begun. `position`: its own in `open`, from 1.
inline void record_input_uses(torch_thread& self, const at::RecordFunction& function, std::uint32_t position) noexcept {
  if (self.using_operator != 0 || !event_sink{}.records_uses() || !function.needsInputs()) return;
  self.using_operator = position;
  record_uses(function.inputs(), true);
}

}  // namespace with_inputs

#else

inline namespace without_inputs {

inline void record_input_uses(torch_thread&, const at::RecordFunction&, std::uint32_t) noexcept {}

}  // namespace without_inputs

#endif

/// Call when an operator ends.
inline void record_output_uses(torch_thread& self, const at::RecordFunction& function, std::uint32_t position) noexcept {
  if (self.using_operator != position || !event_sink{}.records_uses()) return;
  const std::vector<c10::IValue>& outputs = function.outputs();
  record_uses(c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()), false);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
