#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The position of the argument, such as `out`, that an operator writes and returns as this result; the number of arguments if
/// there is none.
[[nodiscard]] inline std::size_t written_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  const c10::AliasInfo* const wanted = result.alias_info();
  for (std::size_t index = 0; wanted != nullptr && index < schema.arguments().size(); ++index) {
    const c10::AliasInfo* const offered = schema.arguments()[index].alias_info();
    if (offered != nullptr && offered->isWrite() && offered->beforeSets() == wanted->beforeSets()) return index;
  }
  return schema.arguments().size();
}

/// Whether an operator makes tensors unlike its inputs, of fewer bits or of several blocks, which its schema does not show.
[[nodiscard]] inline bool makes_other_tensors(const c10::FunctionSchema& schema) {
  constexpr std::string_view beginnings[] = {"aten::_to_sparse", "aten::to_mkldnn", "aten::quantize_per_"};
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return schema.name().compare(0, beginning.size(), beginning) == 0; });
}

/// Ends a call of an operator of which only the schema is known: every new result gets the size of an input; for a backward
/// operator, of the input that it is probably the gradient of. Returns false and does nothing if there is nothing to go by.
[[nodiscard]] inline bool estimate_call(torch_call& call) {
  const c10::FunctionSchema& schema = call.called().schema();
  if (makes_other_tensors(schema)) return false;
  std::vector<at::Tensor> inputs;
  for (std::size_t index = 0; index < call.size(); ++index) {
    if (call.argument(index).isTensor() && call.argument(index).toTensor().defined()) inputs.push_back(call.tensor(index));
  }
  // The arguments of a backward operator begin with gradients, followed by what they are gradients of.
  const bool is_backward = schema.name().find("backward") != std::string::npos;
  std::vector<c10::IValue> results;
  for (const c10::Argument& result : schema.returns()) {
    const std::size_t written = written_argument(schema, result);
    if (written != schema.arguments().size()) {
      results.push_back(call.argument(written));
      continue;
    }
    if (result.type()->kind() != c10::TypeKind::TensorType || inputs.empty()) return false;
    const std::size_t like = is_backward ? std::min(results.size() + 1, inputs.size() - 1) : 0;
    results.emplace_back(torch_call::empty_like(inputs[like]));
  }
  torch::jit::drop(call.stack(), call.size());
  for (c10::IValue& result : results) call.stack().push_back(std::move(result));
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
