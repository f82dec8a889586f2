#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/annotation.hpp>

#if MEMPROF_ENABLED
#include <memprof/record/annotation_event.hpp>

#include <cstdint>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Says what the live block at `pointer` is, in whatever memory space it lives. A category replaces the block's.
///
/// Interns the text, so use a bounded number of different descriptions; takes a lock. An address that is not live is counted in
/// the profile (`unknown_annotations`), not an error. Does nothing while no capture is active.
inline void annotate(const void* pointer, const annotation& description) noexcept {
  detail::record_annotation(reinterpret_cast<std::uintptr_t>(pointer), description);
}

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate(const void*, const annotation&) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
