#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// Records what a real kernel allocated and returned, and replays it for calls with equal arguments: a kernel runs once per
/// shape, however many layers and steps a training run has.

namespace memprof::inline MEMPROF_ABI::detail {

/// A call's allocations, in order, and its results.
struct kernel_tape {
  struct step {
    std::size_t block;  ///< number of the block in the call
    std::size_t bytes;  ///< 0: the block is freed
  };
  struct result {
    enum class kind : std::uint8_t { undefined, argument, block };
    kind is = kind::undefined;
    std::size_t index = 0;  ///< of the argument, or of the block
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t offset = 0;
  };

  std::vector<step> steps;
  std::size_t blocks = 0;
  std::vector<result> results;
};

/// Records what kernels allocate, for one call at a time in the process; others are not recorded. A worker thread does not reveal
/// which call it works for, so a call that another one overlapped is discarded, too.
class tape_recorder final : public kernel_listener {
 public:
  [[nodiscard]] static tape_recorder& instance() {
    const recording_suppressor hidden;
    static auto* const one = new tape_recorder;
    return *one;
  }

  /// False if another call is running.
  [[nodiscard]] bool begin() {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    if (is_on_ || running_kernels.load(std::memory_order_relaxed) != 0) return false;
    is_on_ = true;
    begun_before_ = begun_kernels.load(std::memory_order_relaxed);
    owner_ = &this_simulating_thread;
    is_whole_ = true;
    tape_ = {};
    live_.clear();
    present_kernel_listener.store(this, std::memory_order_release);
    return true;
  }
  void abort() noexcept {
    const std::lock_guard<std::mutex> guard{lock_};
    present_kernel_listener.store(nullptr, std::memory_order_release);
    is_on_ = false;
  }

  void allocated(const void* address, std::size_t bytes) override {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    if (!is_mine()) return;
    live_[address] = tape_.blocks;
    tape_.steps.push_back({tape_.blocks++, bytes});
  }
  void freeing(const void* address) override {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    if (!is_mine()) return;
    const auto known = live_.find(address);
    if (known == live_.end()) {
      is_whole_ = false;  // a block from before the call
      return;
    }
    tape_.steps.push_back({known->second, 0});
    live_.erase(known);
  }

  /// Ends the recording of a call with these results and arguments; none if it cannot be replayed.
  [[nodiscard]] std::optional<kernel_tape> end(const torch::jit::Stack& results, const std::vector<at::Tensor>& arguments) {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    present_kernel_listener.store(nullptr, std::memory_order_release);
    is_on_ = false;
    is_whole_ = is_whole_ && begun_kernels.load(std::memory_order_relaxed) == begun_before_ + 1;
    for (const c10::IValue& result : results) note_result(result, arguments);
    // A remaining block that no result uses is kept by the kernel's library, since its first call.
    for (const auto& [address, block] : live_) is_whole_ = is_whole_ && is_result(block);
    if (!is_whole_) return std::nullopt;
    return std::move(tape_);
  }

 private:
  [[nodiscard]] bool is_mine() const { return is_on_ && (owner_ == &this_simulating_thread || at::in_parallel_region()); }
  [[nodiscard]] bool is_result(std::size_t block) const {
    for (const kernel_tape::result& one : tape_.results) {
      if (one.is == kernel_tape::result::kind::block && one.index == block) return true;
    }
    return false;
  }

  void note_result(const c10::IValue& value, const std::vector<at::Tensor>& arguments) {
    if (!value.isTensor()) {
      is_whole_ = false;
      return;
    }
    const at::Tensor& tensor = value.toTensor();
    kernel_tape::result& noted = tape_.results.emplace_back();
    if (!tensor.defined()) return;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
      if (!tensor.is_same(arguments[index])) continue;
      noted.is = kernel_tape::result::kind::argument;
      noted.index = index;
      return;
    }
    const bool is_simple = tensor.layout() == c10::kStrided && !tensor.is_quantized() && !tensor.is_conj() && !tensor.is_neg();
    const auto block = is_simple ? live_.find(tensor.storage().data()) : live_.end();
    if (block == live_.end()) {
      is_whole_ = false;
      return;
    }
    noted = {kernel_tape::result::kind::block, block->second,          tensor.scalar_type(), tensor.sizes().vec(),
             tensor.strides().vec(),           tensor.storage_offset()};
  }

  std::mutex lock_;
  bool is_on_ = false;
  const simulating_thread* owner_ = nullptr;
  std::uint64_t begun_before_ = 0;
  bool is_whole_ = true;
  kernel_tape tape_;
  std::unordered_map<const void*, std::size_t> live_;
};

/// Replays the allocations and frees of a tape and creates its results.
[[nodiscard]] inline torch::jit::Stack play(const kernel_tape& tape, const std::vector<at::Tensor>& arguments) {
  std::vector<c10::Storage> blocks(tape.blocks);
  for (const kernel_tape::step& step : tape.steps) {
    if (step.bytes == 0)
      blocks[step.block] = {};
    else
      blocks[step.block] = fake_storage(step.bytes, c10::kCPU);
  }
  torch::jit::Stack results;
  for (const kernel_tape::result& one : tape.results) {
    switch (one.is) {
      case kernel_tape::result::kind::undefined: results.emplace_back(at::Tensor{}); break;
      case kernel_tape::result::kind::argument: results.emplace_back(arguments[one.index]); break;
      case kernel_tape::result::kind::block:
        results.emplace_back(
            tensor_over(blocks[one.index], c10::scalarTypeToTypeMeta(one.dtype), one.sizes, one.strides, one.offset));
        break;
    }
  }
  return results;
}

/// The tapes of a capture, by everything that determines a call's memory. Thread-safe; keeps up to `max_tapes`.
class kernel_tapes {
 public:
  static constexpr std::size_t max_tapes = 4096;

  [[nodiscard]] static kernel_tapes& instance() {
    const recording_suppressor hidden;
    static auto* const all = new kernel_tapes;
    return *all;
  }

  [[nodiscard]] std::shared_ptr<const kernel_tape> find(const std::string& key) {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    const auto known = tapes_.find(key);
    return known == tapes_.end() ? nullptr : known->second;
  }
  void add(const std::string& key, kernel_tape tape) {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    if (tapes_.size() < max_tapes) tapes_.emplace(key, std::make_shared<const kernel_tape>(std::move(tape)));
  }
  void forget() noexcept {
    const recording_suppressor hidden;
    const std::lock_guard<std::mutex> guard{lock_};
    tapes_.clear();
  }

 private:
  std::mutex lock_;
  std::unordered_map<std::string, std::shared_ptr<const kernel_tape>> tapes_;
};

/// Appends the bytes of numbers to a key.
class tape_key {
 public:
  explicit tape_key(const void* schema) {
    add(reinterpret_cast<std::uintptr_t>(schema));
    add(static_cast<std::uint64_t>(at::get_num_threads()));
    const at::Context& context = at::globalContext();
    add((c10::GradMode::is_enabled() ? 1U : 0U) | (context.userEnabledMkldnn() ? 2U : 0U) |
        (context.deterministicAlgorithms() ? 4U : 0U));
  }

  void add(std::uint64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void add(at::IntArrayRef numbers) {
    add(numbers.size());
    for (const std::int64_t number : numbers) add(static_cast<std::uint64_t>(number));
  }
  void add(const std::string& text) {
    add(text.size());
    text_.append(text);
  }
  void add(const at::Tensor& tensor) {
    add(static_cast<std::uint64_t>(tensor.scalar_type()) | (tensor.requires_grad() ? 256U : 0U));
    add(tensor.sizes());
    add(tensor.strides());
    // Kernels may check whether data is aligned.
    add(static_cast<std::uint64_t>(tensor.storage_offset()) % 64);
  }

  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

/// The key of a call; none if its memory may depend on data, or if it has other kinds of arguments.
[[nodiscard]] inline std::optional<std::string> key_of(const void* schema, const c10::IValue* first, std::size_t count) {
  tape_key key{schema};
  for (const c10::IValue* value = first; value != first + count; ++value) {
    if (value->isTensor()) {
      const at::Tensor& tensor = value->toTensor();
      key.add(tensor.defined() ? 1U : 2U);
      if (!tensor.defined()) continue;
      if (tensor.layout() != c10::kStrided || tensor.is_nested() || c10::isIntegralType(tensor.scalar_type(), true))
        return std::nullopt;
      key.add(tensor);
    } else if (value->isInt()) {
      key.add(3U);
      key.add(static_cast<std::uint64_t>(value->toInt()));
    } else if (value->isBool()) {
      key.add(value->toBool() ? 4U : 5U);
    } else if (value->isDouble()) {
      key.add(6U);
      key.add(std::bit_cast<std::uint64_t>(value->toDouble()));
    } else if (value->isIntList()) {
      key.add(7U);
      key.add(value->toIntVector());
    } else if (value->isBoolList()) {
      key.add(8U);
      for (const bool flag : value->toBoolList()) key.add(flag ? 1U : 0U);
    } else if (value->isNone()) {
      key.add(9U);
    } else if (value->isString()) {
      key.add(value->toStringRef());
    } else {
      return std::nullopt;
    }
  }
  return std::move(key).take();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
