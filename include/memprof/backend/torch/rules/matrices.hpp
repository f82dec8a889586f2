#pragma once

#include <memprof/backend/torch/rules/reductions.hpp>
#include <memprof/backend/torch/simulation/cublas_workspace.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Matrix products: their results are those of the shape functions; CPU kernels also copy what BLAS cannot read
/// (aten/src/ATen/native/LinearAlgebra.cpp).

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether BLAS can read a matrix in place: its rows or columns are without gaps, one after the other.
[[nodiscard]] inline bool suits_blas(const at::Tensor& matrix) {
  const auto behind_each_other = [&](std::int64_t within, std::int64_t across) {
    return matrix.stride(within) == 1 && matrix.stride(across) >= std::max<std::int64_t>(1, matrix.size(within));
  };
  const std::int64_t rows = matrix.dim() - 2;
  return behind_each_other(rows, rows + 1) || behind_each_other(rows + 1, rows);
}

[[nodiscard]] inline bool is_copied_for_blas(const at::Tensor& matrix) {
  return matrix.defined() && matrix.numel() != 0 && !suits_blas(matrix);
}

/// Whether cuBLAS gets a copy of a matrix, as it does of one that is expanded from fewer numbers.
[[nodiscard]] inline bool is_copied_for_cublas(const at::Tensor& matrix) {
  return matrix.numel() != 0 && !matrix.is_non_overlapping_and_dense() && !suits_blas(matrix);
}
/// The copies for both factors, after the result, for as long as they are kept.
struct cublas_copies {
  cublas_copies(const at::Tensor& left, const at::Tensor& right)
      : of_left(torch_call::scratch(left.sizes(), left, {}, is_copied_for_cublas(left))),
        of_right(torch_call::scratch(right.sizes(), right, {}, is_copied_for_cublas(right))) {}
  at::Tensor of_left;
  at::Tensor of_right;
};

/// What oneDNN holds for products of 16-bit numbers depends on the processor, so small ones run for real. So do those of
/// conjugated matrices, which kernels resolve as needed. True if the call has ended.
[[nodiscard]] inline bool multiply_for_real(torch_call& call, const at::Tensor& left, const at::Tensor& right) {
  constexpr std::size_t max_run_bytes = std::size_t{4} << 20;
  if (!torch_call::is_on_cuda(left) && (left.is_conj() || right.is_conj())) {
    call.run_without_rule();
    return true;
  }
  if (torch_call::is_on_cuda(left) || left.is_meta() || left.scalar_type() == accumulation_type(left.scalar_type())) return false;
  if (left.nbytes() + right.nbytes() <= max_run_bytes) {
    call.run_without_rule();
  } else {
    call.approximate("oneDNN's scratch memory for products of 16-bit numbers depends on the processor");
    call.run_shape_function();
  }
  return true;
}

/// Whether CUDA adds the bias of a linear layer in the same kernel, by cuBLASLt (aten/src/ATen/native/cuda/Blas.cpp).
[[nodiscard]] inline bool adds_bias_by_cublas_lt(torch_call& call, std::size_t first) {
  const at::Tensor left = call.tensor(first);
  if (first == 0 || call.tensor(0).dim() != 1 || !call.tensor(0).is_contiguous()) return false;
  return !left.is_complex() && call.tensor(0).size(0) == call.tensor(2).size(1) && left.size(0) > 1 && left.size(1) > 1;
}

/// The copies for the product of two matrices; `first` and its successor are the positions of the factors.
inline void multiply_matrices(torch_call& call, std::size_t first) {
  const at::Tensor left = call.tensor(first);
  const at::Tensor right = call.tensor(first + 1);
  if (multiply_for_real(call, left, right)) return;
  const bool has_bias = torch_call::is_on_cuda(left) && adds_bias_by_cublas_lt(call, first);
  call.run_shape_function();
  if (torch_call::is_on_cuda(left)) {
    cublas_workspaces::instance().ensure(has_bias);
    const cublas_copies copies{left, right};
    return;
  }
  at::Tensor left_copy;
  at::Tensor right_copy;
  if (left.numel() == 0 || right.numel() == 0) return;
  if (is_copied_for_blas(left)) left_copy = torch_call::empty(left.sizes(), left);
  if (is_copied_for_blas(right)) right_copy = torch_call::empty(right.sizes(), right);
}
inline void mm_rule(torch_call& call) { multiply_matrices(call, 0); }
inline void addmm_rule(torch_call& call) { multiply_matrices(call, 1); }

/// The same for batches of matrices, one matrix at a time; small ones are multiplied without BLAS.
inline void multiply_batches(torch_call& call, std::size_t first) {
  const at::Tensor left = call.tensor(first);
  const at::Tensor right = call.tensor(first + 1);
  if (multiply_for_real(call, left, right)) return;
  call.run_shape_function();
  if (torch_call::is_on_cuda(left)) {
    cublas_workspaces::instance().ensure();
    const cublas_copies copies{left, right};
    return;
  }
  constexpr std::int64_t least_work = 400;
  if (left.size(1) * left.size(2) * right.size(2) < least_work) return;
  const bool copies_left = is_copied_for_blas(left);
  const bool copies_right = is_copied_for_blas(right);
  if (!copies_left && !copies_right) return;
  for (std::int64_t batch = 0; batch < left.size(0); ++batch) {
    at::Tensor left_copy;
    at::Tensor right_copy;
    if (copies_left) left_copy = torch_call::empty({left.size(1), left.size(2)}, left);
    if (copies_right) right_copy = torch_call::empty({right.size(1), right.size(2)}, right);
  }
}
inline void bmm_rule(torch_call& call) { multiply_batches(call, 0); }
inline void baddbmm_rule(torch_call& call) { multiply_batches(call, 1); }

/// (self): a Taylor expansion, whose degree hangs on the greatest norm; of degree 18 for norms as those of most weights are. At
/// its peak the kernel holds 13 matrices for one, 11 for each of several, the result among them.
inline void matrix_exp_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (input.dim() < 2 || input.numel() == 0 || input.size(-1) == 1) return call.run_without_rule();
  const std::int64_t matrices = input.numel() / (input.size(-1) * input.size(-1));
  call.approximate("scratch memory depends on data: assumed to be that for matrices of a norm of 2 or more");
  call.returns(torch_call::empty(input.sizes(), input));
  constexpr std::int64_t buffers = 5;  // of powers, and as many of their sums
  const auto several = [&](std::int64_t count) {
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.insert(sizes.begin(), count);
    return torch_call::empty(sizes, input);
  };
  const at::Tensor powers = several(buffers);
  const at::Tensor sums = several(buffers);
  const at::Tensor products = several(matrices == 1 ? 2 : 0);
}

inline constexpr known_rule matrix_rules[] = {
    {"aten::mm", mm_rule},
    {"aten::addmm", addmm_rule},
    {"aten::bmm", bmm_rule},
    {"aten::baddbmm", baddbmm_rule},
    {"aten::dot", scalar_rule},
    {"aten::vdot", scalar_rule},
    {"aten::linalg_matrix_exp", matrix_exp_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
