#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/core/recorder.hpp>
#include <memprof/core/registry.hpp>
#include <memprof/profile/profile.hpp>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::detail {

/// How calls of one operator are simulated, and how many of them were estimates. Lives for ever.
struct operator_plan {
  std::string name;                                       ///< as in "aten::add.Tensor"
  std::atomic<const torch_rule_function*> rule{nullptr};  ///< null: there is none
  bool has_meta_kernel = false;                           ///< its own, or one composed of other operators
  bool is_only_composed = false;                          ///< on Meta; the CPU has a kernel of its own
  std::atomic<const char*> cause{nullptr};                ///< why the last estimate was one
  std::atomic<std::int64_t> estimated_calls{0};
  std::atomic<std::int64_t> estimated_bytes{0};

  void count_estimate(const char* why, std::int64_t bytes) noexcept {
    // Relaxed: numbers of their own, read when the profile is.
    cause.store(why, std::memory_order_relaxed);
    estimated_bytes.fetch_add(bytes, std::memory_order_relaxed);
    // Release pairs with the acquire of `estimates`: what is counted has a cause.
    estimated_calls.fetch_add(1, std::memory_order_release);
  }
};

/// The plans of all operators that were called, and the rules they are made of. Thread-safe.
class operator_plans {
 public:
  /// The plan of an operator: a look-up in a table of this thread, except for its first call.
  [[nodiscard]] operator_plan& plan_of(const c10::OperatorHandle& called) {
    struct cached_plan {
      const c10::FunctionSchema* schema;
      operator_plan* plan;
    };
    thread_local std::array<cached_plan, 512> cache{};
    const c10::FunctionSchema* const schema = &called.schema();
    cached_plan& cached = cache[(reinterpret_cast<std::uintptr_t>(schema) >> 6) % cache.size()];
    if (cached.schema != schema) cached = {schema, &find_or_make(called)};
    return *cached.plan;
  }

  /// Replaces the rule of an operator. Rules that were replaced are kept: another thread may be running them.
  void set_rule(std::string_view name, torch_rule_function rule) {
    const hidden_lock guard{lock_};
    rules_kept_.push_back(std::make_unique<torch_rule_function>(std::move(rule)));
    const torch_rule_function* const kept = rules_kept_.back().get();
    rules_[std::string{name}] = kept;
    for (auto& [schema, plan] : plans_) {
      // Release pairs with the acquire in the dispatch: the rule is complete.
      if (plan->name == name) plan->rule.store(kept, std::memory_order_release);
    }
  }

  /// Adds a rule that comes with memprof, unless the user has set one.
  void add_rule(std::string_view name, void (*rule)(torch_call&)) {
    const hidden_lock guard{lock_};
    const auto [place, is_new] = rules_.try_emplace(std::string{name}, nullptr);
    if (!is_new) return;
    rules_kept_.push_back(std::make_unique<torch_rule_function>(rule));
    place->second = rules_kept_.back().get();
  }

  void forget_estimates() {
    const hidden_lock guard{lock_};
    for (auto& [schema, plan] : plans_) {
      plan->estimated_calls.store(0, std::memory_order_relaxed);
      plan->estimated_bytes.store(0, std::memory_order_relaxed);
    }
  }

  /// The estimates since, the one with the most bytes first.
  [[nodiscard]] std::vector<approximated_operation> estimates() const {
    const hidden_lock guard{lock_};
    std::vector<approximated_operation> rows;
    for (const auto& [schema, plan] : plans_) {
      // Acquire pairs with the release of `count_estimate`.
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
  /// Nothing is recorded while the lock is held: a profile is read under the profiler's own lock, which recording may take.
  struct [[nodiscard]] hidden_lock {
    explicit hidden_lock(std::mutex& lock) : hidden(abi_1::this_thread, activity::internal), guard(lock) {}
    activity_guard hidden;
    std::lock_guard<std::mutex> guard;
  };

  [[nodiscard]] operator_plan& find_or_make(const c10::OperatorHandle& called) {
    const hidden_lock guard{lock_};
    std::unique_ptr<operator_plan>& plan = plans_[&called.schema()];
    if (plan == nullptr) {
      plan = std::make_unique<operator_plan>();
      const c10::OperatorName& name = called.operator_name();
      plan->name = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      const auto rule = rules_.find(plan->name);
      plan->rule.store(rule == rules_.end() ? nullptr : rule->second, std::memory_order_release);
      plan->has_meta_kernel = has_meta_kernel(called);
      plan->is_only_composed = plan->has_meta_kernel && !called.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
                               called.hasKernelForDispatchKey(c10::DispatchKey::CPU);
    }
    return *plan;
  }

  [[nodiscard]] static bool has_meta_kernel(const c10::OperatorHandle& called) {
    // Asked one by one: libtorch answers for Meta itself with a kernel that throws.
    for (const c10::DispatchKey key :
         {c10::DispatchKey::Meta, c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::CompositeImplicitAutograd,
          c10::DispatchKey::CompositeExplicitAutogradNonFunctional}) {
      if (called.hasKernelForDispatchKey(key)) return true;
    }
    return false;
  }

  mutable std::mutex lock_;
  std::unordered_map<std::string, const torch_rule_function*> rules_;
  std::vector<std::unique_ptr<torch_rule_function>> rules_kept_;
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<operator_plan>> plans_;
};

/// The plans of the process; for ever, as tensors outlive captures and `main`.
[[nodiscard, gnu::visibility("default")]] inline operator_plans& all_operator_plans() {
  static operator_plans* const all = new operator_plans;
  return *all;
}

}  // namespace memprof::detail
