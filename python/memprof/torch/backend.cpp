// A library for memprof's Python package that records libtorch, with MEMPROF_TORCH_CUDA also on CUDA devices, or with
// MEMPROF_TORCH_SIMULATION simulates it (NO_DISPATCH). It links libtorch, but neither Python nor libtorch_python; the capture is
// that of the extension module, with which it shares the registry.
#include "backend.h"

#include <memprof/backend/torch.hpp>
#ifdef MEMPROF_TORCH_CUDA
#include <memprof/backend/torch_cuda.hpp>
#endif
#ifdef MEMPROF_TORCH_SIMULATION
#include <memprof/backend/torch/simulation/read_memory.hpp>
#include <memprof/backend/torch/simulation/resized_storage.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#endif
#include <memprof/detail/error.hpp>
#include <memprof/trace/device_description.hpp>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#ifdef MEMPROF_TORCH_SIMULATION
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
namespace c10d {
[[gnu::weak]] c10::Registry<c10::DeviceType, std::unique_ptr<Timer>, c10::Device>* TimerRegistry();  // a libtorch may lack it
}
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>

namespace {

struct torch_source {
  memprof::extend::event_sink writer;
#ifdef MEMPROF_TORCH_SIMULATION
  memprof::torch_no_dispatch backend;
#else
  memprof::torch_backend backend;
#endif
#ifdef MEMPROF_TORCH_CUDA
  memprof::torch_cuda_backend cuda;
  bool records_cuda = false;
#endif
};

memprof::capture_options options_of(const void* device, std::size_t device_bytes) {
  memprof::capture_options options;
  if (device_bytes != sizeof options.device)
    memprof::detail::raise("memprof.torch: the library is of another memprof; remove it");
  std::memcpy(&options.device, device, device_bytes);
  return options;
}

#ifdef MEMPROF_TORCH_SIMULATION
/// DistributedDataParallel times its first steps with events of the CUDA driver. Where the device is not there, it has no timer,
/// as in a libtorch without CUDA.
void leave_reducers_without_timers() {
  if (!memprof::detail::process_cuda_hooks().are_taken_over() || &c10d::TimerRegistry == nullptr) return;
  static const bool is_done = [] {
    c10d::TimerRegistry()->Register(
        c10::kCUDA, [](c10::Device) { return std::unique_ptr<c10d::Timer>{}; }, c10::REGISTRY_PREFERRED);
    return true;
  }();
  static_cast<void>(is_done);
}
#endif

void* attach(const void* device, std::size_t device_bytes, char* error, std::size_t room) {
  try {
    auto source = std::make_unique<torch_source>();
    source->backend.attach(source->writer, options_of(device, device_bytes));
#ifdef MEMPROF_TORCH_SIMULATION
    leave_reducers_without_timers();
#endif
    return source.release();
  } catch (const std::exception& fault) {
    std::strncpy(error, fault.what(), room - 1);
    error[room - 1] = '\0';
    return nullptr;
  }
}

#ifdef MEMPROF_TORCH_CUDA
void attach_cuda(void* source) {
  auto& attached = *static_cast<torch_source*>(source);
  if (attached.records_cuda) return;
  attached.records_cuda = true;
  attached.cuda.attach(attached.writer, {});
}
constexpr auto* attach_cuda_if_compiled = &attach_cuda;
#else
constexpr void (*attach_cuda_if_compiled)(void*) = nullptr;
#endif

void detach(void* source) {
  auto& attached = *static_cast<torch_source*>(source);
  attached.backend.detach(attached.writer);
#ifdef MEMPROF_TORCH_CUDA
  if (attached.records_cuda) attached.cuda.detach(attached.writer);
#endif
}

void report_facts(void* source) {
  auto& attached = *static_cast<torch_source*>(source);
  attached.backend.report_facts(attached.writer);
#ifdef MEMPROF_TORCH_CUDA
  if (attached.records_cuda) attached.cuda.report_facts(attached.writer);
#endif
}

void destroy(void* source) { delete static_cast<torch_source*>(source); }

void annotate(void* implementation, const char* name, unsigned category) {
  if (memprof::extend::event_sink{}.capture() == 0) return;
  const memprof::detail::recording_suppressor hidden;
  const at::Tensor tensor{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(static_cast<c10::TensorImpl*>(implementation))};
  const auto kind = static_cast<memprof::category>(category);
  memprof::detail::annotate_tensor(tensor, name, kind);
  if (kind != memprof::category::parameter) return;
  memprof::detail::watch_gradient(tensor, name);
  if (const auto* const gradient = memprof::detail::find_gradient_annotation(tensor)) gradient->annotate(tensor);
}

void name_callers(std::uint32_t (*caller)(std::size_t bytes)) {
  memprof::detail::caller_of_tensor.store(caller, std::memory_order_relaxed);
}

void begin_operators() { memprof::detail::process_operator_counter.begin(); }
void end_operators() { memprof::detail::process_operator_counter.end(); }

#ifdef MEMPROF_TORCH_SIMULATION
void use_allocator(const memprof_torch_allocator* model) {
  static memprof::detail::device_allocator used{};
  memprof::detail::fake_cuda_device.set_allocator(nullptr);
  if (model == nullptr) return;
  used = {model->self, model->has_room, model->allocate, model->deallocate, model->stream, model->try_to_wait, model->add_work};
  memprof::detail::fake_cuda_device.set_allocator(&used);
}

memprof_torch_knowledge knowledge_of(void* implementation) {
  const at::Tensor tensor{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(static_cast<c10::TensorImpl*>(implementation))};
  if (!memprof::detail::is_read_unknown(tensor)) return memprof_torch_known;
  return memprof::detail::is_late_uniform_draw(tensor) ? memprof_torch_uniform_draw : memprof_torch_unknown;
}

void list_decision(const char* decision) {
  const memprof::extend::event_sink sink;
  if (!memprof::detail::is_simulating.load(std::memory_order_relaxed) || sink.capture() == 0) return;
  memprof::detail::unknown_reads::instance().add_decision(sink.label_of(decision));
}

bool read_memory(void* implementation, const char* method, char* error, std::size_t room) {
  const at::Tensor tensor{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(static_cast<c10::TensorImpl*>(implementation))};
  try {
    memprof::detail::read_memory(tensor, memprof::extend::event_sink{}.label_of(method));
    return true;
  } catch (const c10::Error& fault) {
    std::strncpy(error, fault.what_without_backtrace(), room - 1);
    error[room - 1] = '\0';
    return false;
  }
}

bool resize_storage(void* storage, std::int64_t bytes, char* error, std::size_t room) {
  try {
    memprof::detail::resize_storage(*static_cast<c10::StorageImpl*>(storage), bytes);
    return true;
  } catch (const c10::Error& fault) {
    std::strncpy(error, fault.what_without_backtrace(), room - 1);
    error[room - 1] = '\0';
    return false;
  }
}

constexpr memprof_torch_simulation simulation{[] { ++memprof::detail::this_simulating_thread.real_scopes; },
                                              [] { --memprof::detail::this_simulating_thread.real_scopes; },
                                              [] { memprof::detail::join_simulation(); },
                                              [] { memprof::detail::execute_in_this_process(); },
                                              use_allocator,
                                              read_memory,
                                              [](std::int64_t reads) { memprof::set_torch_read_limit(reads); },
                                              knowledge_of,
                                              [] { ++memprof::detail::this_simulating_thread.open_prints; },
                                              [] { --memprof::detail::this_simulating_thread.open_prints; },
                                              list_decision,
                                              [] { memprof::detail::cublas_workspaces::instance().clear(); },
                                              resize_storage};
constexpr const memprof_torch_simulation* simulation_calls = &simulation;
#else
constexpr const memprof_torch_simulation* simulation_calls = nullptr;
#endif

constexpr memprof_torch_calls calls{MEMPROF_TORCH_CALLS_VERSION,
                                    TORCH_VERSION,
                                    attach,
                                    attach_cuda_if_compiled,
                                    detach,
                                    report_facts,
                                    destroy,
                                    annotate,
                                    name_callers,
                                    begin_operators,
                                    end_operators,
                                    simulation_calls};

}  // namespace

extern "C" [[gnu::visibility("default")]] const memprof_torch_calls* memprof_torch() { return &calls; }
