#pragma once

#include <memprof/backend/torch/rules/bernoulli_scratch.hpp>
#include <memprof/backend/torch/rules/pointwise.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

/// @file
/// Dropout. Operators that only fill tensors with random numbers need no rule: their sizes are arguments.

namespace memprof::inline MEMPROF_ABI::detail {

/// (input, p, train) -> (output, mask): the mask has one byte per element.
inline void native_dropout_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const at::Tensor mask = torch_call::empty_like(input, at::kBool);
  const at::Tensor output = torch_call::empty_like(input);
  call.returns(output, mask);
}

/// (self, p, generator) -> self
inline void draw_in_place_rule(torch_call& call) {
  const at::Tensor self = call.tensor(0);
  const bool is_integers = self.scalar_type() == at::kInt && self.is_contiguous();
  at::Tensor integers;
  if (!torch_call::is_on_cuda(self) && !is_integers && draws_integers())
    integers = torch_call::empty(self.sizes(), self, at::kInt);
  call.run_shape_function();
}

/// (grad_output, mask, scale): the CPU converts the mask to the gradient's type, then scales the product.
inline void native_dropout_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  if (torch_call::is_on_cuda(gradient)) return like_first_rule(call);
  call.run_without_rule();
}

inline constexpr known_rule random_rules[] = {
    {"aten::bernoulli_.float", draw_in_place_rule},
    {"aten::native_dropout", native_dropout_rule},
    {"aten::native_dropout_backward", native_dropout_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
