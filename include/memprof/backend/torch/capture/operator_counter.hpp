#pragma once

#include <memprof/backend/torch/capture/block_sizes.hpp>
#include <memprof/backend/torch/capture/device_times.hpp>
#include <memprof/backend/torch/capture/memory_from_malloc.hpp>
#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/backend/torch/capture/operator_memory.hpp>
#include <memprof/backend/torch/capture/operator_table.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/capture/track_pytorch_ops.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/visit_live_blocks.hpp>
#include <memprof/trace/event.hpp>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// The state of one call of an operator until it ends. Owned by libtorch.
class pytorch_operator_context final : public at::ObserverContext, public memory_from_malloc {
 public:
  /// An asynchronous operator only has its time recorded: what its thread allocates until it ends is not its own.
  pytorch_operator_context(std::uint32_t capture, operator_key key, torch_thread& thread, bool is_asynchronous)
      : capture_(capture), key_(std::move(key)), thread_(&thread) {
    if (!is_asynchronous) {
      call_ = new pytorch_operator_call;
      call_->outer = innermost_call(*thread_);
      thread_->call = call_;
    }
    before_on_device_ = process_device_times().mark();
    begin_ns_ = monotonic_ns();
  }
  pytorch_operator_context(const pytorch_operator_context&) = delete;
  pytorch_operator_context& operator=(const pytorch_operator_context&) = delete;
  ~pytorch_operator_context() override {
    if (call_ != nullptr) call_->release();
  }

  /// Adds the call to the table. If the operator ends on another thread, that includes its time and its memory so far.
  void end() {
    const std::int64_t time_ns = monotonic_ns() - begin_ns_;
    const operator_memory self_memory = call_ == nullptr ? operator_memory{} : call_->memory();
    if (pytorch_operator_call* const ended = std::exchange(call_, nullptr)) {
      if (thread_ == this_torch_thread()) unlink_call(*thread_, *ended);
      ended->release();
    }
    process_operator_table().add(capture_, key_, time_ns, self_memory);
    process_device_times().add(capture_, key_, std::move(before_on_device_));
    key_ = {};  // not in the destructor, which libtorch calls where nothing hides the free
  }

 private:
  std::uint32_t capture_;
  operator_key key_;
  torch_thread* thread_;
  pytorch_operator_call* call_ = nullptr;  ///< null: the call has ended, or is asynchronous
  device_event before_on_device_;
  std::int64_t begin_ns_;
};

inline void append_input(std::vector<std::int64_t>& numbers, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_nested() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
    numbers.push_back(operator_key::no_tensor);
    return;
  }
  numbers.push_back(tensor.dim());
  numbers.insert(numbers.end(), tensor.sizes().begin(), tensor.sizes().end());
}

inline void append_input(std::vector<std::int64_t>& numbers, const c10::IValue& input) {
  if (input.isTensor()) {
    append_input(numbers, input.toTensor());
  } else if (input.isTensorList()) {
    const c10::List<at::Tensor> list = input.toTensorList();
    numbers.insert(numbers.end(), {operator_key::tensor_list, static_cast<std::int64_t>(list.size())});
    for (std::size_t index = 0; index < list.size(); ++index) append_input(numbers, list.get(index));
  } else {
    numbers.push_back(operator_key::no_tensor);
  }
}

// Without NDEBUG, `RecordFunction::inputs` in libtorch's headers checks a member that the libraries, which are built with NDEBUG,
// never set. A unit without NDEBUG must therefore not call it. The two versions are in differently named namespaces: the linker
// would otherwise keep one of them for all units of a program.
#if defined(NDEBUG)

inline namespace with_inputs {

[[nodiscard]] inline std::vector<std::int64_t> shapes_of_inputs(const at::RecordFunction& function) {
  std::vector<std::int64_t> numbers;
  constexpr std::size_t usual_numbers = 24;
  numbers.reserve(usual_numbers);
  for (const c10::IValue& input : function.inputs()) append_input(numbers, input);
  return numbers;
}

}  // namespace with_inputs

#else

inline namespace without_inputs {

[[nodiscard]] inline std::vector<std::int64_t> shapes_of_inputs(const at::RecordFunction&) { return {operator_key::unknown}; }

}  // namespace without_inputs

#endif

/// Counts the operators of all threads while at least one guard exists.
class operator_counter {
 public:
  void begin() {
    const recording_suppressor hidden;
    const lock_guard lock{lock_};
    if (guards_++ != 0) return;
    // Release pairs with the acquire in `count_allocation`: the table is complete.
    counted_blocks.store(&process_block_sizes(), std::memory_order_release);
    learn_live_blocks();
    process_device_times().begin();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback{begin_call, end_call}.needsInputs(true).scopes(
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  }

  void end() noexcept {
    const recording_suppressor hidden;
    const lock_guard lock{lock_};
    if (--guards_ != 0) return;
    at::removeCallback(handle_);
    // Release pairs with the same acquire.
    counted_blocks.store(nullptr, std::memory_order_release);
    process_block_sizes().clear();
  }

 private:
  static std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
    const std::uint32_t capture = event_sink{}.capture();
    if (capture == 0 || !event_sink{}.is_thread_recordable()) return nullptr;
    torch_thread* const self = this_torch_thread();
    if (self == nullptr) return nullptr;
    const recording_suppressor hidden;
    operator_key key{operator_label(*self, function.name()), shapes_of_inputs(function)};
    return std::make_unique<pytorch_operator_context>(capture, std::move(key), *self, function.isAsync());
  }

  static void end_call(const at::RecordFunction&, at::ObserverContext* context) {
    const recording_suppressor hidden;
    if (context != nullptr) static_cast<pytorch_operator_context*>(context)->end();
  }

  /// Adds the sizes of blocks that were allocated earlier in the capture.
  static void learn_live_blocks() {
    for_each_live_block({cpu_space},
                        [](const void* address, std::size_t bytes) { process_block_sizes().insert_if_new(address, bytes); });
  }

  futex_lock lock_;
  std::uint32_t guards_ = 0;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};
inline constinit operator_counter process_operator_counter{};

}  // namespace detail

inline namespace enabled {

MEMPROF_TORCH_SEPARABLE pytorch_ops_guard::pytorch_ops_guard() { detail::process_operator_counter.begin(); }
MEMPROF_TORCH_SEPARABLE pytorch_ops_guard::~pytorch_ops_guard() { detail::process_operator_counter.end(); }

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
