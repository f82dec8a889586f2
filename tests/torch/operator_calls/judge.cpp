#include "judge.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace operator_calls {
namespace {

std::string description_of(const at::Tensor& tensor, const torch::jit::Stack& arguments) {
  if (!tensor.defined()) return "undefined";
  if (tensor.layout() != c10::kStrided || tensor.is_quantized())
    return c10::str(tensor.layout(), tensor.is_quantized(), tensor.sizes());
  std::string text = c10::str(tensor.scalar_type(), tensor.sizes(), "/", tensor.strides(), "+", tensor.storage_offset());
  if (tensor.is_conj()) text += " conj";
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    if (!arguments[index].isTensor() || !arguments[index].toTensor().defined() || !tensor.has_storage()) continue;
    const at::Tensor& argument = arguments[index].toTensor();
    if (argument.is_same(tensor))
      text += c10::str(" is argument ", index);
    else if (tensor.storage().nbytes() != 0 && argument.storage().is_alias_of(tensor.storage()))
      text += c10::str(" views argument ", index);
  }
  return text;
}

void describe(const c10::IValue& value, const torch::jit::Stack& arguments, outcome& into) {
  if (value.isTensor()) {
    into.results += description_of(value.toTensor(), arguments) + "; ";
    into.tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) describe(tensor, arguments, into);
  } else {
    into.results += value.tagKind() + "; ";
  }
}

/// Runs a call; `so_far()` gives the changes since it began.
template <class SoFar>
outcome run(const operator_call& call, torch::jit::Stack arguments, SoFar so_far) {
  outcome result;
  torch::jit::Stack stack = arguments;
  const at::NoGradGuard no_graph;
  try {
    call.called().callBoxed(&stack);
    result.totals.net = recorded::totals_of(recorded::without_scalars(so_far())).net;
    for (const c10::IValue& value : stack) describe(value, arguments, result);
    for (const c10::IValue& argument : arguments) {
      if (argument.isTensor()) result.results += "argument " + description_of(argument.toTensor(), {}) + "; ";
    }
  } catch (const std::exception& thrown) {
    const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&thrown);
    result.fault = of_libtorch == nullptr ? thrown.what() : of_libtorch->what_without_backtrace();
    result.fault = result.fault.substr(0, result.fault.find('\n'));
    if (result.fault.empty()) result.fault = "?";
  }
  stack.clear();
  result.changes = recorded::without_scalars(so_far());
  const recorded::totals all = recorded::totals_of(result.changes);
  result.totals.peak = all.peak;
  result.totals.allocated = all.allocated;
  return result;
}

/// Whether the memory of simulated tensors holds what the real ones do.
bool are_equal(const std::vector<at::Tensor>& real, const std::vector<at::Tensor>& simulated) {
  constexpr double relative = 1e-4;
  constexpr double absolute = 1e-6;
  const memprof::real_scope for_real;
  for (std::size_t index = 0; index < real.size() && index < simulated.size(); ++index) {
    const at::Tensor left = real[index].defined() ? real[index].resolve_conj().resolve_neg() : at::Tensor{};
    const at::Tensor& made = simulated[index];
    if (!left.defined() || left.layout() != c10::kStrided || left.is_quantized() || left.sizes() != made.sizes()) continue;
    if (left.numel() == 0 || made.storage().data() == nullptr) continue;
    const auto elements = static_cast<std::int64_t>(made.storage().nbytes() / made.element_size());
    at::Tensor right = at::from_blob(made.storage().mutable_data(), {elements}, left.options())
                           .as_strided(left.sizes(), made.strides(), made.storage_offset());
    if (made.is_conj()) right = right.conj();
    if (!at::allclose(left, right.resolve_conj(), relative, absolute, true)) return false;
  }
  return true;
}

std::string way_of(const c10::OperatorHandle& called) {
  memprof::detail::operator_plan& plan = memprof::detail::all_operator_plans().plan_of(called);
  if (plan.is_view) return "view";
  if (plan.rule.load() != nullptr) return "rule";
  if (plan.is_composed) return "composed";
  if (plan.has_shape_function && (plan.is_exact || plan.is_pointwise)) return "shape function";
  if (plan.has_shape_function && plan.is_exact_if_plain) return "shape function or real kernel";
  if (plan.has_cpu_kernel) return "real kernel";
  return "estimate";
}

}  // namespace

const char* name_of(knowledge one) {
  constexpr std::array names{"sizes", "indices", "values"};
  return names[static_cast<std::size_t>(one)];
}

struct judge::session {
  session() : capture(memprof::begin_capture<memprof::torch_no_dispatch>()), events("cpu") {
    memprof::detail::small_kernel_bytes = 33;  // rules are judged too
  }

  memprof::capture_guard capture;
  recorded::capture_events events;
};

judge::judge() = default;
judge::~judge() = default;

std::optional<verdict> judge::compare(const operator_call& call, knowledge known) {
  verdict result;
  auto& allocations = recorded::cpu_allocations::instance();
  filling data = filling::fractions;
  for (const filling kind : {filling::fractions, filling::identity, filling::ones}) {
    for (int round = 0; round < 2; ++round) {  // oneDNN keeps some memory of its first call
      torch::jit::Stack arguments = call.arguments([&](const tensor_spec& spec) { return make_real(spec, kind); });
      at::manual_seed(1);
      allocations.start();
      result.real = run(call, std::move(arguments), [&] { return allocations.so_far(); });
      (void)allocations.stop();
    }
    data = kind;
    if (result.real.fault.empty()) break;
  }
  if (!result.real.fault.empty()) return std::nullopt;

  std::vector<at::Tensor> copied;
  (void)call.arguments([&](const tensor_spec& spec) { return copied.emplace_back(make_real(spec, data)); });
  if (session_ == nullptr) session_ = std::make_unique<session>();
  const auto simulate = [&] {
    std::size_t next = 0;
    torch::jit::Stack arguments = call.arguments([&](const tensor_spec& spec) {
      const at::Tensor& real = copied[next++];
      const bool is_known = known == knowledge::values || (known == knowledge::indices && c10::isIntegralType(spec.dtype, true));
      const c10::TensorImpl& implementation = *real.unsafeGetTensorImpl();
      c10::Storage storage = memprof::detail::fake_storage(real.storage().nbytes(), c10::kCPU, is_known);
      if (is_known && storage.nbytes() != 0) std::memcpy(storage.mutable_data(), real.storage().data(), storage.nbytes());
      return memprof::detail::tensor_over(std::move(storage), implementation.dtype(), real.sizes(), real.strides(),
                                          real.storage_offset());
    });
    session_->events.restart();
    at::manual_seed(1);
    return run(call, std::move(arguments), [&] { return session_->events.so_far(); });
  };
  result.simulated = simulate();
  // The second time, what its kernel did may be played again.
  outcome again = simulate();
  if (again.changes != result.simulated.changes || again.results != result.simulated.results) result.simulated = std::move(again);
  result.way = way_of(call.called());
  const memprof::profile profile = session_->capture.profile();
  result.is_listed = !memprof::rows_of<memprof::approximated_operation>(profile.facts).empty() ||
                     !memprof::rows_of<memprof::unknown_read>(profile.facts).empty();
  if (known == knowledge::values) result.has_equal_values = are_equal(result.real.tensors, result.simulated.tensors);
  session_.reset();
  return result;
}

std::vector<std::pair<std::string, std::string>> ways_of_all_operators() {
  std::vector<std::pair<std::string, std::string>> ways;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto called = c10::Dispatcher::singleton().findSchema(name);
    if (!called.has_value() || name.name.rfind("aten::", 0) != 0) continue;
    if (!called->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    ways.emplace_back(c10::toString(name), way_of(*called));
  }
  std::sort(ways.begin(), ways.end());
  return ways;
}

}  // namespace operator_calls
