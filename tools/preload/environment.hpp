#pragma once

#include "unseen.hpp"

#include <memprof/record/options.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

/// @file
/// What the environment says to this library.

extern "C" char** environ;

namespace memprof_preload {

[[nodiscard]] inline const char* own_path() noexcept {
  Dl_info own{};
  return ::dladdr(&own_place, &own) != 0 && own.dli_fname != nullptr ? own.dli_fname : "";
}

inline constexpr char cuda_variable[] = "CUDA_INJECTION64_PATH";
inline constexpr char nvtx_variable[] = "NVTX_INJECTION64_PATH";

/// Whether CUDA's driver, or NVTX, is to load this library.
[[nodiscard]] inline bool is_named_by(const char* variable) noexcept {
  const char* const injected = std::getenv(variable);
  return injected != nullptr && std::strcmp(injected, own_path()) == 0;
}

/// Removes this library from LD_PRELOAD, in place and without `malloc`, so that programs which this one starts do not get it, and
/// from the variables of CUDA's driver and NVTX.
inline void leave_environment() noexcept {
  const char* const path = own_path();
  const std::size_t length = std::strlen(path);
  for (const char* const variable : {cuda_variable, nvtx_variable}) {
    if (is_named_by(variable)) ::unsetenv(variable);
  }
  for (char** each = environ; length != 0 && each != nullptr && *each != nullptr; ++each) {
    if (std::strncmp(*each, "LD_PRELOAD=", 11) != 0) continue;
    char* const found = std::strstr(*each, path);
    if (found == nullptr) return;
    char* end = found + length;
    if (*end == ':' || *end == ' ') ++end;
    std::memmove(found, end, std::strlen(end) + 1);
    return;
  }
}

[[nodiscard]] inline memprof::stack_capture asked_stacks() noexcept {
  const char* const asked = std::getenv("RUN_BY_MEMPROF_STACKS");
  if (asked == nullptr) return memprof::stack_capture::off;
  return std::strcmp(asked, "all") == 0 ? memprof::stack_capture::all : memprof::stack_capture::sampled;
}

}  // namespace memprof_preload
