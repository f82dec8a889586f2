#pragma once

#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>

#include <cstdint>
#include <optional>
#include <vector>

/// @file
/// The largest training step that fits a device.

namespace memprof::inline MEMPROF_ABI {

class allocation_sequence;

/// What a step needs of a device.
struct step_need {
  std::int64_t peak = 0;  ///< greatest live bytes
  /// What PyTorch's caching allocator reserves on the device, or would without a limit if it does not fit; only for a CUDA
  /// device.
  std::optional<std::int64_t> reserved;
  bool fits = false;  ///< beside the CUDA context and NCCL's buffers

  bool operator==(const step_need&) const = default;
};

/// Whether tensors of the device are allocated by PyTorch's caching allocator.
[[nodiscard]] bool has_caching_allocator(const device_description& device) noexcept;

/// What a sequence of allocations with the given peak needs of a device with a capacity: on a CUDA device, what the model of the
/// caching allocator reserves, beside the CUDA context (`cuda_context_of`) and `besides` bytes of other libraries.
[[nodiscard]] step_need need_of(const allocation_sequence& sequence, std::int64_t peak, const device_description& device,
                                std::int64_t besides = 0);

/// What NCCL takes of a device that computes with others: a part named "NCCL buffers", or nothing on one device. Each degree of
/// more than one is a group that communicates by itself; ZeRO's are those of the replicas.
[[nodiscard]] std::vector<memory_part> nccl_parts(const parallel_degrees& parallel);

/// What an estimated step needs of its device.
[[nodiscard]] step_need need_of(const decoder_model& model, training_setup setup);

/// The parts of an estimated step on its CUDA device, which must have a capacity, and whether they fit.
[[nodiscard]] predicted_fit predict_step(const decoder_model& model, training_setup setup);

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
[[nodiscard]] fit_answer find_fit(const decoder_model& model, training_setup setup, sought_size sought, std::int64_t longest = 0);

}  // namespace memprof::inline MEMPROF_ABI
