#pragma once

#include <memprof/toolkit/analysis/caching_allocator_options.hpp>

#include <string_view>

/// @file
/// The value of PYTORCH_ALLOC_CONF, called PYTORCH_CUDA_ALLOC_CONF in older versions of PyTorch: the format of
/// c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp.

namespace memprof::inline MEMPROF_ABI {

/// The options given by a value of PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF); all others keep their defaults, and if a key
/// occurs twice the last one counts. An empty text sets none.
///
/// Keys without effect on device memory are accepted. Raises an error that names the key and its valid values, or the known keys
/// if it is unknown. Also rejects backend:cudaMallocAsync and throw_on_cudamalloc_oom:True, which are not modelled. Since keys
/// may come in any order, `caching_allocator` checks whether the sizes are consistent.
[[nodiscard]] caching_allocator_options parse_cuda_alloc_conf(std::string_view text);

}  // namespace memprof::inline MEMPROF_ABI
