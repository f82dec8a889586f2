#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Calls of operators as lines of text: the name with its overload, then the arguments, separated by spaces.
///
///     aten::slice_backward f32[2,5]/5,1+3 ( 4 5 ) 0 0 2 1
///
/// | text | argument |
/// |---|---|
/// | `f32[2,3]` | a contiguous tensor of that type and those sizes |
/// | `f32[2,3]/1,2+4` | with strides, and an offset in its storage |
/// | `i64[3]{0,2,1}` | with values |
/// | `i64[900]%0:29` | with values between two bounds |
/// | `=1` | the same tensor as argument 1 |
/// | `( ... )` | a list |
/// | `-` | none |
/// | `3`, `0.5`, `inf`, `c1.0,2.0`, `T`, `F`, `"text`, `:f32`, `:cpu`, `:strided`, `:channels_last` | numbers, flags, text, and
/// so on |

namespace operator_calls {

struct tensor_spec {
  c10::ScalarType dtype = c10::kFloat;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  bool is_contiguous = true;  ///< no strides were given
  std::vector<std::string> values;
  std::optional<std::pair<std::int64_t, std::int64_t>> bounds;

  /// Elements from the storage's begin to the last one of the tensor.
  [[nodiscard]] std::int64_t storage_elements() const;
};

/// How tensors of a call are laid out in memory.
enum class layout : std::uint8_t { as_written, transposed, sliced, expanded, channels_last };
[[nodiscard]] const char* name_of(layout one);
inline constexpr layout all_layouts[] = {layout::as_written, layout::transposed, layout::sliced, layout::expanded,
                                         layout::channels_last};

/// Which tensors of a call are laid out otherwise.
enum class laid_out_tensors : std::uint8_t {
  all,
  first,  ///< the first one alone: the layouts of a call differ
  others  ///< all but the first one
};
[[nodiscard]] const char* name_of(laid_out_tensors ones);

class operator_call {
 public:
  /// Throws `std::runtime_error` for a line that is none.
  explicit operator_call(std::string_view line);

  [[nodiscard]] const c10::OperatorHandle& called() const { return called_; }
  [[nodiscard]] const std::string& text() const { return text_; }

  /// The arguments; `make` makes each tensor.
  [[nodiscard]] torch::jit::Stack arguments(const std::function<at::Tensor(const tensor_spec&)>& make) const;

  /// The same call with tensors that are laid out otherwise; none if that changes nothing, or if layouts shall differ and there
  /// is only one tensor.
  [[nodiscard]] std::optional<operator_call> with(layout wanted, laid_out_tensors ones = laid_out_tensors::all) const;

 private:
  struct argument {
    std::string text;  ///< of what is no tensor
    std::optional<tensor_spec> tensor;
    bool is_written = false;
    bool is_list = false;
    std::vector<argument> elements;  ///< of a list
  };

  [[nodiscard]] argument parse_argument(std::vector<std::string_view>& words) const;
  [[nodiscard]] c10::IValue value_of(const argument& one, const c10::Type& type, torch::jit::Stack& so_far,
                                     const std::function<at::Tensor(const tensor_spec&)>& make) const;

  std::string text_;
  c10::OperatorHandle called_;
  std::vector<argument> arguments_;
};

/// The data of a tensor that has them written down, and otherwise numbers from 0 to 1 that hang on the sizes alone.
enum class filling : std::uint8_t { fractions, identity, ones };
void fill(at::Tensor& real, const tensor_spec& spec, filling kind);
/// A real tensor of the CPU.
[[nodiscard]] at::Tensor make_real(const tensor_spec& spec, filling kind);

}  // namespace operator_calls
