#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/annotation.hpp>

#if MEMPROF_ENABLED
#include <memprof/record/annotation_event.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Describes the live block at `pointer`, whichever memory space it is in. A category replaces the block's own.
///
/// Interns the text and takes a lock, so use a bounded number of different descriptions. An address that is not live is not an
/// error: the profile counts it in `unknown_annotations`. Does nothing while no capture is active.
inline void annotate(const void* pointer, const annotation& description) noexcept {
  detail::record_annotation(reinterpret_cast<std::uintptr_t>(pointer), description);
}

/// Says that the program reads or writes the block that begins at `pointer`: where `capture_options::uses` asks for it, the trace
/// has the moment, and `memprof what-if --free-at-last-use` the answer to how much lower the peak were if each block were freed
/// after the last one. Call it with each access, before or after it. Costs one event, and one load if nothing asks.
inline void mark_use(const void* pointer) noexcept {
  // Relaxed: the barrier in `start_recording` makes it visible.
  if (abi_1::process_registry.uses.load(std::memory_order_relaxed) == 0) return;
  detail::record_event({0, reinterpret_cast<std::uintptr_t>(pointer), 0, 0, extend::event_kind::use, extend::any_space, 0});
}

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate(const void*, const annotation&) noexcept {}
inline void mark_use(const void*) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
