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
    const at::Tensor& tensor = value.toTensor();
    into.results += description_of(tensor, arguments) + "; ";
    into.is_dense = into.is_dense && (!tensor.defined() || (tensor.layout() == c10::kStrided && !tensor.is_quantized()));
    into.shapes += tensor.defined() ? c10::str(tensor.scalar_type(), tensor.sizes(), "; ") : "undefined; ";
    into.tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) describe(tensor, arguments, into);
  } else {
    into.results += value.tagKind() + "; ";
  }
}

/// The bytes of results that are no arguments.
std::int64_t new_bytes(const std::vector<at::Tensor>& results, const torch::jit::Stack& arguments) {
  std::vector<const c10::StorageImpl*> counted;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().has_storage())
      counted.push_back(argument.toTensor().storage().unsafeGetStorageImpl());
  }
  std::int64_t bytes = 0;
  for (const at::Tensor& result : results) {
    if (!result.defined() || !result.has_storage()) continue;
    const c10::StorageImpl* const storage = result.storage().unsafeGetStorageImpl();
    if (std::find(counted.begin(), counted.end(), storage) != counted.end()) continue;
    counted.push_back(storage);
    bytes += static_cast<std::int64_t>(storage->nbytes());
  }
  return bytes;
}

bool may_have_gradient(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

/// Makes tensors of numbers ask for gradients. Those that the call writes are computed from such ones.
std::vector<at::Tensor> ask_for_gradients(const operator_call& call, torch::jit::Stack& arguments) {
  std::vector<at::Tensor> leaves;
  const auto& schema = call.called().schema().arguments();
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    if (arguments[index].isTensorList()) {
      for (const at::Tensor& tensor : arguments[index].toTensorVector()) {
        if (may_have_gradient(tensor)) leaves.push_back(tensor.requires_grad_());
      }
    }
    if (!arguments[index].isTensor() || !may_have_gradient(arguments[index].toTensor())) continue;
    const c10::AliasInfo* const alias = schema[index].alias_info();
    leaves.push_back(arguments[index].toTensor().requires_grad_());
    if (alias != nullptr && alias->isWrite()) arguments[index] = leaves.back().clone(at::MemoryFormat::Preserve);
  }
  return leaves;
}

/// From the sum of the results, whose gradient is one number, expanded. False if nothing has a gradient.
bool run_backward(const std::vector<at::Tensor>& results) {
  at::Tensor sum;
  for (const at::Tensor& result : results) {
    if (!result.defined() || !result.requires_grad() || result.layout() != c10::kStrided) continue;
    const at::Tensor real = result.is_complex() ? at::view_as_real(result.resolve_conj()) : result;
    const at::Tensor part = real.sum();
    sum = sum.defined() ? sum + part : part;
  }
  if (sum.defined()) sum.backward();
  return sum.defined();
}

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& into) {
  if (value.isTensor()) into.push_back(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) into.push_back(tensor);
  }
}

std::string first_line_of(const std::exception& thrown) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&thrown);
  const std::string text = of_libtorch == nullptr ? thrown.what() : of_libtorch->what_without_backtrace();
  return text.empty() ? "?" : text.substr(0, text.find('\n'));
}

/// Runs a call; `so_far()` gives the changes since it began.
template <class SoFar>
outcome run(const operator_call& call, torch::jit::Stack arguments, extent wanted, SoFar so_far) {
  outcome result;
  const at::AutoGradMode graph{wanted == extent::training};
  torch::jit::Stack stack;
  std::vector<at::Tensor> leaves;
  try {
    if (wanted == extent::training) leaves = ask_for_gradients(call, arguments);
    stack = arguments;
    call.called().callBoxed(&stack);
    if (wanted == extent::training) {
      std::vector<at::Tensor> made;
      for (const c10::IValue& value : stack) collect_tensors(value, made);
      if (!run_backward(made)) result.fault = "no gradient";
    }
    result.totals.net = recorded::totals_of(recorded::without_scalars(so_far())).net;
    for (const c10::IValue& value : stack) describe(value, arguments, result);
    result.result_bytes = new_bytes(result.tensors, arguments);
    for (const c10::IValue& argument : arguments) {
      if (argument.isTensor()) result.results += "argument " + description_of(argument.toTensor(), {}) + "; ";
    }
    for (const at::Tensor& leaf : leaves) result.results += "gradient " + description_of(leaf.grad(), {}) + "; ";
  } catch (const std::exception& thrown) {
    result.fault = first_line_of(thrown);
  }
  stack.clear();
  arguments.clear();
  leaves.clear();
  if (wanted == extent::training) result.tensors.clear();
  result.changes = recorded::without_scalars(so_far());
  const recorded::totals all = recorded::totals_of(result.changes);
  result.totals.peak = all.peak;
  result.totals.allocated = all.allocated;
  return result;
}

/// The real call, with the first data that the kernel takes.
struct real_run {
  outcome found;
  filling data = filling::fractions;
};
real_run run_for_real(const operator_call& call, extent wanted) {
  real_run result;
  auto& allocations = recorded::cpu_allocations::instance();
  for (const filling kind : {filling::fractions, filling::identity, filling::ones}) {
    for (int round = 0; round < 2; ++round) {  // oneDNN keeps some memory of its first call
      torch::jit::Stack arguments = call.arguments([&](const tensor_spec& spec) { return make_real(spec, kind); });
      at::manual_seed(1);
      allocations.start();
      result.found = run(call, std::move(arguments), wanted, [&] { return allocations.so_far(); });
      (void)allocations.stop();
    }
    result.data = kind;
    if (result.found.fault.empty()) break;
  }
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

constexpr c10::DispatchKey kernel_keys[] = {c10::DispatchKey::CPU, c10::DispatchKey::CompositeExplicitAutograd,
                                            c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
                                            c10::DispatchKey::CompositeImplicitAutograd};

std::string way_on_cpu(const memprof::detail::operator_plan& plan) {
  const memprof::detail::kept_rule* const rule = plan.rule.load();
  if (plan.is_view) return "view";
  if (rule != nullptr && !plan.is_composed) return "rule";
  if (plan.is_composed) return "composed";
  if (plan.has_shape_function && (plan.is_exact || plan.is_pointwise)) return "shape function";
  if (plan.has_shape_function && plan.is_exact_if_plain) return "shape function or kernel";
  if (plan.has_cpu_kernel) return "kernel";
  return "estimate";
}

std::string way_on_cuda(const memprof::detail::operator_plan& plan) {
  if (plan.is_view) return "view";
  if (plan.rule.load() != nullptr) return "rule";
  if (plan.is_composed) return "composed";
  using memprof::detail::cuda_memory;
  if (plan.has_shape_function) {
    return plan.on_cuda == cuda_memory::results                 ? "shape function"
           : plan.on_cuda == cuda_memory::results_if_contiguous ? "shape function, listed with gaps"
           : plan.on_cuda == cuda_memory::reduction             ? "shape function, partial results"
                                                                : "shape function, listed";
  }
  if (plan.has_cpu_kernel) return "kernel of the CPU, listed";
  return "estimate";
}

}  // namespace

const char* name_of(knowledge one) {
  constexpr std::array names{"sizes", "indices", "values"};
  return names[static_cast<std::size_t>(one)];
}

const char* name_of(extent one) { return one == extent::forward ? "forward" : "forward and backward"; }

struct judge::session {
  explicit session(const memprof::capture_options& options = {})
      : capture(memprof::begin_capture<memprof::torch_no_dispatch>(options)), events("cpu") {
    memprof::detail::small_kernel_bytes = 33;  // rules are judged too
  }

  void note_listed(verdict& found) const {
    const memprof::profile profile = capture.profile();
    found.hangs_on_data = !memprof::rows_of<memprof::unknown_read>(profile.facts).empty() ||
                          !memprof::rows_of<memprof::assumed_size>(profile.facts).empty();
    found.is_listed = found.hangs_on_data;
    for (const memprof::approximated_operation& row : memprof::rows_of<memprof::approximated_operation>(profile.facts)) {
      found.is_listed = true;
      found.hangs_on_data = found.hangs_on_data || row.cause.find("on data") != std::string::npos;
    }
  }

  memprof::capture_guard capture;
  recorded::capture_events events;
};

judge::judge() = default;
judge::~judge() = default;

std::optional<verdict> judge::compare(const operator_call& call, knowledge known, extent wanted) {
  verdict result;
  real_run real = run_for_real(call, wanted);
  if (!real.found.fault.empty()) return std::nullopt;
  result.real = std::move(real.found);

  std::vector<at::Tensor> copied;
  (void)call.arguments([&](const tensor_spec& spec) { return copied.emplace_back(make_real(spec, real.data)); });
  session_ = std::make_unique<session>();
  const auto simulate = [&] {
    std::size_t next = 0;
    torch::jit::Stack arguments = call.arguments([&](const tensor_spec& spec) {
      const at::Tensor& made = copied[next++];
      const bool is_known = known == knowledge::values || (known == knowledge::indices && c10::isIntegralType(spec.dtype, true));
      c10::Storage storage = memprof::detail::fake_storage(made.storage().nbytes(), c10::kCPU, is_known);
      // As in programs: numbers that nobody knows have nominal values, not zeros.
      memprof::detail::fake_block* const block = memprof::detail::block_of(*storage.unsafeGetStorageImpl());
      if (block != nullptr && !is_known && c10::isFloatingType(spec.dtype)) block->lacks_bytes.store(true);
      if (is_known && storage.nbytes() != 0) std::memcpy(storage.mutable_data(), made.storage().data(), storage.nbytes());
      return memprof::detail::tensor_over(std::move(storage), made.dtype(), made.sizes(), made.strides(), made.storage_offset());
    });
    session_->events.restart();
    at::manual_seed(1);
    return run(call, std::move(arguments), wanted, [&] { return session_->events.so_far(); });
  };
  result.simulated = simulate();
  // The second time, what its kernel did may be played again.
  outcome again = simulate();
  if (again.changes != result.simulated.changes || again.results != result.simulated.results) result.simulated = std::move(again);
  result.way = way_on_cpu(memprof::detail::all_operator_plans().plan_of(call.called()));
  session_->note_listed(result);
  if (known == knowledge::values && wanted == extent::forward) {
    result.has_equal_values = are_equal(result.real.tensors, result.simulated.tensors);
  }
  session_.reset();
  return result;
}

std::optional<verdict> judge::compare_on_cuda(const operator_call& call) {
  verdict result;
  real_run real = run_for_real(call, extent::forward);
  if (!real.found.fault.empty()) return std::nullopt;
  result.real = std::move(real.found);
  memprof::capture_options options;
  options.device = {"cuda"};
  session_ = std::make_unique<session>(options);
  bool is_there = false;
  {
    const c10::Device cuda{c10::kCUDA, 0};
    torch::jit::Stack arguments = call.arguments([&](const tensor_spec& spec) {
      is_there = true;
      c10::Storage storage =
          memprof::detail::fake_storage(static_cast<std::size_t>(spec.storage_elements()) * c10::elementSize(spec.dtype), cuda);
      return memprof::detail::tensor_over(std::move(storage), c10::scalarTypeToTypeMeta(spec.dtype), spec.sizes, spec.strides,
                                          spec.offset);
    });
    for (c10::IValue& argument : arguments) {
      if (!argument.isDevice()) continue;
      is_there = true;
      argument = cuda;
    }
    result.simulated = run(call, std::move(arguments), extent::forward, [&] { return session_->events.so_far(); });
  }
  result.way = way_on_cuda(memprof::detail::all_operator_plans().plan_of(call.called()));
  session_->note_listed(result);
  result.simulated.tensors.clear();
  session_.reset();
  return is_there ? std::optional{std::move(result)} : std::nullopt;
}

std::vector<operator_state> states_of_all_operators() {
  using c10::DispatchKey;
  memprof::detail::add_known_rules();
  std::vector<operator_state> states;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto called = c10::Dispatcher::singleton().findSchema(name);
    if (!called.has_value() || name.name.rfind("aten::", 0) != 0) continue;
    const bool is_there = std::any_of(std::begin(kernel_keys), std::end(kernel_keys),
                                      [&](DispatchKey key) { return called->hasKernelForDispatchKey(key); });
    if (!is_there) continue;
    const memprof::detail::operator_plan& plan = memprof::detail::all_operator_plans().plan_of(*called);
    states.push_back({c10::toString(name), way_on_cpu(plan), way_on_cuda(plan)});
  }
  std::sort(states.begin(), states.end());
  return states;
}

}  // namespace operator_calls
