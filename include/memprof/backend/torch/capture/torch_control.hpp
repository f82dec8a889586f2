#pragma once

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch/capture/cpu_allocator.hpp>
#include <memprof/backend/torch/capture/device_times.hpp>
#include <memprof/backend/torch/capture/operator_table.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/trace/fact_table.hpp>

#include <vector>

/// @file
/// Beginning and end of a capture of libtorch: the member functions of `torch_allocations` and `torch_backend`.

namespace memprof::inline MEMPROF_ABI {
inline namespace enabled {

MEMPROF_TORCH_SEPARABLE void torch_allocations::attach(extend::event_sink& writer, const capture_options&) {
  detail::process_operator_table().begin(writer.capture());
  detail::process_device_times().begin_capture();
  detail::begin_recording_tensors();  // the last call that may throw, so nothing needs undoing
}

MEMPROF_TORCH_SEPARABLE void torch_allocations::detach(extend::event_sink&) noexcept { detail::end_recording_tensors(); }

MEMPROF_TORCH_SEPARABLE void torch_allocations::report_facts(extend::event_sink& writer) const {
  detail::process_device_times().tell(detail::process_operator_table());
  const std::vector<pytorch_operation> operators = detail::process_operator_table().rows();
  if (!operators.empty()) writer.add_facts(extend::to_table(operators));
}

MEMPROF_TORCH_SEPARABLE void torch_backend::attach(extend::event_sink& writer, const capture_options& options) {
  operators_.begin();
  try {
    allocations_.attach(writer, options);
  } catch (...) {
    operators_.end();
    throw;
  }
}

MEMPROF_TORCH_SEPARABLE void torch_backend::detach(extend::event_sink& writer) noexcept {
  operators_.end();
  allocations_.detach(writer);
}

MEMPROF_TORCH_SEPARABLE void torch_backend::report_facts(extend::event_sink& writer) const { allocations_.report_facts(writer); }

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
