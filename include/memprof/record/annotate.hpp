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

/// Describes the live block at `pointer`, whichever memory space it is in. A category replaces the block's own.
///
/// Interns the text and takes a lock, so use a bounded number of different descriptions. An address that is not live is not an
/// error: the profile counts it in `unknown_annotations`. Does nothing while no capture is active.
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
