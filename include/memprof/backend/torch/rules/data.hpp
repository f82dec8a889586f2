#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <cstdint>

/// @file
/// Operators that read data, which is not there: numbers are 0, truth values false.

namespace memprof::detail {

/// What `item()` reads.
inline void read_number_rule(torch_call& call) {
  const at::ScalarType dtype = call.tensor(0).scalar_type();
  if (dtype == at::kBool) return call.returns(at::Scalar{false});
  if (at::isComplexType(dtype)) return call.returns(at::Scalar{c10::complex<double>{0.0, 0.0}});
  if (at::isIntegralType(dtype, false)) return call.returns(at::Scalar{std::int64_t{0}});
  call.returns(at::Scalar{0.0});
}

/// Equal is what is the same, as in the attention that asks whether its queries are its keys.
inline void equal_rule(torch_call& call) {
  const at::Tensor left = call.tensor(0);
  const at::Tensor right = call.tensor(1);
  call.returns(left.storage().is_alias_of(right.storage()) && left.storage_offset() == right.storage_offset() &&
               left.sizes() == right.sizes() && left.strides() == right.strides());
}

inline constexpr known_rule data_rules[] = {
    {"aten::_local_scalar_dense", read_number_rule},
    {"aten::equal", equal_rule},
};

}  // namespace memprof::detail
