#pragma once

#include <memprof/backend/torch/rules/attention.hpp>
#include <memprof/backend/torch/rules/convolution.hpp>
#include <memprof/backend/torch/rules/data.hpp>
#include <memprof/backend/torch/rules/indexing.hpp>
#include <memprof/backend/torch/rules/losses.hpp>
#include <memprof/backend/torch/rules/matrices.hpp>
#include <memprof/backend/torch/rules/nested.hpp>
#include <memprof/backend/torch/rules/normalization.hpp>
#include <memprof/backend/torch/rules/optimizer.hpp>
#include <memprof/backend/torch/rules/padding.hpp>
#include <memprof/backend/torch/rules/pointwise.hpp>
#include <memprof/backend/torch/rules/pooling.hpp>
#include <memprof/backend/torch/rules/random.hpp>
#include <memprof/backend/torch/rules/recurrent.hpp>
#include <memprof/backend/torch/rules/reductions.hpp>
#include <memprof/backend/torch/rules/resampling.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>

#include <span>

/// @file
/// Rules describe what a kernel allocates, for operators whose kernel would take long or reads unknown values.
///
/// Each header of this folder covers one family: functions, each with the operator's arguments above it, and at the end the table
/// that maps operators to them. A rule is a function of a `torch_call`:
///
/// - `call.tensor(0)`, `call.integers(1)` and so on are the arguments, by their position in the schema;
/// - `torch_call::empty`, `empty_like` and `in_format` create results, `call.returns(...)` ends the call with them;
/// - `torch_call::scratch`, `converted` and `contiguous` are what the kernel holds besides, for the lifetime of the variable;
/// - `call.run_shape_function()` creates the results if libtorch has a shape function;
/// - `call.run_without_rule()` leaves the call to the real kernel, `call.approximate(why)` lists it in the profile.
///
/// `rule_use` says when a rule applies: if the kernel would take long, or if values are unknown. Every rule is tested against its
/// kernel (tests/torch/operator_calls); docs/torch_operators.md has the results.

namespace memprof::inline MEMPROF_ABI::detail {

/// The rules of one header, by the name of the header.
struct rule_family {
  const char* name;
  std::span<const known_rule> rules;
};

inline constexpr rule_family rule_families[] = {
    {"attention", attention_rules},
    {"convolution", convolution_rules},
    {"data", data_rules},
    {"indexing", indexing_rules},
    {"losses", loss_rules},
    {"matrices", matrix_rules},
    {"nested", nested_rules},
    {"normalization", normalization_rules},
    {"optimizer", optimizer_rules},
    {"padding", padding_rules},
    {"pointwise", pointwise_rules},
    {"pooling", pooling_rules},
    {"random", random_rules},
    {"recurrent", recurrent_rules},
    {"reductions", reduction_rules},
    {"resampling", resampling_rules},
};

/// Adds memprof's own rules, once.
inline void add_known_rules() {
  static const bool is_done = [] {
    for (const rule_family& family : rule_families) {
      for (const known_rule& known : family.rules) all_operator_plans().add_rule(known);
    }
    return true;
  }();
  (void)is_done;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
