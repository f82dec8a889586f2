#pragma once

/// @file
/// NO_DISPATCH for unmodified libtorch programs: `begin_capture<torch_no_dispatch>()` runs a training step without data. Every
/// tensor has its sizes and its place in the profile, but no memory; see `docs/torch_no_dispatch.md`. Needs libtorch 2.1 or
/// later. Including this header includes libtorch's headers.

#include <memprof/backend/torch/version.hpp>

#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/config.hpp>
#include <memprof/record/capture.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/torch/capture/operator_scopes.hpp>
#include <memprof/backend/torch/device_allocator.hpp>
#include <memprof/backend/torch/rules/rule_table.hpp>
#include <memprof/backend/torch/simulation/dispatch.hpp>
#include <memprof/backend/torch/simulation/fake_cuda.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/simulation.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Lets operations on this thread compute with data until the end of the scope, as for loading, or for a tensor that decides what
/// the program does. Their results stay real, also as inputs of simulated operations. Nests.
///
/// Computing with a simulated tensor in the scope throws `c10::Error`.
class [[nodiscard]] real_scope {
 public:
  real_scope() noexcept { ++detail::this_simulating_thread.real_scopes; }
  real_scope(const real_scope&) = delete;
  real_scope& operator=(const real_scope&) = delete;
  ~real_scope() { --detail::this_simulating_thread.real_scopes; }
};

/// Registers the rule that simulates the operator `name`, which includes its overload, if any, as in "aten::add.Tensor":
/// `register_torch_rule("myops::fused", [](torch_call& call) { call.returns(call.empty({4, 8}, call.tensor(0))); });`
/// Applies to the whole process and replaces any existing rule. Thread-safe.
inline void register_torch_rule(std::string_view name, torch_rule_function rule) {
  detail::all_operator_plans().set_rule(name, std::move(rule));
}

/// Sets the fraction of the elements, 0 to 1, that data-dependent operators like `nonzero`, `masked_select` and `unique` select
/// in the whole process; 1 is the upper bound. `std::nullopt`, the default, gives each mask its likely share, and the upper bound
/// to what is none. Throws `memprof::error` if out of range.
inline void set_torch_selected_fraction(std::optional<double> fraction) {
  if (fraction.has_value() && !(*fraction >= 0.0 && *fraction <= 1.0)) {
    detail::raise("set_torch_selected_fraction: " + std::to_string(*fraction) + " must be in [0, 1]");
  }
  detail::selected_fraction.store(fraction.value_or(-1.0), std::memory_order_relaxed);
}

/// Says which fraction of the elements of `mask`, 0 to 1, are true (or not zero), for the operators that select by it: sizes that
/// hang on it are assumed from that, also if `set_torch_selected_fraction` says otherwise. Changes nothing about a mask whose
/// values the simulation knows, or outside a capture. What is written to the mask later undoes it. Throws `memprof::error` if out
/// of range.
inline void assume_selected(const at::Tensor& mask, double fraction) {
  if (!(fraction >= 0.0 && fraction <= 1.0)) detail::raise("assume_selected: " + std::to_string(fraction) + " must be in [0, 1]");
  detail::assume_share(mask, fraction);
}

/// Sets how often in a row one place of a program may read a value that the simulation does not know; then the read throws
/// `c10::Error`, since a program that waits for such a value would never end. The default is 100,000. Throws `memprof::error` if
/// less than 1.
inline void set_torch_read_limit(std::int64_t reads) {
  if (reads < 1) detail::raise("set_torch_read_limit: " + std::to_string(reads) + " must be at least 1");
  detail::read_limit.store(reads, std::memory_order_relaxed);
}

/// Has a model of its allocator follow the fake CUDA device until the end of the scope: a `simulated_caching_allocator` of the
/// toolkit, which must live as long. What it reserves is recorded, and with a capacity requests fail as on a full device, by
/// `c10::OutOfMemoryError`. Open it before the capture begins, and close it after its end; one at a time.
template <class Allocator>
class [[nodiscard]] torch_device_scope {
 public:
  explicit torch_device_scope(Allocator& allocator) : functions_(detail::recorded_device(allocator)) {
    detail::fake_cuda_device.set_allocator(&functions_);
  }
  torch_device_scope(const torch_device_scope&) = delete;
  torch_device_scope& operator=(const torch_device_scope&) = delete;
  ~torch_device_scope() { detail::fake_cuda_device.set_allocator(nullptr); }

 private:
  detail::device_allocator functions_;
};

/// A backend under which the program's tensors have no data: nothing is computed, and allocations are recorded with their true
/// size and lifetime, in the spaces "cpu" and "cuda:0", under the operators and scopes that `torch_backend` would name.
///
/// `capture_options::device` decides whether there is a CUDA device: if its name or that of one of its spaces begins with "cuda",
/// the program finds one, whatever the machine has. Tensors made before the capture keep their data, which is not modified.
///
/// `attach` throws `memprof::error` if another library has taken libtorch's Fake dispatch key, or if the same capture has
/// `torch_backend` or `torch_allocations`: they would mix the tensors of a `real_scope` with simulated ones.
class torch_no_dispatch {
 public:
  static constexpr std::string_view name = "torch_no_dispatch";
  static constexpr run_mode mode = run_mode::no_dispatch;

  void attach(event_sink&, const capture_options& options) {
    operators_.begin();
    try {
      detail::begin_simulation(options.device);
    } catch (...) {
      operators_.end();
      throw;
    }
  }
  void detach(event_sink&) noexcept {
    operators_.end();
    detail::end_simulation();
  }
  void report_facts(event_sink& writer) const {
    const std::vector<approximated_operation> estimates = detail::all_operator_plans().estimates();
    if (!estimates.empty()) writer.add_facts(to_table(estimates));
    const std::vector<unknown_read> reads = detail::unknown_reads::instance().rows();
    if (!reads.empty()) writer.add_facts(to_table(reads));
    const std::vector<assumed_size> sizes = detail::assumed_sizes::instance().rows();
    if (!sizes.empty()) writer.add_facts(to_table(sizes));
    const bool steers = std::any_of(reads.begin(), reads.end(), [](const unknown_read& read) { return read.steers != 0; });
    if (steers || !sizes.empty()) {
      source_limit limit;
      limit.assumed = 1;
      writer.add_facts(to_table(std::vector<source_limit>{limit}));
    }
  }

 private:
  detail::operator_scopes operators_;
};

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] real_scope {
 public:
  // Not trivial, so that an unused scope causes no warning; empty, so that it compiles to nothing.
  ~real_scope() {}
};

template <class Allocator>
class [[nodiscard]] torch_device_scope {
 public:
  explicit torch_device_scope(Allocator&) noexcept {}
  ~torch_device_scope() {}
};

template <class Rule>
void register_torch_rule(std::string_view, Rule&&) noexcept {}
inline void set_torch_selected_fraction(std::optional<double>) noexcept {}
template <class Tensor>
void assume_selected(const Tensor&, double) noexcept {}
inline void set_torch_read_limit(std::int64_t) noexcept {}

class torch_no_dispatch {
 public:
  static constexpr std::string_view name = "torch_no_dispatch";

  void attach(event_sink&, const capture_options&) noexcept {}
  void detach(event_sink&) noexcept {}
  void report_facts(event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
