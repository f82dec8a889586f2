#include <memprof/config.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/predicted_memory.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// What blocks of a category are called as a part, in the order of `category`.
constexpr std::array<std::string_view, category_names.size()> block_parts{
    "other blocks", "parameters", "gradients", "optimizer state", "activations", "temporary blocks", "inputs", "kv cache"};

std::int64_t upper(const predicted_memory& part) noexcept {
  return part.most_bytes == predicted_memory::unknown ? part.bytes : part.most_bytes;
}

/// Adds parts that are known, and leaves out those that are nothing.
class part_list {
 public:
  part_list(memory_prediction& made, std::string device) : made_(made), device_(std::move(device)) {}

  void add_blocks(std::string_view name, std::int64_t bytes) {
    if (bytes > 0) made_.parts.push_back({device_, std::string{name}, bytes, bytes, bytes, 1, {}});
  }
  void add_interval(std::string_view name, std::int64_t least, std::int64_t expected, std::int64_t most, std::string_view source,
                    bool is_in_blocks = false) {
    made_.parts.push_back({device_, std::string{name}, expected, least, most, is_in_blocks ? 1 : 0, std::string{source}});
  }

 private:
  memory_prediction& made_;
  std::string device_;
};

/// The parts that the source of the run reports itself.
std::vector<predicted_memory> reported_parts(const profile& run, std::string_view device) {
  std::vector<predicted_memory> parts;
  for_each_fact<predicted_memory>(run.facts, [&](const predicted_memory& part) {
    if (part.device == device) parts.push_back(part);
  });
  return parts;
}

std::int64_t workspaces_in(const std::vector<predicted_memory>& parts) noexcept {
  std::int64_t bytes = 0;
  for (const predicted_memory& part : parts) {
    if (part.part == predicted_part::cublas_workspaces && part.is_in_blocks != 0) bytes += part.bytes;
  }
  return bytes;
}

/// The blocks at the peak: by category, but for cuBLAS's workspaces, which are among the others.
void add_peak_blocks(part_list& parts, const space_profile& space, std::int64_t workspaces) {
  const vector<owned_bytes>& owned = space.live_at_peak.by_category;
  const auto bytes_of = [&](std::string_view name) {
    const auto found = std::find_if(owned.begin(), owned.end(), [&](const owned_bytes& each) { return each.owner == name; });
    return found == owned.end() ? std::int64_t{0} : found->bytes;
  };
  for (std::size_t index = 1; index < category_names.size(); ++index) {
    parts.add_blocks(block_parts[index], bytes_of(category_names[index]));
  }
  const std::int64_t others = bytes_of(category_names[0]);
  parts.add_blocks(predicted_part::cublas_workspaces, std::min(workspaces, others));
  parts.add_blocks(block_parts[0], others - std::min(workspaces, others));
}

/// Of 35 training programs with convolutions on an H200 (docs/accuracy_gpu.md), without cudnn.benchmark, the worst reserved so much
/// more than predicted.
constexpr std::int64_t most_cudnn_percent = 28;
/// And of 47 programs without them.
constexpr std::int64_t most_scratch = std::int64_t{2} << 20;

/// What comes on top for kernels whose own memory is not known.
void add_unpredicted(part_list& parts, const profile& run, std::int64_t reserved) {
  bool has_convolutions = false;
  std::string others;
  std::size_t count = 0;
  for_each_fact<approximated_operation>(run.facts, [&](const approximated_operation& row) {
    if (row.name.find("convolution") != std::string::npos) {
      has_convolutions = true;
      return;
    }
    if (++count <= 3) others += (count == 1 ? "" : ", ") + row.name;
  });
  if (has_convolutions) {
    parts.add_interval(predicted_part::cudnn_workspaces, 0, 0, reserved * most_cudnn_percent / 100,
                       "not predicted; at most 28 % of what is reserved in 35 programs on an H200, and 6.6 times as much with "
                       "torch.backends.cudnn.benchmark");
  }
  if (count != 0) {
    if (count > 3) others += " and " + std::to_string(count - 3) + " more";
    parts.add_interval(predicted_part::scratch, 0, 0, most_scratch,
                       "not predicted, of " + others + "; at most 2 MiB in 47 programs on an H200");
  }
}

caching_allocator_options beside(caching_allocator_options options, std::int64_t bytes) noexcept {
  options.context = std::clamp<std::int64_t>(bytes, 0, options.capacity);
  return options;
}

}  // namespace
}  // namespace detail

std::int64_t memory_prediction::bytes() const noexcept {
  std::int64_t sum = 0;
  for (const predicted_memory& part : parts) sum += part.bytes;
  return sum;
}

std::int64_t memory_prediction::least() const noexcept {
  std::int64_t sum = 0;
  for (const predicted_memory& part : parts) sum += part.least_bytes;
  return sum;
}

std::int64_t memory_prediction::most() const noexcept {
  std::int64_t sum = 0;
  for (const predicted_memory& part : parts) sum += detail::upper(part);
  return sum;
}

std::int64_t memory_prediction::beside_blocks() const noexcept {
  std::int64_t sum = 0;
  for (const predicted_memory& part : parts) sum += part.is_in_blocks != 0 ? 0 : part.bytes;
  return sum;
}

const predicted_memory* memory_prediction::find(std::string_view part) const noexcept {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const predicted_memory& each) { return each.part == part; });
  return found == parts.end() ? nullptr : &*found;
}

memory_prediction predict_memory(const profile& run, const space_profile& space, const caching_allocator_stats& peaks,
                                 const cuda_context& context) {
  memory_prediction made;
  detail::part_list parts{made, space.name};
  const std::vector<predicted_memory> reported = detail::reported_parts(run, space.name);
  parts.add_interval(predicted_part::context, context.least, context.expected, context.most, context.source);
  detail::add_peak_blocks(parts, space, detail::workspaces_in(reported));
  parts.add_blocks(predicted_part::rounding, peaks.allocated_bytes.peak - space.cumulative_peak);
  parts.add_blocks(predicted_part::fragmentation, peaks.reserved_bytes.peak - peaks.allocated_bytes.peak);
  for (const predicted_memory& part : reported) {
    if (part.is_in_blocks == 0 && part.part != predicted_part::context) made.parts.push_back(part);
  }
  detail::add_unpredicted(parts, run, peaks.reserved_bytes.peak);
  return made;
}

fit_certainty certainty_of(const allocation_sequence& sequence, const caching_allocator_options& options, const memory_fit& fit,
                           const memory_prediction& prediction) {
  const std::int64_t expected = prediction.beside_blocks();
  if (fit.fits()) {
    const std::int64_t most = expected + prediction.most() - prediction.bytes();
    if (most == expected || fit_memory(sequence, detail::beside(options, most)).fits()) return fit_certainty::fits;
    return fit_certainty::probably_fits;
  }
  const std::int64_t least = expected + prediction.least() - prediction.bytes();
  if (least == expected || !fit_memory(sequence, detail::beside(options, least)).fits()) return fit_certainty::does_not_fit;
  return fit_certainty::probably_fails;
}

predicted_fit predict_fit(const allocation_sequence& sequence, const profile& run, const space_profile& space,
                          caching_allocator_options options, const cuda_context& context) {
  predicted_fit made;
  options.context = std::clamp<std::int64_t>(context.expected, 0, options.capacity);
  made.fit = fit_memory(sequence, options);
  made.prediction = predict_memory(run, space, made.fit.unlimited_stats, context);
  if (const std::int64_t expected = made.prediction.beside_blocks(); expected != context.expected) {
    options.context = std::clamp<std::int64_t>(expected, 0, options.capacity);
    made.fit = fit_memory(sequence, options);
  }
  made.certainty = certainty_of(sequence, options, made.fit, made.prediction);
  return made;
}

}  // namespace memprof::inline MEMPROF_ABI
