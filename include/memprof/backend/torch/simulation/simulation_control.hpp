#pragma once

#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/device_allocator.hpp>
#include <memprof/backend/torch/simulation/cublas_workspace.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/simulation.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/device_context.hpp>
#include <memprof/profile/fact/library_workspace.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// What a program says to the simulation: the functions and member functions of <memprof/backend/torch_no_dispatch.hpp>.

namespace memprof::inline MEMPROF_ABI {
namespace detail {

MEMPROF_TORCH_SEPARABLE void set_device_allocator(const device_allocator* used) noexcept { fake_cuda_device.set_allocator(used); }

}  // namespace detail

inline namespace enabled {

MEMPROF_TORCH_SEPARABLE real_scope::real_scope() noexcept { ++detail::this_simulating_thread.real_scopes; }
MEMPROF_TORCH_SEPARABLE real_scope::~real_scope() { --detail::this_simulating_thread.real_scopes; }

MEMPROF_TORCH_SEPARABLE void register_torch_rule(std::string_view name, torch_rule_function rule) {
  detail::all_operator_plans().set_rule(name, std::move(rule));
}

MEMPROF_TORCH_SEPARABLE void set_torch_selected_fraction(std::optional<double> fraction) {
  if (fraction.has_value() && !(*fraction >= 0.0 && *fraction <= 1.0)) {
    detail::raise("set_torch_selected_fraction: " + std::to_string(*fraction) + " must be in [0, 1]");
  }
  detail::selected_fraction.store(fraction.value_or(-1.0), std::memory_order_relaxed);
}

MEMPROF_TORCH_SEPARABLE void assume_selected(const at::Tensor& mask, double fraction) {
  if (!(fraction >= 0.0 && fraction <= 1.0)) detail::raise("assume_selected: " + std::to_string(fraction) + " must be in [0, 1]");
  detail::assume_share(mask, fraction);
}

MEMPROF_TORCH_SEPARABLE void set_torch_read_limit(std::int64_t reads) {
  if (reads < 1) detail::raise("set_torch_read_limit: " + std::to_string(reads) + " must be at least 1");
  detail::read_limit.store(reads, std::memory_order_relaxed);
}

MEMPROF_TORCH_SEPARABLE void torch_no_dispatch::attach(extend::event_sink&, const capture_options& options) {
  operators_.begin();
  device_ = options.device;
  try {
    detail::begin_simulation(options.device);
  } catch (...) {
    operators_.end();
    throw;
  }
}

MEMPROF_TORCH_SEPARABLE void torch_no_dispatch::detach(extend::event_sink&) noexcept {
  operators_.end();
  detail::end_simulation();
}

MEMPROF_TORCH_SEPARABLE void torch_no_dispatch::report_facts(extend::event_sink& writer) const {
  const std::vector<approximated_operation> estimates = detail::all_operator_plans().estimates();
  if (!estimates.empty()) writer.add_facts(extend::to_table(estimates));
  const std::vector<unknown_read> reads = detail::unknown_reads::instance().rows();
  if (!reads.empty()) writer.add_facts(extend::to_table(reads));
  const std::vector<assumed_size> sizes = detail::assumed_sizes::instance().rows();
  if (!sizes.empty()) writer.add_facts(extend::to_table(sizes));
  const std::vector<library_workspace> workspaces = detail::cublas_workspaces::instance().rows();
  if (!workspaces.empty()) writer.add_facts(extend::to_table(workspaces));
  if (const cuda_context context = cuda_context_of(device_); context.is_known()) {
    device_context row{std::string{device_.tensor_space().name.view()}, context.bytes, context.least,
                       std::string{context.source}};
    writer.add_facts(extend::to_table(std::vector<device_context>{std::move(row)}));
  }
  const bool steers = std::any_of(reads.begin(), reads.end(), [](const unknown_read& read) { return read.steers != 0; });
  if (steers || !sizes.empty()) {
    source_limit limit;
    limit.assumed = 1;
    writer.add_facts(extend::to_table(std::vector<source_limit>{limit}));
  }
}

}  // namespace enabled
}  // namespace memprof::inline MEMPROF_ABI
