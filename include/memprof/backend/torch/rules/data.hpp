#pragma once

#include <memprof/backend/torch/simulation/nominal_values.hpp>
#include <memprof/backend/torch/simulation/read_memory.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/Dispatch_v2.h>
#include <ATen/ops/all.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isclose.h>

#include <cmath>

/// @file
/// Operators that read values, if these are unknown.

namespace memprof::inline MEMPROF_ABI::detail {

/// The number in a one-element tensor, or what it is taken for; 0 if a program could not continue with it.
[[nodiscard]] inline at::Scalar number_in(const at::Tensor& tensor) {
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  at::Scalar number;
  AT_DISPATCH_V2(memory.scalar_type(), "item", AT_WRAP([&] {
                   if (memory.storage().data() != nullptr) number = at::Scalar{*memory.const_data_ptr<scalar_t>()};
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16,
                 AT_EXPAND(AT_FLOAT8_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES));
  const fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  const bool has_nominal = block != nullptr && !has_bytes(*block, tensor.scalar_type()) && !tensor.is_complex();
  if (has_nominal && number.toDouble() == 0) {  // what the program has written through a pointer is there
    const double nominal = nominal_element(tensor);
    if (tensor.scalar_type() == at::kBool) return at::Scalar{nominal != 0};
    number = number.isFloatingPoint() ? at::Scalar{nominal} : at::Scalar{static_cast<std::int64_t>(nominal)};
  }
  const bool is_finite = !number.isFloatingPoint() || std::isfinite(number.toDouble());
  return is_finite ? number : at::Scalar{0.0};
}

/// Whether a truth value says that unknown numbers are infinite or not numbers. They are taken to be ordinary ones.
[[nodiscard]] inline bool is_never_true(const at::Tensor& tensor) {
  const fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  return tensor.scalar_type() == at::kBool && block != nullptr && block->share.load(std::memory_order_relaxed) == 0;
}

/// The value that `item()` returns. On a claimed device, what was computed replaces it where the data is known.
inline void read_number_rule(torch_call& call) {
  const at::Tensor read = call.tensor(0);
  const at::Scalar number = number_in(read);
  if (has_values(read)) return call.returns(number);
  const bool is_integer = c10::isIntegralType(read.scalar_type(), true);
  const bool is_certain = is_never_true(read) && !number.toBool();  // not what is divided by zero
  unknown_reads::instance().add(is_certain ? read_use::is_certain : is_integer ? read_use::steers : read_use::prints);
  call.returns(number);
}

/// Whether all elements of a tensor are taken for one number.
[[nodiscard]] inline bool is_nominal(const at::Tensor& tensor) {
  const fake_block* const block = is_dense(tensor) ? block_of(*tensor.storage().unsafeGetStorageImpl()) : nullptr;
  return block != nullptr && !has_bytes(*block, tensor.scalar_type());
}

/// Two tensors over the same bytes are equal, as in attention that checks whether its queries are its keys. Others are if their
/// elements compare equal, as copies do.
inline void equal_rule(torch_call& call) {
  const at::Tensor left = call.tensor(0);
  const at::Tensor right = call.tensor(1);
  if (left.sizes() != right.sizes()) return call.returns(false);
  if (left.storage().is_alias_of(right.storage()) && left.storage_offset() == right.storage_offset() &&
      left.strides() == right.strides()) {
    return call.returns(true);
  }
  if (is_read_unknown(left) || is_read_unknown(right)) unknown_reads::instance().add(read_use::steers);
  if (left.is_cuda()) (void)at::eq(left, right).all();  // as the kernel does
  materialize(left);
  materialize(right);
  if (!is_nominal(left) && !is_nominal(right)) return call.run_without_rule();
  call.returns(nominal_element(left) == nominal_element(right));
}

/// (self, other, ...): the comparison takes its memory; a condition that a program needs to continue is assumed to hold.
inline void all_close_rule(torch_call& call) {
  if (has_values(call.tensor(0)) && has_values(call.tensor(1))) return call.run_without_rule();
  unknown_reads::instance().add(read_use::steers);
  (void)at::isclose(call.tensor(0), call.tensor(1), call.number(2), call.number(3), call.flag(4)).all();
  call.returns(true);
}

/// (info, ...): the outcome of a factorization, assumed to be a success if the data is unknown.
inline void check_errors_rule(torch_call& call) {
  if (has_values(call.tensor(0))) return call.run_without_rule();
  call.returns();
}

/// What a program asserts about its data is assumed to hold.
inline void assert_rule(torch_call& call) { call.returns(); }
inline void functional_assert_rule(torch_call& call) { call.returns(torch_call::empty_like(call.tensor(2))); }

inline constexpr known_rule data_rules[] = {
    {"aten::_local_scalar_dense", read_number_rule, rule_use::without_values},
    {"aten::equal", equal_rule, rule_use::without_values},
    {"aten::allclose", all_close_rule, rule_use::without_values},
    {"aten::_linalg_check_errors", check_errors_rule, rule_use::without_values},
    {"aten::_assert_async", assert_rule, rule_use::without_values},
    {"aten::_assert_async.msg", assert_rule, rule_use::without_values},
    {"aten::_functional_assert_async.msg", functional_assert_rule, rule_use::without_values},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
