#pragma once

#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>

#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// One call of a PyTorch operator in a simulated run, as a rule sees it (`register_torch_rule`). A rule creates the tensors that
/// the operator's kernel creates, both results and scratch memory, in the same order; tensors that it destroys are recorded as
/// freed. It computes nothing.
///
/// Arguments are identified by their position in the operator's schema; a wrong position or type throws `c10::Error`.
class torch_call {
 public:
  using kernel_runner = void (*)(torch_call&);

  torch_call(const c10::OperatorHandle& called, torch::jit::Stack& stack, kernel_runner shape_function)
      : operator_(called),
        stack_(stack),
        first_(stack.size() - called.schema().arguments().size()),
        shape_function_(shape_function) {}

  [[nodiscard]] const c10::OperatorHandle& called() const noexcept { return operator_; }
  [[nodiscard]] torch::jit::Stack& stack() noexcept { return stack_; }
  [[nodiscard]] std::size_t size() const { return operator_.schema().arguments().size(); }

  [[nodiscard]] const c10::IValue& argument(std::size_t index) const { return stack_.at(first_ + index); }
  [[nodiscard]] c10::IValue& argument(std::size_t index) { return stack_.at(first_ + index); }
  [[nodiscard]] bool has(std::size_t index) const { return !argument(index).isNone(); }
  /// Undefined if the argument was omitted.
  [[nodiscard]] at::Tensor tensor(std::size_t index) const { return has(index) ? argument(index).toTensor() : at::Tensor{}; }
  [[nodiscard]] std::vector<at::Tensor> tensors(std::size_t index) const { return argument(index).toTensorVector(); }
  [[nodiscard]] std::int64_t integer(std::size_t index) const { return argument(index).toInt(); }
  [[nodiscard]] bool flag(std::size_t index) const { return argument(index).toBool(); }
  [[nodiscard]] double number(std::size_t index) const { return argument(index).toScalar().toDouble(); }
  /// A single integer gives a list of one; empty if the argument was omitted.
  [[nodiscard]] std::vector<std::int64_t> integers(std::size_t index) const {
    if (!has(index)) return {};
    if (argument(index).isInt()) return {argument(index).toInt()};
    return argument(index).toIntVector();
  }
  /// Whether a result is wanted, according to an argument like `output_mask`.
  [[nodiscard]] bool wants(std::size_t index, std::size_t result) const { return argument(index).toBoolList().get(result); }
  [[nodiscard]] std::optional<at::ScalarType> dtype(std::size_t index) const {
    return has(index) ? std::optional{argument(index).toScalarType()} : std::nullopt;
  }

  /// A new contiguous tensor on the device of `like`, of the given type or that of `like`.
  [[nodiscard]] static at::Tensor empty(at::IntArrayRef sizes, const at::Tensor& like,
                                        std::optional<at::ScalarType> dtype = std::nullopt) {
    return in_format(sizes, like, c10::MemoryFormat::Contiguous, dtype);
  }
  /// The same in a memory format, such as that of `at::Tensor::suggest_memory_format`.
  [[nodiscard]] static at::Tensor in_format(at::IntArrayRef sizes, const at::Tensor& like, c10::MemoryFormat format,
                                            std::optional<at::ScalarType> dtype = std::nullopt);
  /// A new tensor with the sizes and the order of dimensions of `like`, as `at::empty_like`.
  [[nodiscard]] static at::Tensor empty_like(const at::Tensor& like, std::optional<at::ScalarType> dtype = std::nullopt);
  /// `like` itself if it is contiguous, else a new tensor, as `at::Tensor::contiguous`.
  [[nodiscard]] static at::Tensor contiguous(const at::Tensor& like, c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
    return like.is_contiguous(format) ? like : in_format(like.sizes(), like, format);
  }
  /// A view with two dimensions exchanged, over the same storage.
  [[nodiscard]] static at::Tensor transposed(const at::Tensor& from, std::int64_t first, std::int64_t second);
  /// Whether CUDA kernels handle a tensor; within a Meta kernel, the device for which the tensor is made counts.
  [[nodiscard]] static bool is_on_cuda(const at::Tensor& tensor) noexcept;
  /// A view with other sizes over the storage of a contiguous tensor.
  [[nodiscard]] static at::Tensor viewed(const at::Tensor& from, at::IntArrayRef sizes);

  /// Scratch memory of the kernel that lives as long as the returned object; as `empty`, but none if `is_needed` is false.
  [[nodiscard]] static at::Tensor scratch(at::IntArrayRef sizes, const at::Tensor& like,
                                          std::optional<at::ScalarType> dtype = std::nullopt, bool is_needed = true) {
    return is_needed ? empty(sizes, like, dtype) : at::Tensor{};
  }
  /// The same, with a size in bytes.
  [[nodiscard]] static at::Tensor scratch_bytes(std::int64_t bytes, const at::Tensor& like) {
    return empty({bytes}, like, at::kByte);
  }
  /// The copy that a kernel makes of an input that it reads as another type; none if the type is the same.
  [[nodiscard]] static at::Tensor converted(const at::Tensor& input, at::ScalarType to) {
    return !input.defined() || input.scalar_type() == to ? at::Tensor{} : empty_like(input, to);
  }

  /// Ends the call with these results, one for each in the schema.
  template <class... Results>
  void returns(Results&&... results) {
    torch::jit::drop(stack_, size());
    (stack_.emplace_back(std::forward<Results>(results)), ...);
  }
  /// Ends the call with the results of the operator's own shape function: for rules that only add scratch memory to it.
  void run_shape_function() { shape_function_(*this); }
  /// Ends the call as if there were no rule: for rules that cover only some devices or types. On the CPU, the real kernel runs.
  void run_without_rule() { runs_without_rule_ = true; }
  [[nodiscard]] bool runs_without_rule() const noexcept { return runs_without_rule_; }

  /// Marks this call's memory as an estimate, which the profile lists with `cause`. `cause` must never be destroyed.
  void approximate(const char* cause) noexcept { cause_ = cause; }
  [[nodiscard]] const char* cause() const noexcept { return cause_; }

  /// Says that a size of the results depends on data that the simulation does not have: `assumed` rows or elements, where there
  /// can be up to `most` (0: unknown). The profile lists that with `cause`, which must never be destroyed, and is not exact.
  /// Returns `assumed`.
  std::int64_t assume_length(std::int64_t assumed, std::int64_t most, const char* cause) noexcept {
    assumed_ += assumed;
    most_ += most;
    size_cause_ = cause;
    return assumed;
  }
  [[nodiscard]] std::int64_t assumed_length() const noexcept { return assumed_; }
  [[nodiscard]] std::int64_t greatest_length() const noexcept { return most_; }
  [[nodiscard]] const char* cause_of_length() const noexcept { return size_cause_; }

 private:
  [[nodiscard]] static caffe2::TypeMeta type_of(const at::Tensor& like, std::optional<at::ScalarType> dtype) {
    return dtype.has_value() ? c10::scalarTypeToTypeMeta(*dtype) : like.dtype();
  }

  const c10::OperatorHandle& operator_;
  torch::jit::Stack& stack_;
  std::size_t first_;
  kernel_runner shape_function_;
  const char* cause_ = nullptr;
  const char* size_cause_ = nullptr;  ///< null: no size was assumed
  std::int64_t assumed_ = 0;
  std::int64_t most_ = 0;
  bool runs_without_rule_ = false;
};

/// The type of a rule; see `register_torch_rule`.
using torch_rule_function = std::function<void(torch_call&)>;

namespace detail {

/// When a rule replaces the real kernel.
enum class rule_use : std::uint8_t {
  unless_small,    ///< unless what the kernel reads is small
  without_values,  ///< if the kernel would read unknown values
  always           ///< for the user's rules, and where no kernel can run
};

/// An entry in the tables of memprof's own rules.
struct known_rule {
  const char* name;
  void (*rule)(torch_call&);
  rule_use use = rule_use::unless_small;
};

/// The type in which kernels accumulate numbers of a 16-bit type.
[[nodiscard]] inline at::ScalarType accumulation_type(at::ScalarType dtype) noexcept {
  return dtype == at::kBFloat16 || dtype == at::kHalf ? at::kFloat : dtype;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/simulation/torch_call_tensors.hpp>
#endif
