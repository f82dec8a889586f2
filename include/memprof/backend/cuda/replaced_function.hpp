#pragma once

/// @file
/// How <memprof/backend/cuda_no_dispatch_runtime.hpp> defines a function of CUDA's runtime; it undefines these macros at its end.

#include <memprof/backend/cuda/driver_interface.hpp>

#include <cstdint>

/// The functions have the names of CUDA's only for the linker, so that their types need not be CUDA's, and can be compared with
/// them.
#define MEMPROF_DETAIL_CUDA_FUNCTION(type, name, parameters)          \
  [[gnu::visibility("default")]] type name parameters __asm__(#name); \
  type name parameters

/// A call of the runtime, and its result.
#define MEMPROF_DETAIL_CUDA_CALL(name, parameters, ...) \
  MEMPROF_DETAIL_CUDA_FUNCTION(int, name, parameters) { return __VA_ARGS__; }

/// One that nvcc's `--default-stream per-thread` gives another name, by its ending, and the same meaning.
#define MEMPROF_DETAIL_CUDA_COPY(name, parameters, ...)   \
  MEMPROF_DETAIL_CUDA_CALL(name, parameters, __VA_ARGS__) \
  MEMPROF_DETAIL_CUDA_CALL(name##_ptds, parameters, __VA_ARGS__)

/// One to which the null stream then means another stream.
#define MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(name, parameters, ...)         \
  MEMPROF_DETAIL_CUDA_FUNCTION(int, name, parameters) {                   \
    [[maybe_unused]] constexpr std::uint64_t unnamed = legacy_stream;     \
    return __VA_ARGS__;                                                   \
  }                                                                       \
  MEMPROF_DETAIL_CUDA_FUNCTION(int, name##_ptsz, parameters) {            \
    [[maybe_unused]] constexpr std::uint64_t unnamed = per_thread_stream; \
    return __VA_ARGS__;                                                   \
  }
