#pragma once

#include <memprof/backend/torch/simulation/cuda_memory.hpp>
#include <memprof/backend/torch/simulation/exact_shape_functions.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/record/recorder.hpp>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What an operator does with an argument.
struct argument_role {
  bool is_written = false;
  bool is_overwritten = false;  ///< written without being read
  bool is_device = false;
  bool is_pin_memory = false;
  bool is_dtype = false;
  bool is_layout = false;
};

/// A registered rule. Never destroyed.
struct kept_rule {
  torch_rule_function run;
  rule_use use;
};

struct nominal_operator;
struct share_rules;

/// How calls of one operator are simulated, and how many of them were estimates. Never destroyed.
struct operator_plan {
  const c10::FunctionSchema* schema = nullptr;
  std::string name;                             ///< such as "aten::add.Tensor"
  std::atomic<const kept_rule*> rule{nullptr};  ///< null: there is none
  std::vector<argument_role> roles;
  bool is_view = false;                                   ///< the CPU kernel only creates another tensor over the same storage
  bool is_composed = false;                               ///< the kernel is the same for all devices and calls other operators
  bool has_cpu_kernel = false;                            ///< a kernel that computes
  bool has_sparse_kernel = false;                         ///< of the CPU, for sparse tensors
  bool has_shape_function = false;                        ///< a Meta kernel
  bool is_exact = false;                                  ///< the shape function allocates as the kernel does
  bool is_exact_if_plain = false;                         ///< the same for plain tensors
  cuda_memory on_cuda = cuda_memory::unknown;             ///< what the CUDA kernel holds
  bool is_pointwise = false;                              ///< computes element by element
  bool depends_on_data = false;                           ///< the sizes of the results do
  bool may_wait = false;                                  ///< for the device
  bool draws = false;                                     ///< random numbers, from a generator
  bool depends_on_masks = false;                          ///< the sizes depend only on masks
  bool holds_by_data = false;                             ///< scratch memory depends on data
  bool refuses_zeros = false;                             ///< its kernel throws if given zeros
  bool computes_unseen = false;                           ///< composed, but computes some of its results without the dispatcher
  std::atomic<const nominal_operator*> nominal{nullptr};  ///< what its nominal results are; see `nominal_operator_of`
  std::atomic<bool> is_nominal_known{false};
  std::atomic<const share_rules*> shares{nullptr};  ///< how many of its results are likely not zero; see `share_rules_of`
  std::atomic<bool> are_shares_known{false};
  std::atomic<const char*> cause{nullptr};  ///< the reason for the last estimate
  std::atomic<std::int64_t> estimated_calls{0};
  std::atomic<std::int64_t> estimated_bytes{0};

  void count_estimate(const char* why, std::int64_t bytes) noexcept {
    // Relaxed: independent numbers, read with the profile.
    cause.store(why, std::memory_order_relaxed);
    estimated_bytes.fetch_add(bytes, std::memory_order_relaxed);
    // Release pairs with the acquire in `estimates`: what is counted has a cause.
    estimated_calls.fetch_add(1, std::memory_order_release);
  }
};

/// Operators whose Meta kernels give results of other sizes than the real kernels.
[[nodiscard]] inline bool has_wrong_shape_function(std::string_view name) {
  return name == "aten::addbmm_" || name.rfind("aten::isin.Scalar_Tensor", 0) == 0;
}

/// Operators without a CPU kernel of their own whose kernel for all devices computes by itself instead of calling other
/// operators.
[[nodiscard]] inline bool computes_for_all_devices(std::string_view name) {
  constexpr std::string_view names[] = {"aten::copy_",
                                        "aten::convolution_backward",
                                        "aten::convolution_backward_overrideable",
                                        "aten::_nnpack_spatial_convolution",
                                        "aten::_convolution_double_backward",
                                        "aten::mode"};
  return name.rfind("aten::mkldnn_", 0) == 0 || std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Operators that compute element by element, in the type that their arguments are promoted to, and that libtorch does not tag
/// as such.
[[nodiscard]] inline bool is_untagged_pointwise(std::string_view schema_name) {
  constexpr std::string_view names[] = {"aten::copysign_", "aten::eq_", "aten::gcd_", "aten::ge_", "aten::gt_",
                                        "aten::lcm_",      "aten::le_", "aten::lt_",  "aten::ne_"};
  return std::find(std::begin(names), std::end(names), schema_name) != std::end(names);
}

/// Operators that write their first argument without reading it.
[[nodiscard]] inline bool overwrites_first(std::string_view schema_name) {
  constexpr std::string_view names[] = {"aten::zero_",    "aten::fill_",        "aten::copy_",      "aten::normal_",
                                        "aten::uniform_", "aten::random_",      "aten::geometric_", "aten::bernoulli_",
                                        "aten::cauchy_",  "aten::exponential_", "aten::log_normal_"};
  return std::find(std::begin(names), std::end(names), schema_name) != std::end(names);
}

/// Operators whose scratch memory depends on data, although the sizes of their results do not.
[[nodiscard]] inline bool has_memory_that_depends_on_data(std::string_view schema_name) {
  constexpr std::string_view names[] = {"aten::_fused_moving_avg_obs_fq_helper",
                                        "aten::_index_put_impl_",
                                        "aten::isin",
                                        "aten::linalg_lstsq",
                                        "aten::linalg_matrix_exp",
                                        "aten::nonzero_static"};
  return std::find(std::begin(names), std::end(names), schema_name) != std::end(names);
}

/// Operators that libtorch does not tag, although the sizes of their results depend on data.
[[nodiscard]] inline bool has_results_that_depend_on_data(std::string_view schema_name) {
  return schema_name == "aten::_coalesce" || schema_name.rfind("aten::_to_sparse", 0) == 0;
}

/// Operators whose kernels refuse zeros: pivots count from one, and division by zero is an error.
[[nodiscard]] inline bool has_kernel_that_refuses_zeros(std::string_view schema_name) {
  constexpr std::string_view names[] = {"aten::floor_divide", "aten::linalg_ldl_solve", "aten::linalg_lu_solve",
                                        "aten::lu_unpack", "aten::multinomial"};
  return std::find(std::begin(names), std::end(names), schema_name) != std::end(names);
}

/// Determines from the dispatcher how to simulate calls of an operator.
inline void plan_operator(operator_plan& plan, const c10::OperatorHandle& called) {
  using c10::DispatchKey;
  const c10::FunctionSchema& schema = called.schema();
  const c10::OperatorName& name = called.operator_name();
  plan.schema = &schema;
  plan.name = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;

  bool writes = false;
  bool aliases = false;
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::AliasInfo* const alias = argument.alias_info();
    const bool is_written = alias != nullptr && alias->isWrite();
    writes |= is_written;
    aliases |= alias != nullptr;
    const bool is_overwritten = is_written && (argument.is_out() || (plan.roles.empty() && overwrites_first(name.name)));
    plan.roles.push_back({is_written, is_overwritten, argument.name() == "device", argument.name() == "pin_memory",
                          argument.name() == "dtype", argument.name() == "layout"});
  }

  // Queried one by one: for Meta itself, libtorch returns a kernel that throws.
  const bool is_composed = called.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
                           called.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) ||
                           called.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  const bool has_own_cpu_kernel = called.hasKernelForDispatchKey(DispatchKey::CPU);
  const bool computes = is_composed && computes_for_all_devices(name.name);
  const bool sets_storage = name.name == "aten::set_" && schema.arguments().size() > 1;
  plan.is_view = has_own_cpu_kernel && ((aliases && !writes) || sets_storage);
  plan.is_composed = is_composed && !has_own_cpu_kernel && !computes;
  plan.has_cpu_kernel = has_own_cpu_kernel || computes;
  plan.has_sparse_kernel = called.hasKernelForDispatchKey(DispatchKey::SparseCPU);
  plan.has_shape_function = called.hasKernelForDispatchKey(DispatchKey::Meta) && !has_wrong_shape_function(plan.name);
  plan.is_exact = has_exact_shape_function(plan.name);
  plan.is_exact_if_plain = has_exact_shape_function_of_plain_tensors(plan.name);
  plan.is_pointwise = called.hasTag(at::Tag::pointwise) || is_untagged_pointwise(name.name);
  plan.on_cuda = memory_on_cuda(name.name, plan.is_pointwise);
  plan.holds_by_data = has_memory_that_depends_on_data(name.name);
  plan.refuses_zeros = has_kernel_that_refuses_zeros(name.name);
  // oneDNN's transposed convolutions have no operators of their own on the CPU.
  plan.computes_unseen = name.name == "aten::_convolution" || name.name == "aten::convolution_backward";
  plan.depends_on_masks =
      name.name == "aten::index" || name.name == "aten::masked_select" || name.name == "aten::_index_put_impl_";
  plan.depends_on_data = called.hasTag(at::Tag::dynamic_output_shape) || has_results_that_depend_on_data(name.name);
  plan.may_wait = plan.depends_on_data || name.name == "aten::copy_" || name.name == "aten::_local_scalar_dense";
  plan.draws = called.hasTag(at::Tag::nondeterministic_seeded);
}

/// The plans of all operators called so far, and their rules. Thread-safe.
class operator_plans {
 public:
  /// The plan of an operator, looked up without a lock except for its first call.
  [[nodiscard]] operator_plan& plan_of(const c10::OperatorHandle& called) {
    const c10::FunctionSchema* const schema = &called.schema();
    for (std::size_t probe = first_slot(schema);; probe = (probe + 1) % slots_.size()) {
      // Acquire pairs with the release in `publish`: the plan is complete.
      operator_plan* const plan = slots_[probe].load(std::memory_order_acquire);
      if (plan == nullptr) return find_or_make(called);
      if (plan->schema == schema) return *plan;
    }
  }

  /// Replaces the rule of an operator. Replaced rules are kept: another thread may be running them.
  void set_rule(std::string_view name, torch_rule_function rule) {
    const hidden_lock guard{lock_};
    rules_kept_.push_back(std::make_unique<kept_rule>(kept_rule{std::move(rule), rule_use::always}));
    const kept_rule* const kept = rules_kept_.back().get();
    rules_[std::string{name}] = kept;
    for (auto& [schema, plan] : plans_) {
      // Release pairs with the acquire in the dispatch: the rule is complete.
      if (plan->name == name) plan->rule.store(kept, std::memory_order_release);
    }
  }

  /// Adds one of memprof's own rules, unless the user has set one.
  void add_rule(const known_rule& known) {
    const hidden_lock guard{lock_};
    const auto [place, is_new] = rules_.try_emplace(known.name, nullptr);
    if (!is_new) return;
    rules_kept_.push_back(std::make_unique<kept_rule>(kept_rule{known.rule, known.use}));
    place->second = rules_kept_.back().get();
  }

  void forget_estimates() {
    const hidden_lock guard{lock_};
    for (auto& [schema, plan] : plans_) {
      plan->estimated_calls.store(0, std::memory_order_relaxed);
      plan->estimated_bytes.store(0, std::memory_order_relaxed);
    }
  }

  /// The estimates since `forget_estimates`, those with the most bytes first.
  [[nodiscard]] std::vector<approximated_operation> estimates() const {
    const hidden_lock guard{lock_};
    std::vector<approximated_operation> rows;
    for (const auto& [schema, plan] : plans_) {
      // Acquire pairs with the release in `count_estimate`.
      const std::int64_t calls = plan->estimated_calls.load(std::memory_order_acquire);
      if (calls == 0) continue;
      rows.push_back({plan->name, plan->cause.load(std::memory_order_relaxed), calls,
                      plan->estimated_bytes.load(std::memory_order_relaxed)});
    }
    std::sort(rows.begin(), rows.end(), [](const approximated_operation& left, const approximated_operation& right) {
      return left.bytes != right.bytes ? left.bytes > right.bytes : left.name < right.name;
    });
    return rows;
  }

 private:
  /// Nothing may be recorded while the lock is held: a profile is read under the profiler's own lock, which recording may take.
  struct [[nodiscard]] hidden_lock {
    explicit hidden_lock(std::mutex& lock) : hidden(activity::internal), guard(lock) {}
    activity_guard hidden;
    std::lock_guard<std::mutex> guard;
  };

  static constexpr std::size_t max_slots = 16384;  // libtorch 2.13 has about 3,500 operators
  static constexpr std::size_t max_filled = max_slots / 2;

  [[nodiscard]] static std::size_t first_slot(const c10::FunctionSchema* schema) noexcept {
    return (reinterpret_cast<std::uintptr_t>(schema) * 0x9E3779B97F4A7C15U >> 32) % max_slots;
  }

  [[nodiscard]] operator_plan& find_or_make(const c10::OperatorHandle& called) {
    const hidden_lock guard{lock_};
    std::unique_ptr<operator_plan>& plan = plans_[&called.schema()];
    if (plan == nullptr) {
      plan = std::make_unique<operator_plan>();
      plan_operator(*plan, called);
      const auto rule = rules_.find(plan->name);
      plan->rule.store(rule == rules_.end() ? nullptr : rule->second, std::memory_order_release);
      publish(*plan);
    }
    return *plan;
  }

  /// Call with the lock held. If a process has more operators than slots, the rest are looked up under the lock.
  void publish(operator_plan& plan) noexcept {
    if (plans_.size() > max_filled) return;
    std::size_t place = first_slot(plan.schema);
    while (slots_[place].load(std::memory_order_relaxed) != nullptr) place = (place + 1) % slots_.size();
    // Release pairs with the acquire in `plan_of`.
    slots_[place].store(&plan, std::memory_order_release);
  }

  mutable std::mutex lock_;
  std::unordered_map<std::string, const kept_rule*> rules_;
  std::vector<std::unique_ptr<kept_rule>> rules_kept_;
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<operator_plan>> plans_;
  std::array<std::atomic<operator_plan*>, max_slots> slots_{};
};

/// The plans of the process. Never destroyed, because tensors outlive captures and `main`.
[[nodiscard, gnu::visibility("default")]] inline operator_plans& all_operator_plans() {
  static operator_plans* const all = new operator_plans;
  return *all;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
