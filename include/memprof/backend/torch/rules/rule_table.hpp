#pragma once

#include <memprof/backend/torch/rules/attention.hpp>
#include <memprof/backend/torch/rules/convolution.hpp>
#include <memprof/backend/torch/rules/data.hpp>
#include <memprof/backend/torch/rules/indexing.hpp>
#include <memprof/backend/torch/rules/losses.hpp>
#include <memprof/backend/torch/rules/matrices.hpp>
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

namespace memprof::inline MEMPROF_ABI::detail {

/// Adds the rules that come with memprof, once.
inline void add_known_rules() {
  static const bool is_done = [] {
    const auto add = [](const auto& rules) {
      for (const known_rule& known : rules) all_operator_plans().add_rule(known);
    };
    add(attention_rules);
    add(convolution_rules);
    add(data_rules);
    add(indexing_rules);
    add(loss_rules);
    add(matrix_rules);
    add(normalization_rules);
    add(optimizer_rules);
    add(padding_rules);
    add(pointwise_rules);
    add(pooling_rules);
    add(random_rules);
    add(recurrent_rules);
    add(reduction_rules);
    add(resampling_rules);
    return true;
  }();
  (void)is_done;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
