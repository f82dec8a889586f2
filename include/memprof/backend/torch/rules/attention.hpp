#pragma once

#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/version.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Attention that never stores its scores (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp, transformers/cuda). Queries, keys
/// and values are (batch, heads, length, head size); kernels expect heads and length exchanged.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] constexpr std::int64_t up_to_multiple(std::int64_t value, std::int64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// A new tensor with the sizes of `like`, stored with heads and length exchanged.
[[nodiscard]] inline at::Tensor with_exchanged_heads(const at::Tensor& like) {
  return torch_call::transposed(torch_call::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like), 1, 2);
}

/// CPU kernels work on tiles of the scores.
struct score_tile {
  std::int64_t rows;
  std::int64_t columns;
};
[[nodiscard]] inline score_tile score_tile_of(const at::Tensor& query, const at::Tensor& key) {
  const std::int64_t length = query.size(2);
  return {std::min<std::int64_t>(length, length >= 768   ? 256
                                         : length >= 192 ? 64
                                                         : 32),
          std::min<std::int64_t>(key.size(2), 512)};
}

/// How the CPU kernel copies 16-bit keys and values, and what oneDNN holds for their products, depends on the processor, so small
/// calls run for real. True if the call has ended.
[[nodiscard]] inline bool attend_for_real(torch_call& call, const at::Tensor& query, const at::Tensor& key) {
  constexpr std::int64_t max_run_products = std::int64_t{1} << 28;
  if (query.is_meta() || query.scalar_type() == accumulation_type(query.scalar_type())) return false;
  if (query.numel() * key.size(2) <= max_run_products) {
    call.run_without_rule();
    return true;
  }
  call.approximate("scratch memory of attention on 16-bit numbers depends on the processor");
  return false;
}

/// The CPU kernel of 2.15 and later copies a tensor whose rows have gaps.
[[nodiscard]] inline at::Tensor with_dense_rows(const at::Tensor& tensor) {
  return is_torch_at_least(2, 15) && tensor.stride(-1) != 1 ? torch_call::contiguous(tensor) : tensor;
}

/// What the CPU kernel creates: the output, and the logarithm of the sum of each row.
[[nodiscard]] inline std::pair<at::Tensor, at::Tensor> cpu_flash_attention(const at::Tensor& query, const at::Tensor& key) {
  const at::ScalarType sums = accumulation_type(query.scalar_type());
  at::Tensor output = is_torch_at_least(2, 6) ? torch_call::empty_like(query) : with_exchanged_heads(query);
  at::Tensor logsumexp =
      torch_call::transposed(torch_call::empty({query.size(0), query.size(2), query.size(1)}, query, sums), 1, 2);
  // Each thread holds the scores of one tile, their maxima and sums, and the tile's output.
  const auto [rows, columns] = score_tile_of(query, key);
  const std::int64_t threads = at::get_num_threads();
  const at::Tensor tiles = torch_call::empty({threads, rows * columns + 2 * rows + rows * query.size(3)}, query, sums);
  at::Tensor narrow_scores;
  if (sums != query.scalar_type()) narrow_scores = torch_call::empty({threads, rows, columns}, query);
  return {std::move(output), std::move(logsumexp)};
}

/// (query, key, value, dropout_p, is_causal, attn_mask, scale) -> (output, logsumexp)
inline void flash_attention_for_cpu_rule(torch_call& call) {
  if (attend_for_real(call, call.tensor(0), call.tensor(1))) return;
  const at::Tensor dense[] = {with_dense_rows(call.tensor(0)), with_dense_rows(call.tensor(1)), with_dense_rows(call.tensor(2))};
  auto [output, logsumexp] = cpu_flash_attention(call.tensor(0), call.tensor(1));
  call.returns(std::move(output), std::move(logsumexp));
}

/// (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale) -> gradients of query, key, value
inline void flash_attention_for_cpu_backward_rule(torch_call& call) {
  const at::Tensor query = call.tensor(1);
  if (attend_for_real(call, query, call.tensor(2))) return;
  const at::ScalarType sums = accumulation_type(query.scalar_type());
  const at::Tensor dense[] = {with_dense_rows(query), with_dense_rows(call.tensor(2)), with_dense_rows(call.tensor(3))};
  at::Tensor of_query = with_exchanged_heads(query);
  at::Tensor of_key = with_exchanged_heads(call.tensor(2));
  at::Tensor of_value = with_exchanged_heads(call.tensor(3));
  const at::Tensor gradient = torch_call::contiguous(torch_call::transposed(call.tensor(0), 1, 2));
  // Each thread holds the scores of one tile and their gradients, and a sum for each row.
  const auto [rows, columns] = score_tile_of(query, call.tensor(2));
  const std::int64_t threads = at::get_num_threads();
  const at::Tensor tiles = torch_call::empty({threads, 2 * rows * columns}, query, sums);
  at::Tensor narrow_tiles;
  if (sums != query.scalar_type()) narrow_tiles = torch_call::empty({threads, 2 * rows * columns}, query);
  std::vector<at::Tensor> row_sums;
  for (std::int64_t thread = 0; thread < threads; ++thread) row_sums.push_back(torch_call::empty({rows}, query, sums));
  row_sums.clear();
  call.returns(std::move(of_query), std::move(of_key), std::move(of_value));
}

/// How many parts of the keys flash attention gives to different thread blocks, if the queries alone do not fill the device
/// (num_splits_heuristic of flash_attn/flash_api.cpp).
[[nodiscard]] inline std::int64_t key_splits(const at::Tensor& query, const at::Tensor& key) {
  const auto divided_up = [](std::int64_t value, std::int64_t by) { return (value + by - 1) / by; };
  const std::int64_t width = query.size(3);
  const std::int64_t places = 2 * std::int64_t{claimed_cuda.load(std::memory_order_relaxed).multiprocessors};
  const std::int64_t blocks = query.size(0) * query.size(1) * divided_up(query.size(2), 64);
  if (10 * blocks >= 8 * places) return 1;
  const std::int64_t key_blocks = divided_up(key.size(2), width <= 64 ? 256 : width <= 128 ? 128 : 64);
  const std::int64_t most = std::min({std::int64_t{128}, places, key_blocks});
  const auto is_eligible = [&](std::int64_t splits) {
    return splits == 1 || divided_up(key_blocks, splits) != divided_up(key_blocks, splits - 1);
  };
  const auto efficiency = [&](std::int64_t splits) {
    const double waves = static_cast<double>(blocks * splits) / static_cast<double>(places);
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    if (is_eligible(splits)) best = std::max(best, efficiency(splits));
  }
  constexpr double good_enough = 0.85;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    if (is_eligible(splits) && efficiency(splits) >= good_enough * best) return splits;
  }
  return 1;
}

/// (query, key, value, dropout_p, is_causal, return_debug_mask, scale) -> (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
/// philox_seed, philox_offset, debug_attn_mask)
inline void flash_attention_rule(torch_call& call) {
  const at::Tensor query = call.tensor(0);
  if (!torch_call::is_on_cuda(query)) {  // before the CPU kernel had its own operator
    if (attend_for_real(call, query, call.tensor(1))) return;
    auto [output, logsumexp] = cpu_flash_attention(query, call.tensor(1));
    return call.returns(std::move(output), std::move(logsumexp), at::Tensor{}, at::Tensor{}, query.size(2),
                        call.tensor(1).size(2), at::Tensor{}, at::Tensor{}, at::Tensor{});
  }
  const at::Tensor key = call.tensor(1);
  const bool drops = call.number(3) != 0;
  at::Tensor output = torch_call::empty_like(query);
  at::Tensor logsumexp = torch_call::empty({query.size(0), query.size(1), query.size(2)}, query, at::kFloat);
  at::Tensor sums_of_splits;
  at::Tensor outputs_of_splits;
  if (const std::int64_t splits = drops ? 1 : key_splits(query, key); splits > 1) {
    sums_of_splits = torch_call::empty({splits, query.size(0), query.size(1), query.size(2)}, query, at::kFloat);
    outputs_of_splits = torch_call::empty(
        {splits, query.size(0), query.size(1), query.size(2), up_to_multiple(query.size(3), 32)}, query, at::kFloat);
  }
  // Unsigned if libtorch has that type.
  at::Tensor seed = torch_call::empty({2}, query, at::kLong);
  at::Tensor offset = torch_call::empty({}, query, at::kLong);
  const at::Tensor state = torch_call::scratch({2}, query, at::kLong, drops);
  sums_of_splits.reset();
  call.returns(std::move(output), std::move(logsumexp), at::Tensor{}, at::Tensor{}, query.size(2), key.size(2), std::move(seed),
               std::move(offset), torch_call::empty({0}, query));
}

/// (grad_out, query, key, value, out, logsumexp, ...) -> gradients of query, key, value
inline void flash_attention_backward_rule(torch_call& call) {
  const at::Tensor query = call.tensor(1);
  if (!torch_call::is_on_cuda(query)) return flash_attention_for_cpu_backward_rule(call);
  const at::Tensor key = call.tensor(2);
  const std::int64_t batch = query.size(0);
  const std::int64_t heads = query.size(1);
  const std::int64_t width = query.size(3);
  const at::Tensor gradient = torch_call::contiguous(torch_call::transposed(call.tensor(0), 1, 2));
  const at::Tensor output = torch_call::contiguous(torch_call::transposed(call.tensor(4), 1, 2));
  at::Tensor of_query = torch_call::empty_like(query);
  at::Tensor of_key = torch_call::empty_like(key);
  at::Tensor of_value = torch_call::empty_like(call.tensor(3));
  // Row sums and the float32 sum of the query's gradient, over rounded sizes (flash_api.cpp, mha_bwd).
  const std::int64_t rounded_length = up_to_multiple(query.size(2), 128);
  const at::Tensor row_sums = torch_call::empty({batch, heads, rounded_length}, query, at::kFloat);
  const at::Tensor wide_gradient =
      torch_call::empty({batch, rounded_length, heads, up_to_multiple(width, width <= 128 ? 32 : 64)}, query, at::kFloat);
  // With grouped queries, gradients of keys and values for every head, which are then summed.
  at::Tensor of_every_key;
  at::Tensor of_every_value;
  if (key.size(1) != heads) {
    of_every_key = torch_call::empty({batch, key.size(2), heads, width}, query);
    of_every_value = torch_call::empty({batch, key.size(2), heads, width}, query);
  }
  call.returns(std::move(of_query), std::move(of_key), std::move(of_value));
}

/// (query, key, value, attn_bias, compute_log_sumexp, ...) -> (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
/// philox_seed, philox_offset, debug_attn_mask). cuDNN's workspaces are those that it asked for on an H200.
inline void cudnn_attention_rule(torch_call& call) {
  const at::Tensor query = call.tensor(0);
  if (!torch_call::is_on_cuda(query)) return call.run_without_rule();
  at::Tensor seed = torch_call::empty({}, query, at::kLong);
  at::Tensor offset = torch_call::empty({}, query, at::kLong);
  at::Tensor output = torch_call::empty_like(query);
  at::Tensor logsumexp;
  if (call.flag(4)) logsumexp = torch_call::empty({query.size(0), query.size(1), query.size(2), 1}, query, at::kFloat);
  constexpr std::int64_t workspace_bytes = 256;
  const at::Tensor workspace = torch_call::scratch_bytes(workspace_bytes, query);
  call.returns(std::move(output), std::move(logsumexp), at::Tensor{}, at::Tensor{}, query.size(2), call.tensor(1).size(2),
               std::move(seed), std::move(offset), at::Tensor{});
}

/// (grad_out, query, key, value, out, logsumexp, ...) -> gradients of query, key, value
inline void cudnn_attention_backward_rule(torch_call& call) {
  const at::Tensor query = call.tensor(1);
  const at::Tensor key = call.tensor(2);
  if (!torch_call::is_on_cuda(query)) return call.run_without_rule();
  at::Tensor of_query = torch_call::empty_like(query);
  at::Tensor of_key = torch_call::empty_like(key);
  at::Tensor of_value = torch_call::empty_like(call.tensor(3));
  // Sums of rows, the float32 sum of the query's gradient, and with grouped queries the gradients of every head.
  constexpr std::int64_t float_bytes = 4;
  const std::int64_t rows = query.size(0) * query.size(1) * query.size(2);
  std::int64_t bytes = 256 + float_bytes * rows * (1 + query.size(3));
  if (key.size(1) != query.size(1))
    bytes += 2 * query.size(0) * query.size(1) * key.size(2) * query.size(3) * static_cast<std::int64_t>(query.element_size());
  const at::Tensor workspace = torch_call::scratch_bytes(bytes, query);
  call.returns(std::move(of_query), std::move(of_key), std::move(of_value));
}

/// A number on the host, as the state of the generator is outside of CUDA graphs.
[[nodiscard]] inline at::Tensor number_on_cpu() {
  return detail::fake_strided({}, {}, c10::scalarTypeToTypeMeta(at::kLong), c10::Device{c10::kCPU});
}

/// (query, key, value, attn_bias, compute_log_sumexp, ...) -> (output, log_sumexp, philox_seed, philox_offset)
inline void cuda_efficient_attention_rule(torch_call& call) {
  const at::Tensor query = call.tensor(0);
  const at::Tensor value = call.tensor(2);
  const std::vector<std::int64_t> exchanged{query.size(0), query.size(2), query.size(1), value.size(3)};
  at::Tensor output = torch_call::transposed(torch_call::empty(exchanged, query), 1, 2);
  const std::int64_t rows = call.flag(4) ? up_to_multiple(query.size(2), 32) : 0;
  at::Tensor logsumexp = torch_call::empty({query.size(0), query.size(1), rows}, query, at::kFloat);
  // Wide heads are summed outside of registers, in float32 if their type is narrower.
  constexpr std::int64_t widest_in_registers = 128;
  const bool is_narrow = query.scalar_type() != at::kFloat;
  const at::Tensor sums = torch_call::scratch(exchanged, query, at::kFloat, is_narrow && value.size(3) > widest_in_registers);
  call.returns(std::move(output), std::move(logsumexp), number_on_cpu(), number_on_cpu());
}

/// The workspace of the backward pass for one head, as the kernels for compute capability 8.0 and higher have it
/// (mem_eff_attention/kernel_backward.h): for each block of queries and columns its part of the query's gradient, with a lock of
/// 16 bytes; and wide sums of the gradients of keys and values, where these are narrower and do not fit into registers.
[[nodiscard]] inline std::int64_t efficient_attention_workspace(const at::Tensor& query, const at::Tensor& key) {
  constexpr std::int64_t float_bytes = 4;
  constexpr std::int64_t lock_bytes = 16;
  const bool is_narrow = query.scalar_type() != at::kFloat;
  const std::int64_t width = query.size(3);
  const std::int64_t block_rows = width <= 64 ? 64 : 128;
  const std::int64_t block_columns = is_narrow && width > 64 && width <= 128 ? 128 : 64;
  const std::int64_t blocks =
      up_to_multiple(query.size(2), block_rows) / block_rows * (up_to_multiple(width, block_columns) / block_columns);
  std::int64_t bytes = blocks * (block_rows * block_columns * float_bytes + lock_bytes);
  if (is_narrow && width > 128) bytes += 2 * float_bytes * up_to_multiple(key.size(2), 64) * up_to_multiple(width, 128);
  return bytes;
}

/// (grad_out, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, grad_input_mask, ...) -> gradients of query,
/// key, value, bias
inline void cuda_efficient_attention_backward_rule(torch_call& call) {
  const at::Tensor query = call.tensor(1);
  at::Tensor of_query = with_exchanged_heads(query);
  at::Tensor of_key = with_exchanged_heads(call.tensor(2));
  at::Tensor of_value = with_exchanged_heads(call.tensor(3));
  at::Tensor of_bias;
  if (call.has(4) && call.tensor(4).defined() && call.wants(10, 3)) of_bias = torch_call::empty_like(call.tensor(4));
  const std::vector<std::int64_t> rows{query.size(0), query.size(1), query.size(2)};
  at::Tensor row_sums;  // of the output times its gradient
  if (query.scalar_type() == at::kFloat) {
    const at::Tensor products = torch_call::empty_like(call.tensor(0));
    const at::Tensor sums = torch_call::empty({rows[0], rows[2], rows[1]}, query);
    row_sums = rows[1] == 1 || rows[2] == 1 ? sums : torch_call::empty(rows, query);
  } else {
    row_sums = torch_call::empty(rows, query, at::kFloat);
  }
  const at::Tensor workspace =
      torch_call::scratch_bytes(query.size(0) * query.size(1) * efficient_attention_workspace(query, call.tensor(2)), query);
  row_sums.reset();
  call.returns(std::move(of_query), std::move(of_key), std::move(of_value), std::move(of_bias));
}

inline constexpr known_rule attention_rules[] = {
    {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_attention_for_cpu_rule},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_for_cpu_backward_rule},
    {"aten::_scaled_dot_product_flash_attention", flash_attention_rule},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_attention_backward_rule},
    {"aten::_scaled_dot_product_cudnn_attention", cudnn_attention_rule},
    {"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_attention_backward_rule},
    {"aten::_scaled_dot_product_efficient_attention", cuda_efficient_attention_rule},
    {"aten::_scaled_dot_product_efficient_attention_backward", cuda_efficient_attention_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
