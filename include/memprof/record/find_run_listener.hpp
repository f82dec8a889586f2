#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// Asks the library that `memprof run` preloads, if it is there, to listen to this part of the process. Each capture asks when it
/// begins, so nothing has to be exported by the part. Not under the registry's lock: the loader has one of its own.
[[gnu::cold]] inline void find_run_listener() noexcept {
#if defined(__linux__)
  if (std::getenv("RUN_BY_MEMPROF_FOLDER") == nullptr) return;
  const internal_guard hidden;  // the loader allocates where there is no such library
  using listen = void(std::uint32_t layout, std::atomic<const abi_1::run_listener*> * place) noexcept;
  void* const symbol = ::dlsym(RTLD_DEFAULT, "memprof_run_listen");
  if (symbol == nullptr) return;
  listen* ask = nullptr;
  std::memcpy(&ask, &symbol, sizeof symbol);
  ask(registry::current_layout_version, &abi_1::process_run_listener);
#endif
}

}  // namespace memprof::inline MEMPROF_ABI::detail
