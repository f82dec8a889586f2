#pragma once

#include <memprof/backend/torch/simulation/nominal_values.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

/// @file
/// The nominal values of the operators' results, from those of their arguments.

namespace memprof::inline MEMPROF_ABI::detail {

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
