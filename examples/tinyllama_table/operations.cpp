#include <tinyllama_table/operations.hpp>

#include <cstddef>
#include <tuple>

namespace tinyllama_table {

using memprof::category;
using memprof::track_operation;

variable_ptr operations::embedding(const tensor& tokens, const variable_ptr& table) const {
  const auto scope = track_operation<"embedding">();
  const variable_ptr y = make_variable(device_->make({sizes_.sequence, sizes_.width}));
  record([tokens, table, y] { add_gradient(*table, make_gradient(*table)); });
  return y;
}

variable_ptr operations::linear(const variable_ptr& x, const variable_ptr& weight, std::size_t columns) const {
  const auto scope = track_operation<"linear">();
  const variable_ptr y = make_variable(device_->make({sizes_.sequence, columns}));
  record([x, weight, y] {
    const auto backward_scope = track_operation<"linear">();
    const tensor x_gradient = make_gradient(*x);
    const tensor weight_gradient = make_gradient(*weight);
    add_gradient(*x, x_gradient);
    add_gradient(*weight, weight_gradient);
  });
  return y;
}

variable_ptr operations::rms_norm(const variable_ptr& x, const variable_ptr& scale) const {
  const auto scope = track_operation<"rms_norm">();
  const tensor mean_squares = device_->make({sizes_.sequence, 1});
  const variable_ptr y = make_variable(device_->make({sizes_.sequence, sizes_.width}));
  record([x, scale, mean_squares, y] {
    const auto backward_scope = track_operation<"rms_norm">();
    const tensor x_gradient = make_gradient(*x);
    const tensor scale_gradient = make_gradient(*scale);
    add_gradient(*x, x_gradient);
    add_gradient(*scale, scale_gradient);
  });
  return y;
}

std::tuple<variable_ptr, variable_ptr, variable_ptr> operations::split_heads(const variable_ptr& queries,
                                                                             const variable_ptr& keys_and_values) const {
  const auto scope = track_operation<"split_heads">();
  const variable_ptr q = make_variable(device_->make({sizes_.heads, sizes_.sequence, sizes_.head_width()}));
  const variable_ptr k = make_variable(device_->make({sizes_.groups, sizes_.sequence, sizes_.head_width()}));
  const variable_ptr v = make_variable(device_->make({sizes_.groups, sizes_.sequence, sizes_.head_width()}));
  record([queries, keys_and_values, q, k, v] {
    const auto backward_scope = track_operation<"split_heads">();
    const tensor queries_gradient = make_gradient(*queries);
    const tensor keys_gradient = make_gradient(*k);
    const tensor values_gradient = make_gradient(*v);
    const tensor union_gradient = make_gradient(*keys_and_values);
    add_gradient(*queries, queries_gradient);
    add_gradient(*keys_and_values, union_gradient);
  });
  return {q, k, v};
}

variable_ptr operations::rotate(const variable_ptr& x) const {
  const auto scope = track_operation<"rotate">();
  const variable_ptr y = make_variable(make_like(x->value));
  record([x, y] {
    const auto backward_scope = track_operation<"rotate">();
    add_gradient(*x, make_gradient(*x));
  });
  return y;
}

/// Keys or values, as large as if each head had its own.
tensor operations::repeated_for_heads(category what) const {
  return device_->make({sizes_.heads, sizes_.sequence, sizes_.head_width()}, what);
}

/// The forward pass peaks here: five tensors for the mask besides the scores.
tensor operations::probabilities(const variable_ptr& queries) const {
  const tensor scaled_queries = make_like(queries->value, category::temporary);
  tensor scores = [&] {
    const tensor keys_of_heads = repeated_for_heads(category::temporary);
    return device_->make({sizes_.heads, sizes_.sequence, sizes_.sequence}, category::temporary);
  }();
  scores = [&] {
    const tensor masked = make_like(scores, category::temporary);
    const tensor mask_less_one = device_->make({sizes_.sequence, sizes_.sequence}, category::temporary);
    const tensor mask_times_1e9 = device_->make({sizes_.sequence, sizes_.sequence}, category::temporary);
    return make_like(masked, category::temporary);
  }();
  return make_like(scores);
}

variable_ptr operations::attention(const variable_ptr& queries, const variable_ptr& keys, const variable_ptr& values) const {
  const auto scope = track_operation<"attention">();
  const tensor weights = probabilities(queries);
  const variable_ptr y = [&] {
    const tensor values_of_heads = repeated_for_heads(category::temporary);
    return make_variable(make_like(queries->value));
  }();
  const operations untaped{sizes_, *device_, nullptr};
  record([untaped, queries, keys, values, weights, y] {
    const auto backward_scope = track_operation<"attention">();
    tensor weights_gradient = [&] {
      const tensor values_of_heads = untaped.repeated_for_heads(category::temporary);
      return make_like(weights, category::temporary);
    }();
    // The peak of the whole step: the gradients of the probabilities and of the scores.
    tensor scores_gradient = make_like(weights, category::temporary);
    weights_gradient.reset();
    scores_gradient = make_like(scores_gradient, category::temporary);  // scaled
    const tensor queries_gradient = [&] {
      const tensor keys_of_heads = untaped.repeated_for_heads(category::temporary);
      return make_gradient(*queries);
    }();
    // Of keys and of values for each head first, then the sum over the heads of a group.
    const auto summed_over_heads = [&](const variable& target) {
      const tensor for_each_head = untaped.repeated_for_heads(category::temporary);
      return make_gradient(target);
    };
    const tensor keys_gradient = summed_over_heads(*keys);
    const tensor values_gradient = summed_over_heads(*values);
    add_gradient(*queries, queries_gradient);
    add_gradient(*keys, keys_gradient);
    add_gradient(*values, values_gradient);
  });
  return y;
}

variable_ptr operations::merge_heads(const variable_ptr& x) const {
  const auto scope = track_operation<"merge_heads">();
  const variable_ptr y = make_variable(device_->make({sizes_.sequence, sizes_.width}));
  record([x, y] {
    const auto backward_scope = track_operation<"merge_heads">();
    const tensor reshaped = make_gradient(*x);
    add_gradient(*x, make_gradient(*x));
  });
  return y;
}

variable_ptr operations::add(const variable_ptr& left, const variable_ptr& right) const {
  const auto scope = track_operation<"add">();
  const variable_ptr y = make_variable(make_like(left->value));
  record([left, right, y] {  // both get the gradient of the sum itself
    add_gradient(*left, y->gradient);
    add_gradient(*right, y->gradient);
  });
  return y;
}

variable_ptr operations::silu(const variable_ptr& x) const {
  const auto scope = track_operation<"silu">();
  const variable_ptr y = make_variable(make_like(x->value));
  record([x, y] {
    const auto backward_scope = track_operation<"silu">();
    add_gradient(*x, make_gradient(*x));
  });
  return y;
}

variable_ptr operations::multiply(const variable_ptr& left, const variable_ptr& right) const {
  const auto scope = track_operation<"multiply">();
  const variable_ptr y = make_variable(make_like(left->value));
  record([left, right, y] {
    const auto backward_scope = track_operation<"multiply">();
    const tensor left_gradient = make_gradient(*left);
    const tensor right_gradient = make_gradient(*right);
    add_gradient(*left, left_gradient);
    add_gradient(*right, right_gradient);
  });
  return y;
}

variable_ptr operations::cross_entropy(const variable_ptr& logits, const tensor& targets) const {
  const auto scope = track_operation<"cross_entropy">();
  const variable_ptr loss = make_variable(device_->make({1, 1}));
  record([logits, targets, loss] {
    const auto backward_scope = track_operation<"cross_entropy">();
    add_gradient(*logits, make_gradient(*logits));
  });
  return loss;
}

}  // namespace tinyllama_table
