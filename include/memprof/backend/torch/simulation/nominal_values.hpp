#pragma once

#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

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
  const bool is_integer = c10::isIntegralType(dtype, true);
  if (!is_dense(tensor) || tensor.numel() == 0) return 0;
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const fake_block* const block = block_of(storage);
  if (block != nullptr && !has_bytes(*block, dtype)) {
    const double number = nominal_number(*block);
    return is_integer ? std::trunc(number) : number;
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

/// A call as the functions below see it: the nominal values of its arguments.
struct nominal_call {
  const torch_call& call;

  [[nodiscard]] bool has(std::size_t index) const { return index < call.size() && call.has(index); }
  /// Of a tensor, the first tensor of a list, or a number; `missing` if there is none.
  [[nodiscard]] double value(std::size_t index, double missing = 0) const {
    if (!has(index)) return missing;
    const c10::IValue& argument = call.argument(index);
    if (argument.isTensor()) return argument.toTensor().defined() ? nominal_element(argument.toTensor()) : missing;
    if (argument.isTensorList()) {
      const auto tensors = argument.toTensorList();
      return tensors.empty() ? missing : nominal_element(tensors.get(0));
    }
    if (argument.isDouble()) return argument.toDouble();
    if (argument.isBool()) return argument.toBool() ? 1 : 0;
    return argument.isInt() ? static_cast<double>(argument.toInt()) : missing;
  }
  [[nodiscard]] double self() const { return value(0); }
  [[nodiscard]] double other() const { return value(1); }
  /// Of the first argument in the dimension that the second names.
  [[nodiscard]] double length() const {
    const at::Tensor input = call.tensor(0);
    return input.dim() == 0 ? 1 : static_cast<double>(input.size(call.integer(1)));
  }
};

/// How a reduction depends on the number of elements that become one.
enum class nominal_growth : std::uint8_t {
  none,
  sum,  ///< with their number
  norm  ///< with the root of it that the second argument says, 2 if none
};

struct nominal_operator {
  std::string_view name;  ///< without overload, and without the underscore of operators that write their first argument
  double (*value)(const nominal_call&);
  nominal_growth growth = nominal_growth::none;
};

[[nodiscard]] inline double flag(bool condition) noexcept { return condition ? 1 : 0; }

/// Sorted by name.
inline constexpr nominal_operator nominal_operators[] = {
    {"aten::_log_softmax", [](const nominal_call& of) { return -std::log(of.length()); }},
    {"aten::_softmax", [](const nominal_call& of) { return 1 / of.length(); }},
    {"aten::_to_copy", [](const nominal_call& of) { return of.self(); }},
    {"aten::abs", [](const nominal_call& of) { return std::abs(of.self()); }},
    {"aten::add", [](const nominal_call& of) { return of.self() + of.other() * of.value(2, 1); }},
    {"aten::all", [](const nominal_call& of) { return flag(of.self() != 0); }},
    {"aten::amax", [](const nominal_call& of) { return of.self(); }},
    {"aten::amin", [](const nominal_call& of) { return of.self(); }},
    {"aten::aminmax", [](const nominal_call& of) { return of.self(); }},
    {"aten::any", [](const nominal_call& of) { return flag(of.self() != 0); }},
    {"aten::bitwise_and", [](const nominal_call& of) { return flag(of.self() != 0 && of.other() != 0); }},
    {"aten::bitwise_not", [](const nominal_call& of) { return flag(of.self() == 0); }},
    {"aten::bitwise_or", [](const nominal_call& of) { return flag(of.self() != 0 || of.other() != 0); }},
    {"aten::cat", [](const nominal_call& of) { return of.self(); }},
    {"aten::ceil", [](const nominal_call& of) { return std::ceil(of.self()); }},
    {"aten::clamp",
     [](const nominal_call& of) { return std::min(std::max(of.self(), of.value(1, -HUGE_VAL)), of.value(2, HUGE_VAL)); }},
    {"aten::clone", [](const nominal_call& of) { return of.self(); }},
    {"aten::copy", [](const nominal_call& of) { return of.other(); }},
    {"aten::count_nonzero", [](const nominal_call& of) { return flag(of.self() != 0); }, nominal_growth::sum},
    {"aten::cummax", [](const nominal_call& of) { return of.self(); }},
    {"aten::cummin", [](const nominal_call& of) { return of.self(); }},
    {"aten::div", [](const nominal_call& of) { return of.self() / of.other(); }},
    {"aten::dot", [](const nominal_call& of) { return of.self() * of.other(); }, nominal_growth::sum},
    {"aten::eq", [](const nominal_call& of) { return flag(of.self() == of.other()); }},
    {"aten::fill", [](const nominal_call& of) { return of.other(); }},
    {"aten::floor", [](const nominal_call& of) { return std::floor(of.self()); }},
    {"aten::gather", [](const nominal_call& of) { return of.self(); }},
    {"aten::ge", [](const nominal_call& of) { return flag(of.self() >= of.other()); }},
    {"aten::gt", [](const nominal_call& of) { return flag(of.self() > of.other()); }},
    {"aten::index_select", [](const nominal_call& of) { return of.self(); }},
    {"aten::isinf", [](const nominal_call& of) { return flag(std::isinf(of.self())); }},
    {"aten::isnan", [](const nominal_call& of) { return flag(std::isnan(of.self())); }},
    {"aten::kthvalue", [](const nominal_call& of) { return of.self(); }},
    {"aten::le", [](const nominal_call& of) { return flag(of.self() <= of.other()); }},
    {"aten::lerp", [](const nominal_call& of) { return of.self() + of.value(2) * (of.other() - of.self()); }},
    {"aten::linalg_vector_norm", [](const nominal_call& of) { return std::abs(of.self()); }, nominal_growth::norm},
    {"aten::logical_and", [](const nominal_call& of) { return flag(of.self() != 0 && of.other() != 0); }},
    {"aten::logical_not", [](const nominal_call& of) { return flag(of.self() == 0); }},
    {"aten::logical_or", [](const nominal_call& of) { return flag(of.self() != 0 || of.other() != 0); }},
    {"aten::lt", [](const nominal_call& of) { return flag(of.self() < of.other()); }},
    {"aten::max", [](const nominal_call& of) { return of.self(); }},
    {"aten::maximum", [](const nominal_call& of) { return std::max(of.self(), of.other()); }},
    {"aten::mean", [](const nominal_call& of) { return of.self(); }},
    {"aten::median", [](const nominal_call& of) { return of.self(); }},
    {"aten::min", [](const nominal_call& of) { return of.self(); }},
    {"aten::minimum", [](const nominal_call& of) { return std::min(of.self(), of.other()); }},
    {"aten::mul", [](const nominal_call& of) { return of.self() * of.other(); }},
    {"aten::nanmedian", [](const nominal_call& of) { return of.self(); }},
    {"aten::ne", [](const nominal_call& of) { return flag(of.self() != of.other()); }},
    {"aten::neg", [](const nominal_call& of) { return -of.self(); }},
    {"aten::norm", [](const nominal_call& of) { return std::abs(of.self()); }, nominal_growth::norm},
    {"aten::pow", [](const nominal_call& of) { return std::pow(of.self(), of.other()); }},
    {"aten::reciprocal", [](const nominal_call& of) { return 1 / of.self(); }},
    {"aten::relu", [](const nominal_call& of) { return std::max(0.0, of.self()); }},
    {"aten::remainder", [](const nominal_call& of) { return of.self() - of.other() * std::floor(of.self() / of.other()); }},
    {"aten::round", [](const nominal_call& of) { return std::nearbyint(of.self()); }},
    {"aten::rsub", [](const nominal_call& of) { return of.other() - of.self() * of.value(2, 1); }},
    {"aten::sort", [](const nominal_call& of) { return of.self(); }},
    {"aten::sqrt", [](const nominal_call& of) { return std::sqrt(of.self()); }},
    {"aten::sub", [](const nominal_call& of) { return of.self() - of.other() * of.value(2, 1); }},
    {"aten::sum", [](const nominal_call& of) { return of.self(); }, nominal_growth::sum},
    {"aten::topk", [](const nominal_call& of) { return of.self(); }},
    {"aten::trunc", [](const nominal_call& of) { return std::trunc(of.self()); }},
    {"aten::where", [](const nominal_call& of) { return of.self() != 0 ? of.value(1) : of.value(2); }},
    {"aten::zero", [](const nominal_call&) { return 0.0; }},
};

[[nodiscard]] inline const nominal_operator* find_nominal_operator(std::string_view schema_name) noexcept {
  if (!schema_name.empty() && schema_name.back() == '_') schema_name.remove_suffix(1);
  const auto* const found = std::lower_bound(std::begin(nominal_operators), std::end(nominal_operators), schema_name,
                                             [](const nominal_operator& one, std::string_view name) { return one.name < name; });
  return found != std::end(nominal_operators) && found->name == schema_name ? found : nullptr;
}

/// Null if the results of an operator are new numbers.
[[nodiscard]] inline const nominal_operator* nominal_operator_of(operator_plan& plan) noexcept {
  // Acquire pairs with the release below.
  if (plan.is_nominal_known.load(std::memory_order_acquire)) return plan.nominal.load(std::memory_order_relaxed);
  const nominal_operator* const found = find_nominal_operator(plan.schema->name());
  plan.nominal.store(found, std::memory_order_relaxed);
  plan.is_nominal_known.store(true, std::memory_order_release);
  return found;
}

/// The nominal result of a call on unknown values. Make it before the call is simulated, and give it to the results after.
class nominal_result {
 public:
  nominal_result(const torch_call& call, operator_plan& plan) {
    const nominal_operator* const known = nominal_operator_of(plan);
    if (known == nullptr) return;
    value_ = known->value(nominal_call{call});
    if (known->growth == nominal_growth::none || !call.argument(0).isTensor()) return;
    elements_ = static_cast<double>(call.tensor(0).numel());
    if (known->growth == nominal_growth::norm) {
      const double order = nominal_call{call}.value(1, 2);
      exponent_ = order > 0 ? 1 / order : 0;
    }
  }

  void give_to_results(torch_call& call) const {
    bool is_first = true;
    for_each_result(call, [&](const c10::IValue& result) {
      if (result.isTensor()) give_to(result.toTensor(), std::exchange(is_first, false));
    });
  }

 private:
  void give_to(const at::Tensor& result, bool is_first) const {
    if (!result.defined() || !is_dense(result)) return;
    fake_block* const block = block_of(*result.storage().unsafeGetStorageImpl());
    if (block == nullptr || block->has_values.load(std::memory_order_relaxed)) return;
    const c10::ScalarType dtype = result.scalar_type();
    const bool is_number = c10::isFloatingType(dtype);
    const bool is_listed = value_.has_value() && (is_first || is_number);
    const bool is_whole = result.nbytes() == block->bytes;
    // A part of a block says nothing of the rest, unless that is zeros, to be filled part by part.
    const bool is_filled = is_number && nominal_number(*block) == 0;
    if (is_listed && (is_whole || is_filled)) {
      const double joined = elements_ / static_cast<double>(std::max<std::int64_t>(1, result.numel()));
      block->nominal.store(joined > 1 ? *value_ * std::pow(joined, exponent_) : *value_, std::memory_order_relaxed);
    }
    // Integers that no operator of the list has made stay zeros, which are valid indices.
    if ((is_listed || is_number) && is_whole && block->bytes <= max_valued_bytes(dtype)) {
      constexpr std::size_t most_filled = 1024;  // a program may read it through a pointer
      block->lacks_bytes.store(true, std::memory_order_relaxed);
      if (block->bytes <= most_filled) materialize(result);
    }
  }

  std::optional<double> value_;
  double elements_ = 1;
  double exponent_ = 1;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
