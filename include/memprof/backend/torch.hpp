#pragma once

/// @file
/// Captures of programs that use libtorch: `memprof::begin_capture<memprof::torch_backend>()` records the bytes of every CPU
/// tensor on every thread, and which operator allocated them in which scope of the program. docs/torch.md lists what is not seen.
///
/// Needs libtorch 2.1 or later (CMake: `memprof::torch`); docs/torch.md lists the tested versions. With `MEMPROF_ENABLED=0`,
/// everything here still compiles and does nothing.

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

/// Counts the bytes of CPU tensors in the space `cpu`, and nothing else: scopes and categories come only from the program.
///
/// While attached, libtorch allocates CPU tensors through memprof's allocator, which forwards to the previous one. Attach at a
/// quiet point: libtorch exchanges allocators without a lock. Tensors may outlive the capture, and earlier tensors may be freed
/// in it. Throws `memprof::error` if libtorch does not accept the allocator.
///
/// Cost: two events per tensor, about 40 ns in total; libtorch itself needs 225.
class torch_allocations {
 public:
  static constexpr std::string_view name = "torch_allocations";

  void attach(event_sink& writer, const capture_options&) {
    detail::process_operator_table().begin(writer.capture());
    detail::process_device_times().begin_capture();
    detail::begin_recording_tensors();  // the last call that may throw, so nothing needs undoing
  }
  void detach(event_sink&) noexcept { detail::end_recording_tensors(); }

  void report_facts(event_sink& writer) const {
    detail::process_device_times().tell(detail::process_operator_table());
    const std::vector<pytorch_operation> operators = detail::process_operator_table().rows();
    if (!operators.empty()) writer.add_facts(to_table(operators));
  }
};

/// As `torch_allocations`, and opens an operation for each libtorch operator, so that each block belongs to the innermost one.
/// Nodes of the backward pass appear under "gradients of X", where X is the program's innermost scope around the forward
/// operator.
///
/// Categories: blocks allocated by an operator that autograd records are `activation`; those allocated in the backward pass are
/// `temporary` until `annotate_module` marks them as gradients.
///
/// Shape, element type and `requires_grad` are recorded for each block that an operator returns (docs/torch.md covers views and
/// nested operators), until an annotation of the program says more.
///
/// Cost: about 350 ns more per operator, a third of which libtorch needs to call an observer and to copy the outputs for it; 0.5
/// MiB of memory, and about 16 KiB per thread.
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
