// The library that records libtorch for memprof's Python package. It links libtorch, but neither Python nor libtorch_python; the
// capture is that of the extension module, with which it shares the registry.
#include "backend.h"

#include <memprof/backend/torch.hpp>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>

namespace {

struct torch_source {
  memprof::event_sink writer;
  memprof::torch_backend backend;
};

void* attach(char* error, std::size_t room) {
  try {
    auto source = std::make_unique<torch_source>();
    source->backend.attach(source->writer, {});
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

constexpr memprof_torch_calls calls{
    MEMPROF_TORCH_CALLS_VERSION, TORCH_VERSION, attach, detach, report_facts, destroy, annotate, begin_operators, end_operators};

}  // namespace

extern "C" [[gnu::visibility("default")]] const memprof_torch_calls* memprof_torch() { return &calls; }
