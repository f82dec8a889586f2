#pragma once

/// @file
/// Captures of programs that use libtorch: `memprof::begin_capture<memprof::torch_backend>()` sees the bytes of every CPU tensor
/// on every thread, and which operator allocated them for which of the program's scopes. docs/torch.md says what is not seen.
///
/// Needs libtorch 2.1 or later (CMake: `memprof::torch`); docs/torch.md says with which it was tested. With `MEMPROF_ENABLED=0`
/// everything here is there and does nothing.

#include <memprof/backend/torch/version.hpp>

#include <memprof/backend/torch/capture/module_annotation.hpp>
#include <memprof/backend/torch/capture/optimizer_annotation.hpp>
#include <memprof/backend/torch/capture/tensor_annotation.hpp>
#include <memprof/backend/torch/capture/track_pytorch_ops.hpp>
#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/torch/capture/cpu_allocator.hpp>
#include <memprof/backend/torch/capture/device_times.hpp>
#include <memprof/backend/torch/capture/forward_scopes.hpp>
#include <memprof/backend/torch/capture/operator_scopes.hpp>
#include <memprof/backend/torch/capture/operator_table.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/trace/fact_table.hpp>

#include <vector>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Counts the bytes of CPU tensors in the space `cpu`, and nothing else: the scopes are those of the program, and a category is
/// what they or annotations tell.
///
/// While it is attached, libtorch allocates CPU tensors through an allocator of memprof's, which forwards to the one before.
/// Attach it at a quiet point: libtorch exchanges allocators without a lock. Tensors may outlive the capture, and tensors from
/// before may be freed in it. Throws `memprof::error` if libtorch does not let the allocator in.
///
/// Cost: two events for each tensor, some 40 ns together where libtorch itself needs 225.
class torch_allocations {
 public:
  static constexpr std::string_view name = "torch_allocations";

  void attach(event_sink& writer, const capture_options&) {
    detail::process_operator_table().begin(writer.capture());
    detail::process_device_times().begin_capture();
    detail::begin_recording_tensors();  // the last that may throw, so nothing needs undoing
  }
  void detach(event_sink&) noexcept { detail::end_recording_tensors(); }

  void report_facts(event_sink& writer) const {
    detail::process_device_times().tell(detail::process_operator_table());
    const std::vector<pytorch_operation> operators = detail::process_operator_table().rows();
    if (!operators.empty()) writer.add_facts(to_table(operators));
  }
};

/// The same, and an operation for each operator of libtorch, so that each block belongs to the innermost of them. Nodes of the
/// backward pass stand under "gradients of X", X being the innermost scope of the program around the operator of the forward
/// pass.
///
/// Categories: what an operator allocates that autograd records is an `activation`; what the backward pass allocates is
/// `temporary`, until `annotate_module` tells that it is a gradient.
///
/// Shape, element type and `requires_grad`: those of each block that an operator returns (docs/torch.md says which, of views and
/// nested operators), until an annotation of the program says more.
///
/// Cost: some 270 ns more for each operator, most of which libtorch needs to call an observer and to copy the outputs for it;
/// 0.5 MiB of memory, and some 12 KiB a thread.
class torch_backend {
 public:
  static constexpr std::string_view name = "torch_backend";

  void attach(event_sink& writer, const capture_options& options) {
    operators_.begin();
    try {
      allocations_.attach(writer, options);
    } catch (...) {
      operators_.end();
      throw;
    }
  }
  void detach(event_sink& writer) noexcept {
    operators_.end();
    allocations_.detach(writer);
  }
  void report_facts(event_sink& writer) const { allocations_.report_facts(writer); }

 private:
  torch_allocations allocations_;
  detail::operator_scopes operators_;
};

}  // namespace enabled
#else
inline namespace disabled {

class torch_allocations {
 public:
  static constexpr std::string_view name = "torch_allocations";
  void attach(event_sink&, const capture_options&) noexcept {}
  void detach(event_sink&) noexcept {}
  void report_facts(event_sink&) noexcept {}
};

class torch_backend {
 public:
  static constexpr std::string_view name = "torch_backend";
  void attach(event_sink&, const capture_options&) noexcept {}
  void detach(event_sink&) noexcept {}
  void report_facts(event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
