#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// The largest training step that fits a device.

namespace memprof::inline MEMPROF_ABI {

/// What a step needs of a device.
struct step_need {
  std::int64_t peak = 0;  ///< greatest live bytes
  /// What PyTorch's caching allocator reserves on the device, or would without a limit if it does not fit; only for a CUDA
  /// device.
  std::optional<std::int64_t> reserved;
  bool fits = false;

  bool operator==(const step_need&) const = default;
};

/// Whether tensors of the device are allocated by PyTorch's caching allocator.
[[nodiscard]] inline bool has_caching_allocator(const device_description& device) noexcept {
  return !device.empty() && device.tensor_space().name.view().starts_with("cuda");
}

/// What a sequence of allocations with the given peak needs of a device with a capacity: on a CUDA device, what the model of the
/// caching allocator reserves.
[[nodiscard]] inline step_need need_of(const allocation_sequence& sequence, std::int64_t peak, const device_description& device) {
  const std::int64_t capacity = device.tensor_space().capacity;
  if (!has_caching_allocator(device)) return {.peak = peak, .reserved = std::nullopt, .fits = peak <= capacity};
  const memory_fit fit = fit_memory(sequence, {.capacity = capacity});
  const caching_allocator_stats& stats = fit.fits() ? fit.stats : fit.unlimited_stats;
  return {.peak = peak, .reserved = stats.reserved_bytes.peak, .fits = fit.fits()};
}

/// What an estimated step needs of its device.
[[nodiscard]] inline step_need need_of(const decoder_model& model, training_setup setup) {
  if (setup.pipeline_stage < 0) setup.pipeline_stage = estimate_training_step(model, setup).pipeline_stage;
  allocation_sequence sequence{cpu_space};  // the first space of the estimate
  const training_estimate estimate = estimate_training_step(model, setup, &sequence);
  return need_of(sequence, estimate.space().cumulative_peak, setup.device);
}

/// The size that is searched for.
enum class sought_size : std::uint8_t { batch_size, seq_len };

/// The greatest size at which a step fits.
struct fit_answer {
  std::int64_t size = 0;              ///< 0: not even 1 fits
  step_need need;                     ///< at that size, or at 1 if not even that fits
  std::optional<step_need> one_more;  ///< at the next greater size, which does not fit; nothing if no greater one is allowed
};

/// Finds the greatest batch, or the longest sequence, at which a step fits the device of `setup`, which must have a capacity. The
/// other sizes are those of `setup`; a sequence is no longer than `longest`, unless that is 0.
///
/// Costs about 40 estimates, on a CUDA device each replayed once or twice. A caching allocator may fail at one size and not at a
/// greater one: `size` fits, and the next size does not. Throws `memprof::error` like `estimate_training_step`.
[[nodiscard]] inline fit_answer find_fit(const decoder_model& model, training_setup setup, sought_size sought,
                                         std::int64_t longest = 0) {
  constexpr std::int64_t most = 100'000'000;
  if (setup.device.empty() || setup.device.tensor_space().capacity == 0) detail::raise("find_fit: the device has no capacity");
  const std::int64_t limit = sought == sought_size::seq_len && longest != 0 ? longest : most;
  const auto need_with = [&](std::int64_t size) {
    (sought == sought_size::batch_size ? setup.batch_size : setup.seq_len) = size;
    return need_of(model, setup);
  };
  fit_answer answer{.need = need_with(1), .one_more = {}};
  if (!answer.need.fits) return answer;
  answer.size = 1;
  std::int64_t failing = limit + 1;
  const auto attempt = [&](std::int64_t size) {
    const step_need need = need_with(size);
    if (need.fits) {
      answer.size = size;
      answer.need = need;
    } else {
      failing = size;
      answer.one_more = need;
    }
  };
  while (2 * answer.size < failing) attempt(2 * answer.size);
  while (failing - answer.size > 1) attempt(answer.size + (failing - answer.size) / 2);
  return answer;
}

}  // namespace memprof::inline MEMPROF_ABI
