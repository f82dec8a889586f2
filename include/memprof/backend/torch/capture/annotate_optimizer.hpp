#pragma once

#include <memprof/backend/torch/capture/annotate_module.hpp>
#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#include <memprof/backend/torch/capture/observe_operators.hpp>
#include <memprof/backend/torch/capture/optimizer_annotation.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>

#include <c10/util/StringUtil.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// Calls `visit(name, tensor)` for each tensor in a parameter's state, for all of libtorch's optimizers except LBFGS, whose state
/// belongs to a line search over all parameters together.
template <class Visitor>
void for_each_state_tensor(const torch::optim::OptimizerParamState& state, Visitor&& visit) {
  const auto visit_moments = [&](const auto& moments) {
    visit(".exp_avg", moments.exp_avg());
    visit(".exp_avg_sq", moments.exp_avg_sq());
    visit(".max_exp_avg_sq", moments.max_exp_avg_sq());
  };
  if (const auto* const adam = dynamic_cast<const torch::optim::AdamParamState*>(&state)) {
    visit_moments(*adam);
  } else if (const auto* const adamw = dynamic_cast<const torch::optim::AdamWParamState*>(&state)) {
    visit_moments(*adamw);
  } else if (const auto* const sgd = dynamic_cast<const torch::optim::SGDParamState*>(&state)) {
    visit(".momentum_buffer", sgd->momentum_buffer());
  } else if (const auto* const rmsprop = dynamic_cast<const torch::optim::RMSpropParamState*>(&state)) {
    visit(".square_avg", rmsprop->square_avg());
    visit(".momentum_buffer", rmsprop->momentum_buffer());
    visit(".grad_avg", rmsprop->grad_avg());
  } else if (const auto* const adagrad = dynamic_cast<const torch::optim::AdagradParamState*>(&state)) {
    visit(".sum", adagrad->sum());
  }
}

/// The state of a parameter in `Optimizer::state()`, whose key is the address of its `TensorImpl`, or in older versions that
/// address as a string.
template <class States>
[[nodiscard]] auto find_state(const States& states, void* parameter) {
  if constexpr (requires { states.find(parameter); }) {
    return states.find(parameter);
  } else {
    return states.find(c10::str(parameter));
  }
}

/// The optimizers that are watched for new state.
struct awaited_optimizers {
  futex_lock lock;
  optimizer_annotation* first = nullptr;
};
inline constinit awaited_optimizers process_awaited_optimizers{};

}  // namespace detail

inline namespace enabled {

MEMPROF_TORCH_SEPARABLE optimizer_annotation::optimizer_annotation(const torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), thread_(detail::this_torch_thread()) {
  annotate_new_states();
  const detail::lock_guard lock{detail::process_awaited_optimizers.lock};
  next_ = detail::process_awaited_optimizers.first;
  detail::process_awaited_optimizers.first = this;
  // Release pairs with the acquire in `operator_callbacks::begin_plain`.
  detail::before_unrecorded_operator.store(look_at_all, std::memory_order_release);
}

MEMPROF_TORCH_SEPARABLE optimizer_annotation::~optimizer_annotation() {
  const detail::lock_guard lock{detail::process_awaited_optimizers.lock};
  const detail::recording_suppressor hidden;
  sparse_states_ = {};
  optimizer_annotation** place = &detail::process_awaited_optimizers.first;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
  // Release pairs with the same acquire.
  if (detail::process_awaited_optimizers.first == nullptr) {
    detail::before_unrecorded_operator.store(nullptr, std::memory_order_release);
  }
}

MEMPROF_TORCH_SEPARABLE void optimizer_annotation::look_at_all() {
  const detail::lock_guard lock{detail::process_awaited_optimizers.lock};
  for (optimizer_annotation* each = detail::process_awaited_optimizers.first; each != nullptr; each = each->next_) {
    if (each->thread_ == detail::this_torch_thread()) each->look();
  }
}

MEMPROF_TORCH_SEPARABLE void optimizer_annotation::look() {
  if (optimizer_.state().size() != state_count_) annotate_new_states();
  for (sparse_state& state : sparse_states_) annotate_replaced(state);
}

MEMPROF_TORCH_SEPARABLE void optimizer_annotation::annotate_replaced(sparse_state& known) const {
  const auto state = detail::find_state(optimizer_.state(), known.parameter);
  if (state == optimizer_.state().end() || state->second == nullptr) return;
  detail::for_each_state_tensor(*state->second, [&](const char* part, const at::Tensor& tensor) {
    const void* const block = detail::sparse_block(tensor);
    if (block == known.block || block == nullptr) return;
    known.block = block;
    const detail::recording_suppressor hidden;
    if (extend::event_sink{}.capture() != 0) detail::annotate_tensor(tensor, known.name + part, category::optimizer_state);
  });
}

MEMPROF_TORCH_SEPARABLE void optimizer_annotation::annotate_new_states() {
  const detail::recording_suppressor hidden;
  state_count_ = optimizer_.state().size();
  std::size_t number = 0;
  for (const auto& group : optimizer_.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (number == has_state_.size()) has_state_.push_back(false);
      if (!has_state_[number]) has_state_[number] = annotate_state(parameter, number);
      ++number;
    }
  }
}

MEMPROF_TORCH_SEPARABLE bool optimizer_annotation::annotate_state(const at::Tensor& parameter, std::size_t number) {
  const auto state = detail::find_state(optimizer_.state(), parameter.unsafeGetTensorImpl());
  if (state == optimizer_.state().end() || state->second == nullptr) return false;
  const detail::gradient_annotation* const known = detail::find_gradient_annotation(parameter);
  const std::string name = known != nullptr ? known->parameter() : "parameter " + std::to_string(number);
  detail::for_each_state_tensor(*state->second, [&](const char* part, const at::Tensor& tensor) {
    if (extend::event_sink{}.capture() != 0) detail::annotate_tensor(tensor, name + part, category::optimizer_state);
    const void* const block = detail::sparse_block(tensor);
    if (block != nullptr) sparse_states_.push_back({parameter.unsafeGetTensorImpl(), name, block});
  });
  return true;
}

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
