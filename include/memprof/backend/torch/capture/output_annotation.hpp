#pragma once

#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

/// @file
/// Shape, element type and `requires_grad` of the blocks that operators return, recorded without a call by the program.
///
/// Each thread lists the blocks that it allocates within an operator. When an operator ends, the blocks that are storages of its
/// outputs get a text that describes the output. Of nested operators, the outermost decides, because it returns what the program
/// sees, unless it returns only a part of the block. The annotations are recorded when the outermost operator ends, so that
/// temporaries cost none.

namespace memprof::inline MEMPROF_ABI::detail {

/// The labels of all shapes, at most `max_shapes`, so that a program whose shapes never repeat does not use up all labels:
/// further tensors have only their element type and `requires_grad`.
class output_labels {
 public:
  static constexpr std::size_t max_shapes = 4096;

  /// 0 if the system has no memory.
  [[nodiscard]] label find(const at::Tensor& tensor) {
    const recording_suppressor hidden;
    std::string text = tensor_text({}, tensor);
    const lock_guard lock{lock_};
    if (const auto known = labels_.find(text); known != labels_.end()) return known->second;
    if (labels_.size() >= max_shapes) return event_sink{}.label_of(text.erase(1, text.find(']')));
    const label id = event_sink{}.label_of(text);
    if (id != 0) labels_.emplace(std::move(text), id);
    return id;
  }

 private:
  futex_lock lock_;
  std::unordered_map<std::string, label> labels_;
};

/// Never destroyed: operators may end as late as the process does.
[[nodiscard]] inline output_labels& process_output_labels() {
  const recording_suppressor hidden;
  static auto* const labels = new output_labels;
  return *labels;
}

/// The label of a tensor's shape, element type and `requires_grad`, looked up through a cache of the thread.
[[nodiscard]] inline label output_label(torch_thread& self, const at::Tensor& tensor) {
  const c10::IntArrayRef sizes = tensor.sizes();
  if (sizes.size() > torch_thread::known_shape::max_rank) return process_output_labels().find(tensor);
  const auto kind = static_cast<std::uint32_t>(1U | static_cast<unsigned>(sizes.size()) << 1U |
                                               static_cast<unsigned>(tensor.requires_grad()) << 8U |
                                               static_cast<unsigned>(tensor.scalar_type()) << 16U);
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = kind * spread;  // tensors without dimensions differ by it alone
  for (const std::int64_t size : sizes) hash = (hash ^ static_cast<std::uint64_t>(size)) * spread;
  torch_thread::known_shape& known = self.shapes[(hash ^ hash >> 32U) % torch_thread::cached_shapes];
  if (known.kind == kind && std::equal(sizes.begin(), sizes.end(), known.sizes)) return known.id;
  const label id = process_output_labels().find(tensor);
  if (id == 0) return 0;
  known.kind = kind;
  known.id = id;
  std::copy(sizes.begin(), sizes.end(), known.sizes);
  return id;
}

/// Describes the new block that holds an output, if there is one.
inline void describe_output(torch_thread& self, const at::Tensor& tensor) {
  const void* const address = tensor.is_nested() ? nullptr : address_of_elements(tensor);
  if (address == nullptr) return;
  // A tensor whose strides of 0 repeat elements says less about the block than any other.
  const std::size_t bytes = tensor.nbytes() > tensor.storage().nbytes() ? 0 : tensor.nbytes();
  for (std::uint32_t index = self.new_block_count; index-- > 0;) {
    new_block& known = self.new_blocks[index];
    if (known.address != address) continue;
    if (bytes < known.described_bytes) return;
    known.described_bytes = bytes;
    known.description = output_label(self, tensor);
    return;
  }
}

inline void describe_output(torch_thread& self, const c10::IValue& output) {
  if (output.isTensor()) {
    describe_output(self, output.toTensor());
  } else if (output.isList()) {
    for (const c10::IValue& element : output.toListRef()) {
      if (element.isTensor()) describe_output(self, element.toTensor());
    }
  }
}

/// Call when an operator that returns tensors ends.
inline void describe_outputs(torch_thread& self, const at::RecordFunction& function) noexcept {
  if (self.new_block_count == 0) return;
  try {
    for (const c10::IValue& output : function.outputs()) describe_output(self, output);
  } catch (...) {  // a tensor without sizes, or out of memory: the operator's scope still ends
  }
}

/// Call when the outermost of these operators ends. `is_recording`: whether the capture in which it began is still active.
inline void annotate_new_blocks(torch_thread& self, bool is_recording) noexcept {
  for (std::uint32_t index = 0; is_recording && index < self.new_block_count; ++index) annotate_new_block(self.new_blocks[index]);
  self.new_block_count = 0;
  self.returning_operator = 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
