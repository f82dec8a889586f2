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
#include <memprof/backend/torch/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/torch/capture/operator_scopes.hpp>
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

  void attach(extend::event_sink& writer, const capture_options& options);
  void detach(extend::event_sink& writer) noexcept;
  void report_facts(extend::event_sink& writer) const;
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

  void attach(extend::event_sink& writer, const capture_options& options);
  void detach(extend::event_sink& writer) noexcept;
  void report_facts(extend::event_sink& writer) const;

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
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

class torch_backend {
 public:
  static constexpr std::string_view name = "torch_backend";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/torch_control.hpp>
#endif
