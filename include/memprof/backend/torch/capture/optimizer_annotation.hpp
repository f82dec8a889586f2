#pragma once

#include <memprof/backend/torch/config.hpp>

#include <torch/optim/optimizer.h>

#if MEMPROF_ENABLED
#include <cstddef>
#include <string>
#include <vector>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {
struct torch_thread;
}

inline namespace enabled {

/// Annotates the state of an optimizer as it is created, until the end of the scope. See `annotate_optimizer`.
///
/// An optimizer has no hook for the creation of its state. But its step consists of operators that autograd does not record, and
/// after the one that allocates a parameter's state, another follows before the step ends. Checking the number of states before
/// each such operator therefore finds every state promptly, while its segment is still open.
class [[nodiscard]] optimizer_annotation {
 public:
  explicit optimizer_annotation(const torch::optim::Optimizer& optimizer);
  optimizer_annotation(const optimizer_annotation&) = delete;
  optimizer_annotation& operator=(const optimizer_annotation&) = delete;
  ~optimizer_annotation();

 private:
  /// A state in two blocks that are replaced whenever something is added to it: the momentum of sparse gradients.
  struct sparse_state {
    void* parameter;  ///< its `TensorImpl`
    std::string name;
    const void* block;  ///< of its values, as last annotated
  };

  static void look_at_all();
  void look();
  /// Annotates a state again if its blocks were replaced. Additions are operators, so there is a check between any two.
  void annotate_replaced(sparse_state& known) const;
  void annotate_new_states();
  /// False if the parameter has no state.
  [[nodiscard]] bool annotate_state(const at::Tensor& parameter, std::size_t number);

  const torch::optim::Optimizer& optimizer_;
  const detail::torch_thread* thread_;
  optimizer_annotation* next_ = nullptr;
  std::size_t state_count_ = 0;
  std::vector<bool> has_state_;  ///< by the position of the parameter in the groups
  std::vector<sparse_state> sparse_states_;
};

/// Annotates the state of an optimizer with the category `optimizer_state`, and with the name of the parameter, if known from
/// `annotate_module`, and of the moment. Supports Adam, AdamW, SGD, RMSprop and Adagrad; others keep the category they have.
///
/// Existing state is annotated at once. State that a step creates is annotated while the returned object lives, if this thread
/// runs the step and the capture has `torch_backend`; otherwise, call this again after the first step, and after loading a state.
/// The optimizer must outlive the object. Cost: a lock before each operator without gradient.
[[nodiscard]] inline optimizer_annotation annotate_optimizer(const torch::optim::Optimizer& optimizer) {
  return optimizer_annotation{optimizer};
}

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] optimizer_annotation {
 public:
  // Not trivial, so that an unused object causes no warning.
  ~optimizer_annotation() {}
};

[[nodiscard]] inline optimizer_annotation annotate_optimizer(const torch::optim::Optimizer&) noexcept { return {}; }

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/capture/annotate_optimizer.hpp>
#endif
