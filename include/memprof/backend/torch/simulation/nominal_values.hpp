#pragma once

#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

/// @file
/// What a program gets that reads a value which the simulation does not have: a nominal one, as if all elements of a large
/// unknown tensor were one ordinary number. It follows the operators that lead from numbers to decisions (arithmetic,
/// comparisons, reductions), so that `isfinite(gradient).all()` is true and a line search sees a descent; the results of all
/// others are new numbers, each a little less than the last, as the loss of a training is. Small unknown tensors need none:
/// kernels compute their bytes.

namespace memprof::inline MEMPROF_ABI::detail {

/// The nominal number of a block that no operator below has computed: from 1 downwards, in the order of blocks.
[[nodiscard]] inline double new_nominal_number(std::uint64_t block_number) noexcept {
  return 1.0 / (1.0 + std::log1p(static_cast<double>(block_number + 1) / 1000.0) / 10.0);
}

[[nodiscard]] inline double nominal_number(const fake_block& block) noexcept {
  const double known = block.nominal.load(std::memory_order_relaxed);
  return std::isnan(known) ? new_nominal_number(block.number) : known;
}

/// Calls `use(T{})` with the type of the elements; false for types that are no plain numbers.
template <class Use>
bool with_element_type(c10::ScalarType dtype, Use use) {
  switch (dtype) {
    case c10::kFloat: return use(float{}), true;
    case c10::kDouble: return use(double{}), true;
    case c10::kHalf: return use(c10::Half{}), true;
    case c10::kBFloat16: return use(c10::BFloat16{}), true;
    case c10::kLong: return use(std::int64_t{}), true;
    case c10::kInt: return use(std::int32_t{}), true;
    case c10::kShort: return use(std::int16_t{}), true;
    case c10::kChar: return use(std::int8_t{}), true;
    case c10::kByte: return use(std::uint8_t{}), true;
    case c10::kBool: return use(bool{}), true;
    default: return false;
  }
}

/// Whether kernels have computed the bytes of an unknown block, meaningful or not: see `discard_values`.
[[nodiscard]] inline bool has_bytes(const fake_block& block, c10::ScalarType dtype) noexcept {
  return block.data != nullptr && block.bytes <= max_valued_bytes(dtype) && !block.lacks_bytes.load(std::memory_order_relaxed);
}

/// A number as an element of a type.
template <class Element>
[[nodiscard]] Element nominal_as(double number) noexcept {
  if constexpr (std::is_same_v<Element, bool>) {
    return number != 0;
  } else if constexpr (std::is_integral_v<Element>) {
    constexpr double limit = static_cast<double>(std::numeric_limits<Element>::max() / 2);
    if (std::isnan(number)) return Element{0};
    return static_cast<Element>(std::clamp(number, std::is_signed_v<Element> ? -limit : 0.0, limit));
  } else if constexpr (std::is_same_v<Element, double>) {
    return number;
  } else {
    return static_cast<Element>(static_cast<float>(number));  // narrower types convert from float alone
  }
}

/// Gives a small tensor the bytes of its nominal value, if no kernel has computed any.
inline void materialize(const at::Tensor& tensor) {
  fake_block* const block = is_dense(tensor) ? block_of(*tensor.storage().unsafeGetStorageImpl()) : nullptr;
  if (block == nullptr || !block->lacks_bytes.exchange(false, std::memory_order_relaxed) || block->data == nullptr) return;
  const double number = nominal_number(*block);
  with_element_type(tensor.scalar_type(), [&]<class Element>(Element) {
    std::fill_n(static_cast<Element*>(block->data), block->bytes / sizeof(Element), nominal_as<Element>(number));
  });
}

/// The first element of a tensor, or what it is taken for.
[[nodiscard]] inline double nominal_element(const at::Tensor& tensor) {
  const c10::ScalarType dtype = tensor.scalar_type();
  if (!is_dense(tensor) || tensor.numel() == 0) return 0;
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const fake_block* const block = block_of(storage);
  if (block != nullptr && !has_bytes(*block, dtype)) {
    double number = nominal_number(*block);
    // As rounded as in a tensor that has bytes, for comparisons with that.
    with_element_type(dtype, [&]<class Element>(Element) { number = static_cast<double>(nominal_as<Element>(number)); });
    return number;
  }
  double number = 0;
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  const auto* const bytes = static_cast<const char*>(memory.storage().data());
  with_element_type(dtype, [&](auto element) {
    if (bytes == nullptr) return;
    std::memcpy(&element, bytes + static_cast<std::size_t>(memory.storage_offset()) * sizeof element, sizeof element);
    number = static_cast<double>(element);
  });
  return number;
}

/// Call before a kernel computes from whatever bytes the arguments have. False if some have none: views of large tensors.
[[nodiscard]] inline bool materialize_arguments(const torch_call& call, const operator_plan& plan) {
  bool have_all = true;
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    materialize(tensor);
    const fake_block* const block = is_dense(tensor) ? block_of(*tensor.storage().unsafeGetStorageImpl()) : nullptr;
    const bool has = role.is_overwritten || block == nullptr || has_bytes(*block, tensor.scalar_type()) || has_values(tensor);
    have_all = have_all && has;
  });
  return have_all;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
