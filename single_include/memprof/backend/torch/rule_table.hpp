#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/operator_plans.hpp>
#include <memprof/backend/torch/rules_attention.hpp>
#include <memprof/backend/torch/rules_convolution.hpp>
#include <memprof/backend/torch/rules_data.hpp>
#include <memprof/backend/torch/rules_indexing.hpp>
#include <memprof/backend/torch/rules_losses.hpp>
#include <memprof/backend/torch/rules_matrices.hpp>
#include <memprof/backend/torch/rules_normalization.hpp>
#include <memprof/backend/torch/rules_optimizer.hpp>
#include <memprof/backend/torch/rules_pointwise.hpp>
#include <memprof/backend/torch/rules_random.hpp>
#include <memprof/backend/torch/rules_recurrent.hpp>
#include <memprof/backend/torch/rules_reductions.hpp>

namespace memprof::detail {

/// Adds the rules that come with memprof, once.
inline void add_known_rules() {
  static const bool is_done = [] {
    const auto add = [](const auto& rules) {
      for (const known_rule& known : rules) all_operator_plans().add_rule(known.name, known.rule);
    };
    add(attention_rules);
    add(convolution_rules);
    add(data_rules);
    add(indexing_rules);
    add(loss_rules);
    add(matrix_rules);
    add(normalization_rules);
    add(optimizer_rules);
    add(pointwise_rules);
    add(random_rules);
    add(recurrent_rules);
    add(reduction_rules);
    return true;
  }();
  (void)is_done;
}

}  // namespace memprof::detail
