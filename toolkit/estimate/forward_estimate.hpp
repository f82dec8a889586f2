#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <cstdint>

/// @file
/// What the forward pass of a decoder of any family keeps for its backward pass, in the closed forms of docs/estimate.md.

namespace memprof::inline MEMPROF_ABI {

/// The estimate for a decoder of its own architecture: what a forward pass in training keeps until the backward pass, as
/// `estimate_training_step` counts it with plain attention, in fp32 and bf16. Throws `memprof::error` like `estimate_shape`.
[[nodiscard]] shape_estimate estimate_forward(const decoder_model& model, std::int64_t batch_size, std::int64_t seq_len);

}  // namespace memprof::inline MEMPROF_ABI
