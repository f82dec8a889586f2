#pragma once

#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/nominal_results.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

/// @file
/// What operators make of the shares of their arguments.

namespace memprof::inline MEMPROF_ABI::detail {

/// A call as the functions below see it.
struct share_call {
  const torch_call& call;

  [[nodiscard]] bool is_tensor(std::size_t index) const { return index < call.size() && call.argument(index).isTensor(); }
  [[nodiscard]] at::Tensor tensor(std::size_t index) const {
    if (is_tensor(index)) return call.tensor(index);
    const bool is_list =
        index < call.size() && call.argument(index).isTensorList() && !call.argument(index).toTensorList().empty();
    return is_list ? at::Tensor{call.argument(index).toTensorList().get(0)} : at::Tensor{};
  }
  [[nodiscard]] std::optional<double> share(std::size_t index) const { return likely_share(tensor(index)); }
  [[nodiscard]] std::optional<double> likely_or_counted(std::size_t index) const {
    const std::optional<double> likely = likely_share(tensor(index));
    return likely.has_value() ? likely : counted_share(tensor(index));
  }
  [[nodiscard]] double choices(std::size_t index) const { return choices_of(tensor(index)); }
  [[nodiscard]] double number(std::size_t index) const { return nominal_call{call}.value(index); }
};

using share_function = std::optional<double> (*)(const share_call&);

[[nodiscard]] inline std::optional<double> share_of_equal(const share_call& of) {
  if (!of.is_tensor(1) && std::isinf(of.number(1))) return 0;  // as isinf asks
  const double choices = std::max(of.choices(0), of.choices(1));
  return choices >= 1 ? std::optional{1 / choices} : std::nullopt;
}
/// Of elements below the second argument: numbers are as often below it as not.
[[nodiscard]] inline std::optional<double> share_of_less(const share_call& of) {
  const double choices = of.choices(0);
  if (choices == 0 || of.is_tensor(1)) return 0.5;
  const double limit = of.number(1);
  return std::clamp(choices == uniform_choices ? limit : limit / choices, 0.0, 1.0);
}
[[nodiscard]] inline std::optional<double> share_of_greater(const share_call& of) { return 1 - *share_of_less(of); }
[[nodiscard]] inline std::optional<double> share_of_self(const share_call& of) { return of.share(0); }
[[nodiscard]] inline std::optional<double> share_of_not(const share_call& of) {
  const std::optional<double> share = of.share(0);
  return share.has_value() ? std::optional{1 - *share} : std::nullopt;
}
[[nodiscard]] inline std::optional<double> share_of_and(const share_call& of) {
  const std::optional<double> left = of.likely_or_counted(0);
  const std::optional<double> right = of.likely_or_counted(1);
  return left.has_value() && right.has_value() ? std::optional{*left * *right} : left.has_value() ? left : right;
}
[[nodiscard]] inline std::optional<double> share_of_or(const share_call& of) {
  const std::optional<double> left = of.likely_or_counted(0);
  const std::optional<double> right = of.likely_or_counted(1);
  return left.has_value() && right.has_value() ? std::optional{*left + *right - *left * *right} : std::nullopt;
}
/// Each index sets one element that was zero.
[[nodiscard]] inline std::optional<double> share_of_scatter(const share_call& of) {
  const std::optional<double> share = of.likely_or_counted(0);
  if (!share.has_value() || !of.is_tensor(2) || of.tensor(0).numel() == 0) return std::nullopt;
  return std::min(1.0, *share + static_cast<double>(of.tensor(2).numel()) / static_cast<double>(of.tensor(0).numel()));
}

struct share_operator {
  std::string_view name;  ///< without overload, and without the underscore of operators that write their first argument
  share_function share;
  bool joins = false;  ///< several elements become one, which is true if any of them is; no two of them are
};

/// Sorted by name.
inline constexpr share_operator share_operators[] = {
    {"aten::_to_copy", share_of_self},
    {"aten::any", share_of_self, true},
    {"aten::bernoulli", [](const share_call& of) { return std::optional{of.number(of.call.size() < 3 ? 0 : 1)}; }},
    {"aten::bitwise_and", share_of_and},
    {"aten::bitwise_not", share_of_not},
    {"aten::bitwise_or", share_of_or},
    {"aten::cat", share_of_self},
    {"aten::clone", share_of_self},
    {"aten::copy", [](const share_call& of) { return of.share(1); }},
    {"aten::eq", share_of_equal},
    {"aten::fill", [](const share_call& of) { return std::optional{of.number(1) != 0 ? 1.0 : 0.0}; }},
    {"aten::gather", share_of_self},
    {"aten::ge", share_of_greater},
    {"aten::gt", share_of_greater},
    {"aten::index", share_of_self},
    {"aten::index_select", share_of_self},
    {"aten::isinf", [](const share_call&) { return std::optional{0.0}; }},
    {"aten::isnan", [](const share_call&) { return std::optional{0.0}; }},
    {"aten::le", share_of_less},
    {"aten::logical_and", share_of_and},
    {"aten::logical_not", share_of_not},
    {"aten::logical_or", share_of_or},
    {"aten::lt", share_of_less},
    {"aten::mul", share_of_and},
    {"aten::ne",
     [](const share_call& of) {
       const std::optional<double> equal = share_of_equal(of);
       return equal.has_value() ? std::optional{1 - *equal} : of.is_tensor(1) ? std::nullopt : of.share(0);
     }},
    {"aten::scatter", share_of_scatter},
    {"aten::zero", [](const share_call&) { return std::optional{0.0}; }},
};

/// Operators that make indices: the argument of the dimension that they index, and which result has them.
struct choice_operator {
  std::string_view name;
  std::size_t dimension;
  std::size_t result;
};
inline constexpr choice_operator choice_operators[] = {
    {"aten::argmax", 1, 0}, {"aten::argmin", 1, 0},       {"aten::argsort", 1, 0}, {"aten::max", 1, 1},
    {"aten::min", 1, 1},    {"aten::multinomial", 99, 0}, {"aten::sort", 1, 1},    {"aten::topk", 2, 1},
};

/// What is known of the results of one operator.
struct share_rules {
  const share_operator* share = nullptr;
  const choice_operator* choice = nullptr;
  bool draws_integers = false;
  bool draws_uniform = false;
  bool keeps_choices = false;
};

[[nodiscard]] inline share_rules find_share_rules(std::string_view name) noexcept {
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  const auto find = [&](const auto& all) -> decltype(std::begin(all)) {
    const auto found = std::find_if(std::begin(all), std::end(all), [&](const auto& one) { return one.name == name; });
    return found == std::end(all) ? nullptr : found;
  };
  constexpr std::string_view keeping[] = {"aten::_to_copy", "aten::cat",          "aten::clone", "aten::copy",
                                          "aten::gather",   "aten::index_select", "aten::index"};
  share_rules found;
  found.share = find(share_operators);
  found.choice = find(choice_operators);
  found.draws_integers = name == "aten::random";
  found.draws_uniform = name == "aten::uniform";
  found.keeps_choices = std::find(std::begin(keeping), std::end(keeping), name) != std::end(keeping);
  return found;
}

/// Null if nothing is known of the results of an operator.
[[nodiscard]] inline const share_rules* share_rules_of(operator_plan& plan) {
  // Acquire pairs with the release below.
  if (plan.are_shares_known.load(std::memory_order_acquire)) return plan.shares.load(std::memory_order_relaxed);
  const share_rules found = find_share_rules(plan.schema->name());
  const bool has_any = found.share != nullptr || found.choice != nullptr || found.draws_integers || found.draws_uniform;
  if (has_any || found.keeps_choices) {
    const recording_suppressor hidden;
    plan.shares.store(new share_rules{found}, std::memory_order_relaxed);  // never destroyed, like plans; twice in a race
  }
  plan.are_shares_known.store(true, std::memory_order_release);
  return plan.shares.load(std::memory_order_relaxed);
}

/// The likely shares of the results of a call. Make it before the call is simulated, and give it to the results after.
class likely_result {
 public:
  likely_result(const torch_call& call, operator_plan& plan) : rules_(share_rules_of(plan)) {
    if (rules_ == nullptr) return;
    const share_call seen{call};
    if (rules_->share != nullptr) share_ = rules_->share->share(seen);
    if (rules_->share != nullptr && rules_->share->joins && seen.is_tensor(0)) {
      elements_ = static_cast<double>(call.tensor(0).numel());
    }
    choices_ = choices_made_by(seen, *rules_);
  }

  void give_to_results(torch_call& call, const std::vector<at::Tensor>& written) const {
    if (rules_ == nullptr) {
      for (const at::Tensor& tensor : written) {
        if (fake_block* const block = unknown_block(tensor)) set(*block, std::nullopt, 0);
      }
      return;
    }
    std::size_t index = 0;
    for_each_result(call, [&](const c10::IValue& result) {
      const std::size_t place = index++;
      fake_block* const block = result.isTensor() ? unknown_block(result.toTensor()) : nullptr;
      if (block == nullptr) return;
      const bool has_choices = rules_->choice == nullptr || rules_->choice->result == place;
      const double joined = std::max(1.0, elements_ / static_cast<double>(std::max<std::int64_t>(1, result.toTensor().numel())));
      std::optional<double> share = share_.has_value() ? std::optional{std::min(1.0, *share_ * joined)} : std::nullopt;
      const double part = static_cast<double>(result.toTensor().nbytes()) / static_cast<double>(block->bytes);
      // Of the rest of the block, what was known before, if anything was.
      if (share.has_value() && part < 1) share = block->share.load(std::memory_order_relaxed) * (1 - part) + *share * part;
      set(*block, share, has_choices ? choices_ : 0);
    });
  }

 private:
  [[nodiscard]] static std::int64_t choices_made_by(const share_call& of, const share_rules& rules) {
    const torch_call& call = of.call;
    if (rules.draws_uniform) return of.number(1) == 0 && of.number(2) == 1 ? uniform_choices : 0;
    if (rules.draws_integers) {
      const bool has_both = call.size() > 3;  // (self, from, to, generator) or (self, to, generator)
      return static_cast<std::int64_t>(has_both ? of.number(2) - of.number(1) : call.size() > 2 ? of.number(1) : 0);
    }
    if (rules.keeps_choices) return static_cast<std::int64_t>(of.choices(call.called().schema().name() == "aten::copy_" ? 1 : 0));
    if (rules.choice == nullptr || !of.is_tensor(0) || call.tensor(0).dim() == 0) return 0;
    const at::Tensor from = call.tensor(0);
    if (rules.choice->dimension >= call.size()) return from.size(-1);
    for (const std::size_t index : {rules.choice->dimension, rules.choice->dimension + 1}) {  // a flag stands before in some
      if (index < call.size() && call.argument(index).isInt()) return from.size(call.integer(index));
    }
    return from.numel();
  }

  static void set(fake_block& block, std::optional<double> share, std::int64_t choices) noexcept {
    block.share.store(share.value_or(std::numeric_limits<double>::quiet_NaN()), std::memory_order_relaxed);
    block.is_share_said.store(false, std::memory_order_relaxed);
    block.choices.store(choices, std::memory_order_relaxed);
  }

  const share_rules* rules_;
  std::optional<double> share_;
  double elements_ = 1;
  std::int64_t choices_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
