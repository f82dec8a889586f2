#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/rules_pointwise.hpp>
#include <memprof/backend/torch/torch_call.hpp>

/// @file
/// Dropout. Tensors that are only filled with random numbers need no rule: their sizes are arguments.

namespace memprof::detail {

/// (input, p, train) -> (output, mask): the mask has one byte an element.
inline void native_dropout_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor output = torch_call::empty_like(input);
  const at::Tensor mask = torch_call::empty_like(input, at::kBool);
  call.returns(output, mask);
}

inline constexpr known_rule random_rules[] = {
    {"aten::native_dropout", native_dropout_rule},
    {"aten::native_dropout_backward", like_first_rule},
};

}  // namespace memprof::detail
