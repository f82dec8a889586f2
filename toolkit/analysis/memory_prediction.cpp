#include <memprof/config.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/library_workspace.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// What blocks of a category are called as a part, in the order of `category`.
constexpr std::array<std::string_view, category_names.size()> names_of_categories{
    "other tensors", "parameters", "gradients", "optimizer state", "activations", "temporaries", "inputs", "KV cache"};

memory_part context_part(const device_description& device, std::optional<std::int64_t> said) {
  memory_part part{.name = "CUDA context", .is_of_allocator = false};
  if (said) {
    part.bytes = part.least = part.most = *said;
    return part;
  }
  const cuda_context known = cuda_context_of(device);
  part.bytes = known.bytes;
  part.least = known.least;
  part.most = known.is_known() ? known.bytes : memory_part::not_known;
  part.source = known.source;
  return part;
}

bool has_convolutions_without_workspace(const profile& run) {
  bool found = false;
  for_each_fact<approximated_operation>(
      run.facts, [&](const approximated_operation& row) { found = found || row.name.find("convolution") != std::string::npos; });
  return found;
}

/// What cuDNN takes to work in: of the models of timm with convolutions that were trained on an A100 (docs/accuracy_gpu.md), the
/// median, and the interval of eight in ten.
memory_part cudnn_part(const device_description& device) {
  memory_part part{.name = "cuDNN workspaces", .most = memory_part::not_known, .is_of_allocator = false};
  if (device.name.view() == "gpu-40gb" && cuda_context_of(device).is_known()) {
    part.bytes = std::int64_t{148} << 20;
    part.least = std::int64_t{22} << 20;
    part.most = std::int64_t{1'274} << 20;
    part.source = "trainings of timm on an A100 40 GB: the median, and eight in ten";
  }
  return part;
}

void add_simulated(memory_prediction& made, std::string_view name, std::int64_t bytes) {
  if (bytes != 0) made.parts.push_back({.name = std::string{name}, .bytes = bytes, .least = bytes, .most = bytes});
}

/// The blocks at the peak, by category. Workspaces are among those of the category `other`.
void add_blocks(memory_prediction& made, const profile& run, const space_profile& space) {
  std::array<std::int64_t, category_names.size()> bytes{};
  std::int64_t others = space.cumulative_peak;
  for (const owned_bytes& row : space.live_at_peak.by_category) {
    const category kind = category_from_string(row.owner).value_or(category::other);
    if (kind == category::other) continue;
    bytes[static_cast<std::size_t>(kind)] += row.bytes;
    others -= row.bytes;
  }
  std::int64_t workspaces = 0;
  for_each_fact<library_workspace>(run.facts, [&](const library_workspace& row) {
    if (row.space == space.name) workspaces += row.bytes;
  });
  workspaces = std::clamp<std::int64_t>(workspaces, 0, std::max<std::int64_t>(others, 0));
  add_simulated(made, "cuBLAS workspaces", workspaces);
  for (std::size_t index = 1; index < bytes.size(); ++index) add_simulated(made, names_of_categories[index], bytes[index]);
  add_simulated(made, names_of_categories[0], others - workspaces);
}

template <class Size>
std::int64_t sum_of(const memory_prediction& of, bool is_of_allocator, Size size) {
  std::int64_t sum = 0;
  for (const memory_part& part : of.parts) {
    if (part.is_of_allocator == is_of_allocator && part.is_known()) sum += part.*size;
  }
  return sum;
}

bool fits_beside(const allocation_sequence& sequence, caching_allocator_options options, std::int64_t bytes) {
  options.context = std::clamp<std::int64_t>(bytes, 0, options.capacity);
  return fit_memory(sequence, options).fits();
}

}  // namespace
}  // namespace detail

std::int64_t memory_prediction::total() const noexcept { return reserved() + besides(); }
std::int64_t memory_prediction::reserved() const noexcept { return detail::sum_of(*this, true, &memory_part::bytes); }
std::int64_t memory_prediction::besides() const noexcept { return detail::sum_of(*this, false, &memory_part::bytes); }
std::int64_t memory_prediction::least_besides() const noexcept { return detail::sum_of(*this, false, &memory_part::least); }
std::int64_t memory_prediction::most_besides() const noexcept { return detail::sum_of(*this, false, &memory_part::most); }

memory_prediction predict_memory(const profile& run, std::string_view space, std::int64_t reserved,
                                 const device_description& device, std::optional<std::int64_t> context,
                                 const std::vector<memory_part>& others, std::int64_t unused_in_pools) {
  memory_prediction made;
  made.parts.push_back(detail::context_part(device, context));
  if (const space_profile* const found = run.find_space(space)) {
    detail::add_blocks(made, run, *found);
    const std::int64_t more = reserved - found->cumulative_peak;
    const std::int64_t in_pools = std::clamp<std::int64_t>(unused_in_pools, 0, std::max<std::int64_t>(more, 0));
    detail::add_simulated(made, "free in private pools", in_pools);
    detail::add_simulated(made, "rounding and fragmentation", more - in_pools);
  }
  if (detail::has_convolutions_without_workspace(run)) made.parts.push_back(detail::cudnn_part(device));
  made.parts.insert(made.parts.end(), others.begin(), others.end());
  return made;
}

predicted_fit predict_fit(const allocation_sequence& sequence, const profile& run, std::string_view space,
                          const device_description& device, caching_allocator_options options,
                          std::optional<std::int64_t> context, const std::vector<memory_part>& others) {
  options.capacity = device.tensor_space().capacity;
  predicted_fit made;
  const std::int64_t counted = predict_memory(run, space, 0, device, context, others).besides();
  options.context = std::clamp<std::int64_t>(counted, 0, options.capacity);
  made.fit = fit_memory(sequence, options);
  made.prediction = predict_memory(run, space, made.fit.unlimited_stats.reserved_bytes.peak, device, context, others,
                                   unused_in_private_pools(sequence, options));
  const std::int64_t other = made.fits() ? made.prediction.most_besides() : made.prediction.least_besides();
  made.is_certain = other == counted || detail::fits_beside(sequence, options, other) == made.fits();
  return made;
}

}  // namespace memprof::inline MEMPROF_ABI
