#pragma once

#include <memprof/backend/torch/capture/annotate_tensor.hpp>
#include <memprof/backend/torch/capture/memory_from_malloc.hpp>
#include <memprof/backend/torch/capture/module_annotation.hpp>
#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// Annotates a parameter's gradient whenever the backward pass has accumulated one. Owned by the parameter.
///
/// It runs after the accumulation, so libtorch still takes over or adds gradients as it would otherwise. The parameter frees it
/// where nothing hides the free from a tracked heap; it therefore comes from `malloc` and keeps its text as a label.
class gradient_annotation final : public torch::autograd::PostAccumulateGradHook, public memory_from_malloc {
 public:
  gradient_annotation(label parameter, std::unique_ptr<torch::autograd::PostAccumulateGradHook> earlier)
      : parameter_(parameter), earlier_(std::move(earlier)) {}

  void operator()(const at::Tensor& parameter) override {
    if (earlier_ != nullptr) (*earlier_)(parameter);
    annotate(parameter);
  }

  void annotate(const at::Tensor& parameter) const {
    if (event_sink{}.capture() == 0) return;
    const recording_suppressor hidden;
    annotate_tensor(parameter.grad(), this->parameter() + ".grad", category::gradient);
  }

  /// Path of the parameter in its module.
  [[nodiscard]] std::string parameter() const { return std::string{event_sink{}.text_of(parameter_)}; }
  void rename(label parameter) noexcept { parameter_ = parameter; }

 private:
  label parameter_;
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> earlier_;  ///< a hook that someone else had installed; null: none
};

/// The annotation of a parameter; null if it has none.
[[nodiscard]] inline gradient_annotation* find_gradient_annotation(const at::Tensor& parameter) {
  if (!parameter.defined() || torch::autograd::impl::get_autograd_meta(parameter) == nullptr) return nullptr;
  return dynamic_cast<gradient_annotation*>(torch::autograd::impl::post_acc_grad_hooks(parameter).get());
}

inline void watch_gradient(const at::Tensor& parameter, const std::string& name) {
  if (!parameter.requires_grad() || !parameter.is_leaf()) return;
  if (gradient_annotation* const known = find_gradient_annotation(parameter)) return known->rename(event_sink{}.label_of(name));
  std::unique_ptr<torch::autograd::PostAccumulateGradHook>& hook = torch::autograd::impl::post_acc_grad_hooks(parameter);
  hook = std::make_unique<gradient_annotation>(event_sink{}.label_of(name), std::move(hook));
}

}  // namespace detail

inline namespace enabled {

MEMPROF_TORCH_SEPARABLE void annotate_module(const torch::nn::Module& module, std::string_view path) {
  const detail::recording_suppressor hidden;
  const auto path_of = [&](const std::string& name) { return path.empty() ? name : std::string{path} + '.' + name; };
  for (const auto& entry : module.named_parameters()) {
    const std::string name = path_of(entry.key());
    detail::watch_gradient(entry.value(), name);
    if (extend::event_sink{}.capture() == 0) continue;
    detail::annotate_tensor(entry.value(), name, category::parameter);
    if (const auto* const gradient = detail::find_gradient_annotation(entry.value())) gradient->annotate(entry.value());
  }
  if (extend::event_sink{}.capture() == 0) return;
  for (const auto& entry : module.named_buffers()) {
    detail::annotate_tensor(entry.value(), path_of(entry.key()), category::other);
  }
}

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
