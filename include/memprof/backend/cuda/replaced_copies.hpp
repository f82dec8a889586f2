#pragma once

/// @file
/// The functions of CUDA's runtime that copy and fill. Only <memprof/backend/cuda_no_dispatch_runtime.hpp> includes it.

#include <memprof/backend/cuda/replaced_function.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_copies.hpp>
#include <memprof/backend/cuda/simulated_questions.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime {

MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy, (void* to, const void* from, std::size_t bytes, int), copy(to, from, bytes))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpyAsync, (void* to, const void* from, std::size_t bytes, int, void*),
                                   copy(to, from, bytes))
MEMPROF_DETAIL_CUDA_CALL(cudaMemcpyPeer, (void* to, int, const void* from, int, std::size_t bytes), copy(to, from, bytes))
MEMPROF_DETAIL_CUDA_CALL(cudaMemcpyPeerAsync, (void* to, int, const void* from, int, std::size_t bytes, void*),
                         copy(to, from, bytes))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy2D,
                         (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                          std::size_t height, int),
                         copy({to, to_pitch}, {from, from_pitch}, width, height))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpy2DAsync,
                                   (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                                    std::size_t height, int, void*),
                                   copy({to, to_pitch}, {from, from_pitch}, width, height))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy3D, (const copy_3d* asked), copy_box(asked))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpy3DAsync, (const copy_3d* asked, void*), copy_box(asked))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy3DPeer, (const peer_copy_3d* asked), copy_box(asked))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpy3DPeerAsync, (const peer_copy_3d* asked, void*), copy_box(asked))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpyToArray, (void*, std::size_t, std::size_t, const void*, std::size_t, int), nothing())
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpyToArrayAsync,
                                   (void*, std::size_t, std::size_t, const void*, std::size_t, int, void*), nothing())
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpyFromArray, (void* to, const void*, std::size_t, std::size_t, std::size_t bytes, int),
                         copy({to, bytes}, {}, bytes, 1))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpyFromArrayAsync,
                                   (void* to, const void*, std::size_t, std::size_t, std::size_t bytes, int, void*),
                                   copy({to, bytes}, {}, bytes, 1))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpyArrayToArray,
                         (void*, std::size_t, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int), nothing())
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy2DToArray,
                         (void*, std::size_t, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int), nothing())
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpy2DToArrayAsync,
                                   (void*, std::size_t, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int,
                                    void*),
                                   nothing())
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy2DFromArray,
                         (void* to, std::size_t pitch, const void*, std::size_t, std::size_t, std::size_t width,
                          std::size_t height, int),
                         copy({to, pitch}, {}, width, height))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpy2DFromArrayAsync,
                                   (void* to, std::size_t pitch, const void*, std::size_t, std::size_t, std::size_t width,
                                    std::size_t height, int, void*),
                                   copy({to, pitch}, {}, width, height))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpy2DArrayToArray,
                         (void*, std::size_t, std::size_t, const void*, std::size_t, std::size_t, std::size_t, std::size_t, int),
                         nothing())
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpyToSymbol, (const void* variable, const void*, std::size_t bytes, std::size_t offset, int),
                         copy_variable(nullptr, variable, bytes, offset))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpyToSymbolAsync,
                                   (const void* variable, const void*, std::size_t bytes, std::size_t offset, int, void*),
                                   copy_variable(nullptr, variable, bytes, offset))
MEMPROF_DETAIL_CUDA_COPY(cudaMemcpyFromSymbol, (void* to, const void* variable, std::size_t bytes, std::size_t offset, int),
                         copy_variable(to, variable, bytes, offset))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemcpyFromSymbolAsync,
                                   (void* to, const void* variable, std::size_t bytes, std::size_t offset, int, void*),
                                   copy_variable(to, variable, bytes, offset))
MEMPROF_DETAIL_CUDA_COPY(cudaMemset, (void* filled, int value, std::size_t bytes), fill(filled, bytes, value, bytes, 1))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemsetAsync, (void* filled, int value, std::size_t bytes, void*),
                                   fill(filled, bytes, value, bytes, 1))
MEMPROF_DETAIL_CUDA_COPY(cudaMemset2D, (void* filled, std::size_t pitch, int value, std::size_t width, std::size_t height),
                         fill(filled, pitch, value, width, height))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemset2DAsync,
                                   (void* filled, std::size_t pitch, int value, std::size_t width, std::size_t height, void*),
                                   fill(filled, pitch, value, width, height))
MEMPROF_DETAIL_CUDA_COPY(cudaMemset3D, (pitched_pointer filled, int value, extent size), fill(filled, value, size))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemset3DAsync, (pitched_pointer filled, int value, extent size, void*),
                                   fill(filled, value, size))

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
