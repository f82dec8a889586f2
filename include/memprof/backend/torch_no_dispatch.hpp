#pragma once

/// @file
/// NO_DISPATCH for unmodified libtorch programs: `begin_capture<torch_no_dispatch>()` runs a training step without data. Every
/// tensor has its sizes and its place in the profile, but no memory; see `docs/torch_no_dispatch.md`. Needs libtorch 2.1 or
/// later. Including this header includes libtorch's headers.

#include <memprof/backend/torch/version.hpp>

#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
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
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// Sets the model of the fake CUDA device's allocator, which must live until another or none is set; null: none.
MEMPROF_TORCH_SEPARABLE void set_device_allocator(const device_allocator* used) noexcept;

}  // namespace detail

inline namespace enabled {

/// Lets operations on this thread compute with data until the end of the scope, as for loading, or for a tensor that decides what
/// the program does. Their results stay real, also as inputs of simulated operations. Nests.
///
/// Computing with a simulated tensor in the scope throws `c10::Error`.
class [[nodiscard]] real_scope {
 public:
  real_scope() noexcept;
  real_scope(const real_scope&) = delete;
  real_scope& operator=(const real_scope&) = delete;
  ~real_scope();
};

/// Registers the rule that simulates the operator `name`, which includes its overload, if any, as in "aten::add.Tensor":
/// `register_torch_rule("myops::fused", [](torch_call& call) { call.returns(call.empty({4, 8}, call.tensor(0))); });`
/// Applies to the whole process and replaces any existing rule. Thread-safe.
MEMPROF_TORCH_SEPARABLE void register_torch_rule(std::string_view name, torch_rule_function rule);

/// Sets the fraction of the elements, 0 to 1, that data-dependent operators like `nonzero`, `masked_select` and `unique` select
/// in the whole process; 1 is the upper bound. `std::nullopt`, the default, gives each mask its likely share, and the upper bound
/// to what is none. Throws `memprof::error` if out of range.
MEMPROF_TORCH_SEPARABLE void set_torch_selected_fraction(std::optional<double> fraction);

/// Says which fraction of the elements of `mask`, 0 to 1, are true (or not zero), for the operators that select by it: sizes that
/// hang on it are assumed from that, also if `set_torch_selected_fraction` says otherwise. Changes nothing about a mask whose
/// values the simulation knows, or outside a capture. What is written to the mask later undoes it. Throws `memprof::error` if out
/// of range.
MEMPROF_TORCH_SEPARABLE void assume_selected(const at::Tensor& mask, double fraction);

/// Sets how often one place of a program may read a value that the simulation does not know, counted anew whenever another place
/// reads one for the first time; then the read throws `c10::Error`, since a program that waits for such a value would never end.
/// The default is 100,000. Throws `memprof::error` if less than 1.
MEMPROF_TORCH_SEPARABLE void set_torch_read_limit(std::int64_t reads);

/// Has a model of its allocator follow the fake CUDA device until the end of the scope: a `simulated_caching_allocator` of the
/// toolkit, which must live as long. What it reserves is recorded, and with a capacity requests fail as on a full device, by
/// `c10::OutOfMemoryError`. Open it before the capture begins, and close it after its end; one at a time.
template <class Allocator>
class [[nodiscard]] torch_device_scope {
 public:
  explicit torch_device_scope(Allocator& allocator) : functions_(detail::recorded_device(allocator)) {
    detail::set_device_allocator(&functions_);
  }
  torch_device_scope(const torch_device_scope&) = delete;
  torch_device_scope& operator=(const torch_device_scope&) = delete;
  ~torch_device_scope() { detail::set_device_allocator(nullptr); }

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

  void attach(extend::event_sink&, const capture_options& options);
  void detach(extend::event_sink&) noexcept;
  void report_facts(extend::event_sink& writer) const;

 private:
  detail::operator_scopes operators_;
  device_description device_;
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

  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI

#if MEMPROF_ENABLED && !MEMPROF_TORCH_SEPARATE_COMPILATION
#include <memprof/backend/torch/simulation/simulation_control.hpp>
#endif
