#pragma once

#include <memprof/backend/torch/simulation/kernel_tape.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// @file
/// Real kernels that run once per shape, and convolutions of large batches, which run for two small batches instead.

namespace memprof::inline MEMPROF_ABI::detail {

/// Records the calls in its scope, unless another is being recorded.
class [[nodiscard]] tape_scope {
 public:
  tape_scope() : is_on_(tape_recorder::instance().begin()) {}
  tape_scope(const tape_scope&) = delete;
  tape_scope& operator=(const tape_scope&) = delete;
  ~tape_scope() {
    if (is_on_) tape_recorder::instance().abort();
  }

  [[nodiscard]] std::optional<kernel_tape> end(const torch::jit::Stack& results, const std::vector<at::Tensor>& arguments) {
    return std::exchange(is_on_, false) ? tape_recorder::instance().end(results, arguments) : std::nullopt;
  }

 private:
  bool is_on_;
};

[[nodiscard]] inline std::vector<at::Tensor> tensor_arguments(const torch_call& call) {
  std::vector<at::Tensor> tensors;
  for (std::size_t index = 0; index < call.size(); ++index) {
    if (call.argument(index).isTensor()) tensors.push_back(call.argument(index).toTensor());
  }
  return tensors;
}

/// Sizes, strides, and the bytes of storages.
[[nodiscard]] inline std::vector<std::vector<std::int64_t>> shapes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const at::Tensor& tensor : tensors) {
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    if (!tensor.defined()) continue;
    shape = tensor.sizes().vec();
    shape.insert(shape.end(), tensor.strides().begin(), tensor.strides().end());
    if (tensor.has_storage()) shape.push_back(static_cast<std::int64_t>(tensor.storage().nbytes()));
  }
  return shapes;
}

/// Ends a call by replaying a tape.
inline void play_call(torch_call& call, const kernel_tape& tape) {
  torch::jit::Stack results = play(tape, tensor_arguments(call));
  torch::jit::drop(call.stack(), call.size());
  for (c10::IValue& result : results) call.stack().push_back(std::move(result));
}

/// Runs the CPU kernel on what tensors hold, or replays what it did for equal arguments.
inline void run_or_play_kernel(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys, std::size_t bytes) {
  const bool is_large = bytes >= small_kernel_bytes.load(std::memory_order_relaxed);
  const bool is_playable = is_large && !plan.depends_on_data && !plan.holds_by_data;
  const std::optional<std::string> key = is_playable ? key_of(plan.schema, &call.argument(0), call.size()) : std::nullopt;
  if (!key.has_value()) return run_kernel(call, plan, keys, false, max_kernel_bytes);
  if (const auto known = kernel_tapes::instance().find(*key)) return play_call(call, *known);
  const std::vector<at::Tensor> arguments = tensor_arguments(call);
  const std::vector<std::vector<std::int64_t>> shapes = shapes_of(arguments);
  tape_scope recorded;
  run_kernel(call, plan, keys, false, max_kernel_bytes, [&](const torch::jit::Stack& results) {
    std::optional<kernel_tape> tape = recorded.end(results, arguments);
    const bool has_resized = shapes_of(arguments) != shapes;
    if (tape.has_value() && !has_resized) kernel_tapes::instance().add(*key, *std::move(tape));
  });
}

// --- convolutions -----------------------------------------------------------------------------------------------------

/// A convolution among the arguments of an operator.
struct convolution_arguments {
  std::vector<std::size_t> batches;  ///< positions of tensors whose first dimension is the batch
  std::size_t weight;
};

/// Empty for operators that are not convolutions.
[[nodiscard]] inline std::optional<convolution_arguments> convolution_of(const std::string& name) {
  if (name == "aten::mkldnn_convolution" || name == "aten::_nnpack_spatial_convolution" || name == "aten::_slow_conv2d_forward" ||
      name == "aten::slow_conv3d_forward" || name == "aten::slow_conv_dilated2d" || name == "aten::slow_conv_dilated3d" ||
      name == "aten::slow_conv_transpose2d" || name == "aten::slow_conv_transpose3d") {
    return convolution_arguments{{0}, 1};
  }
  if (name == "aten::convolution_backward") return convolution_arguments{{0, 1}, 2};
  return std::nullopt;
}

/// An upper bound for the multiplications of a convolution: each element of the larger image with each weight of one output
/// channel.
[[nodiscard]] inline double work_of(const torch_call& call, const convolution_arguments& where) {
  const at::Tensor weight = call.tensor(where.weight);
  double greatest = 0;
  for (const std::size_t position : where.batches) {
    const at::Tensor image = call.tensor(position);
    if (image.dim() < 2 || image.size(1) == 0) return 0;
    greatest = std::max(greatest, static_cast<double>(image.numel()) / static_cast<double>(image.size(1)));
  }
  return greatest * static_cast<double>(weight.numel());
}

/// The tape for a batch of `wanted`, extrapolated linearly from those of two smaller batches. None if they differ in more than
/// sizes.
[[nodiscard]] inline std::optional<kernel_tape> extrapolate(const kernel_tape& small, std::int64_t small_batch,
                                                            const kernel_tape& large, std::int64_t large_batch,
                                                            std::int64_t wanted) {
  if (small.steps.size() != large.steps.size() || small.results.size() != large.results.size()) return std::nullopt;
  const auto extended = [&](std::size_t from, std::size_t to) -> std::optional<std::size_t> {
    const auto growth = static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
    const std::int64_t bytes = static_cast<std::int64_t>(from) + growth * (wanted - small_batch) / (large_batch - small_batch);
    return growth < 0 || bytes <= 0 ? std::nullopt : std::optional{static_cast<std::size_t>(bytes)};
  };
  kernel_tape result = small;
  for (std::size_t index = 0; index < small.steps.size(); ++index) {
    const kernel_tape::step& other = large.steps[index];
    kernel_tape::step& step = result.steps[index];
    if (step.block != other.block || (step.bytes == 0) != (other.bytes == 0)) return std::nullopt;
    if (step.bytes == 0) continue;
    const auto bytes = extended(step.bytes, other.bytes);
    if (!bytes.has_value()) return std::nullopt;
    step.bytes = *bytes;
  }
  for (kernel_tape::result& one : result.results) {
    if (one.is == kernel_tape::result::kind::block && one.sizes.size() >= 2 && one.sizes[0] == small_batch) one.sizes[0] = wanted;
  }
  for (std::size_t index = 0; index < result.results.size(); ++index) {  // a weight may happen to have as many rows as the batch
    const kernel_tape::result& other = large.results[index];
    if (other.sizes.empty() || other.sizes[0] != small.results[index].sizes[0]) continue;
    result.results[index].sizes = other.sizes;
  }
  return result;
}

/// The tape of the kernel for the first `batch` elements of a batch.
[[nodiscard]] inline std::optional<kernel_tape> tape_of_batch(const torch_call& call, const operator_plan& plan,
                                                              c10::DispatchKeySet keys, const convolution_arguments& where,
                                                              std::int64_t batch) {
  std::optional<kernel_tape> tape;
  for (int round = 0; round < 2 && !tape.has_value(); ++round) {  // libraries keep some memory from their first call
    torch::jit::Stack stack;
    for (std::size_t index = 0; index < call.size(); ++index) stack.push_back(call.argument(index));
    for (const std::size_t position : where.batches) {
      const at::Tensor image = call.tensor(position);
      std::vector<std::int64_t> sizes = image.sizes().vec();
      sizes[0] = batch;
      stack[position] = c10::IValue{tensor_over(image.storage(), image.dtype(), sizes, image.strides(), image.storage_offset())};
    }
    torch_call smaller{call.called(), stack, nullptr};
    const std::vector<at::Tensor> arguments = tensor_arguments(smaller);
    stand_ins replaced;
    tape_scope recorded;
    const hidden_results results = compute_hidden(smaller, plan, keys, replaced, max_kernel_bytes);
    tape = recorded.end(results.all(), arguments);
  }
  return tape;
}

/// Simulates a slow convolution by two smaller batches. Returns false and does nothing if that is unnecessary or impossible.
[[nodiscard]] inline bool run_smaller_batches(torch_call& call, const operator_plan& plan, c10::DispatchKeySet keys) {
  constexpr double max_work = 1e9;  // tens of milliseconds
  constexpr std::int64_t small_batch = 4;
  constexpr std::int64_t large_batch = 8;
  const auto where = convolution_of(plan.name);
  if (!where.has_value() || work_of(call, *where) <= max_work) return false;
  const std::int64_t batch = call.tensor(where->batches.front()).size(0);
  if (batch <= large_batch) return false;
  const std::optional<std::string> key = key_of(plan.schema, &call.argument(0), call.size());
  if (!key.has_value()) return false;
  std::shared_ptr<const kernel_tape> tape = kernel_tapes::instance().find(*key);
  if (tape == nullptr) {
    const auto small = tape_of_batch(call, plan, keys, *where, small_batch);
    const auto large = tape_of_batch(call, plan, keys, *where, large_batch);
    if (!small.has_value() || !large.has_value()) return false;
    auto whole = extrapolate(*small, small_batch, *large, large_batch, batch);
    if (!whole.has_value()) return false;
    kernel_tapes::instance().add(*key, *std::move(whole));
    tape = kernel_tapes::instance().find(*key);
    if (tape == nullptr) return false;
  }
  call.approximate("scratch memory of a large batch is extrapolated from two smaller ones");
  play_call(call, *tape);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
