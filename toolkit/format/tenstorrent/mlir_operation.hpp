#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// An operation in MLIR's generic form (https://mlir.llvm.org/docs/LangRef), as far as a memory log needs it.

namespace memprof::inline MEMPROF_ABI {

/// The shape of a tensor, "1x768" (empty: a scalar), and its element type, "bf16".
struct mlir_tensor {
  std::string shape;
  std::string dtype;

  bool operator==(const mlir_tensor&) const = default;
};

/// `%4 = "ttnn.add"(%2, %3) <{...}> : (tensor<...>, ...) -> tensor<...> loc("add.6")`; missing parts are empty.
struct mlir_operation {
  std::string result;               ///< "%4", "%0:2"
  std::string name;                 ///< "ttnn.add"
  std::vector<std::string> inputs;  ///< "%2", "@main_const_eval_0", "[%arg0, %arg1]"
  std::string attributes;           ///< within the `<{` and `}>`
  std::string input_types;          ///< without the parentheses around them
  std::string output_type;
  std::vector<mlir_tensor> input_tensors;
  std::vector<mlir_tensor> output_tensors;
  std::string loc;  ///< the outermost name, or "file.mlir:10:9"
};

namespace detail {

/// The index after the bracket that closes the one at `begin`; `npos` if none does. Skips strings, and the `>` of "->" and ">=".
[[nodiscard]] std::size_t end_of_bracket(std::string_view text, std::size_t begin) noexcept;

/// The parts between commas outside all brackets, trimmed; empty parts are dropped.
[[nodiscard]] std::vector<std::string_view> split_outside_brackets(std::string_view text);

/// All tensors in a list of types.
[[nodiscard]] std::vector<mlir_tensor> tensors_of_types(std::string_view types);

}  // namespace detail

/// Parses an operation; nothing if the text does not begin with one. Of a truncated operation, the part that is there.
[[nodiscard]] std::optional<mlir_operation> parse_mlir_operation(std::string_view text);

}  // namespace memprof::inline MEMPROF_ABI
