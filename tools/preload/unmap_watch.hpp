#pragma once

#include "unseen.hpp"

#include <memprof/backend/stack_modules.hpp>
#include <memprof/record/process_memory.hpp>
#include <memprof/record/recorder.hpp>

#include <cstddef>
#include <cstdint>

#include <dlfcn.h>

namespace memprof_preload {

/// Where mappings are not recorded: has the process read before the program unmaps much, so that the trace tells how much it held
/// beyond what was recorded, although none of it is there in the end. As rarely as at snapshots.
class unmap_watch {
 public:
  unmap_watch() noexcept
      : own_(memprof::detail::find_module_of(reinterpret_cast<std::uintptr_t>(&own_place))),
        heap_(memprof::detail::find_module_of(reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_NEXT, "malloc")))) {}

  /// Not for an allocator that `malloc` is asked of: it may hold a lock for which that would wait.
  void before_unmap(std::size_t bytes, const void* caller) const noexcept {
    constexpr std::size_t least_bytes = std::size_t{1} << 20;
    if (bytes < least_bytes || memprof::detail::active_capture() == 0 || is_in(own_, caller) || is_in(heap_, caller)) return;
    memprof::detail::read_process_at_snapshot();
  }

 private:
  const memprof::detail::loaded_module own_;   ///< this library
  const memprof::detail::loaded_module heap_;  ///< the library whose `malloc` is recorded
};

}  // namespace memprof_preload
