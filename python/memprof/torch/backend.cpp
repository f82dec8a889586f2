// A library for memprof's Python package that records libtorch, or with MEMPROF_TORCH_SIMULATION simulates it (NO_DISPATCH). It
// links libtorch, but neither Python nor libtorch_python; the capture is that of the extension module, with which it shares the
// registry.
#include "backend.h"

#include <memprof/backend/torch.hpp>
#ifdef MEMPROF_TORCH_SIMULATION
#include <memprof/backend/torch_no_dispatch.hpp>
#endif
#include <memprof/detail/error.hpp>
#include <memprof/trace/device_description.hpp>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>

namespace {

struct torch_source {
  memprof::event_sink writer;
#ifdef MEMPROF_TORCH_SIMULATION
  memprof::torch_no_dispatch backend;
#else
  memprof::torch_backend backend;
#endif
};

memprof::capture_options options_of(const void* device, std::size_t device_bytes) {
  memprof::capture_options options;
  if (device_bytes != sizeof options.device)
    memprof::detail::raise("memprof.torch: the library is of another memprof; remove it");
  std::memcpy(&options.device, device, device_bytes);
  return options;
}

void* attach(const void* device, std::size_t device_bytes, char* error, std::size_t room) {
  try {
    auto source = std::make_unique<torch_source>();
    source->backend.attach(source->writer, options_of(device, device_bytes));
    return source.release();
  } catch (const std::exception& fault) {
    std::strncpy(error, fault.what(), room - 1);
    error[room - 1] = '\0';
    return nullptr;
  }
}

void detach(void* source) {
  auto& attached = *static_cast<torch_source*>(source);
  attached.backend.detach(attached.writer);
}

void report_facts([[maybe_unused]] void* source) {
#if _GLIBCXX_USE_CXX11_ABI  // facts hold std::strings, and the capture has the new ones
  auto& attached = *static_cast<torch_source*>(source);
  attached.backend.report_facts(attached.writer);
#endif
}

void destroy(void* source) { delete static_cast<torch_source*>(source); }

void annotate(void* implementation, const char* name, unsigned category) {
  if (memprof::event_sink{}.capture() == 0) return;
  const memprof::detail::recording_suppressor hidden;
  const at::Tensor tensor{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(static_cast<c10::TensorImpl*>(implementation))};
  const auto kind = static_cast<memprof::category>(category);
  memprof::detail::annotate_tensor(tensor, name, kind);
  if (kind != memprof::category::parameter) return;
  memprof::detail::watch_gradient(tensor, name);
  if (const auto* const gradient = memprof::detail::find_gradient_annotation(tensor)) gradient->annotate(tensor);
}

void begin_operators() { memprof::detail::process_operator_counter.begin(); }
void end_operators() { memprof::detail::process_operator_counter.end(); }

#ifdef MEMPROF_TORCH_SIMULATION
memprof_torch_usage usage() {
  const memprof::detail::device_usage& now = memprof::detail::fake_device_usage;
  return {now.live(), now.peak(), now.allocated(), now.allocations(), now.deallocations(), now.reserved()};
}

constexpr memprof_torch_simulation simulation{[] { ++memprof::detail::this_simulating_thread.real_scopes; },
                                              [] { --memprof::detail::this_simulating_thread.real_scopes; },
                                              [] { memprof::detail::execute_in_this_process(); },
                                              usage,
                                              [] { memprof::detail::fake_device_usage.reset_peak(); },
                                              [] { memprof::detail::fake_device_usage.reset_reserved(); },
                                              [](std::int64_t bytes) { memprof::detail::fake_device_usage.set_limit(bytes); }};
constexpr const memprof_torch_simulation* simulation_calls = &simulation;
#else
constexpr const memprof_torch_simulation* simulation_calls = nullptr;
#endif

constexpr memprof_torch_calls calls{MEMPROF_TORCH_CALLS_VERSION,
                                    TORCH_VERSION,
                                    attach,
                                    detach,
                                    report_facts,
                                    destroy,
                                    annotate,
                                    begin_operators,
                                    end_operators,
                                    simulation_calls};

}  // namespace

extern "C" [[gnu::visibility("default")]] const memprof_torch_calls* memprof_torch() { return &calls; }
