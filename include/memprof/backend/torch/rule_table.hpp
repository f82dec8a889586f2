#pragma once

#include <memprof/backend/torch/operator_plans.hpp>
#include <memprof/backend/torch/rules_data.hpp>
#include <memprof/backend/torch/rules_indexing.hpp>
#include <memprof/backend/torch/rules_normalization.hpp>
#include <memprof/backend/torch/rules_pointwise.hpp>
#include <memprof/backend/torch/rules_random.hpp>

namespace memprof::detail {

/// Adds the rules that come with memprof, once.
inline void add_known_rules() {
  static const bool is_done = [] {
    const auto add = [](const auto& rules) {
      for (const known_rule& known : rules) all_operator_plans().add_rule(known.name, known.rule);
    };
    add(data_rules);
    add(indexing_rules);
    add(normalization_rules);
    add(pointwise_rules);
    add(random_rules);
    return true;
  }();
  (void)is_done;
}

}  // namespace memprof::detail
