#pragma once

#include <memprof/config.hpp>
#include <memprof/core/category.hpp>
#include <memprof/core/requires_grad.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/core/event_sink.hpp>
#include <memprof/core/registry.hpp>

#include <cstdint>
#include <string>
#endif

namespace memprof {

/// What a block is, for reports. Every field may be left out.
struct annotation {
  std::string_view name{};   ///< "transformer.h.0.attn.c_attn.weight"
  std::string_view shape{};  ///< "[768, 2304]"
  std::string_view dtype{};  ///< "float32"
  optional_category category{};
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;
};

#if MEMPROF_ENABLED
inline namespace enabled {

/// Tells what the live block at `pointer` is, in whatever memory space it lives. A category that is told replaces the block's.
///
/// Interns the text, so use a bounded number of different descriptions; takes a lock. An address that is not live is counted in
/// the profile (`unknown_annotations`), not an error. Does nothing while no capture is active.
inline void annotate(const void* pointer, const annotation& told) {
  registry& shared = abi_1::process_registry;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) return;
  if (!detail::is_outside(abi_1::this_thread)) {
    return detail::note_reentrant(shared, abi_1::this_thread.doing.load(std::memory_order_relaxed));
  }
  label description = 0;
  const bool is_graded = told.requires_grad != requires_grad::unknown;
  if (!told.name.empty() || !told.shape.empty() || !told.dtype.empty() || is_graded) {
    const detail::activity_guard hidden{abi_1::this_thread, activity::internal};
    std::string text{told.name};
    text.append(1, '\x1f').append(told.shape).append(1, '\x1f').append(told.dtype);
    if (is_graded) text.append(1, '\x1f').append(to_string(told.requires_grad));
    const detail::lock_guard lock{shared.lock};
    description = abi_1::intern(shared, text);
  }
  detail::record_event(
      {0, reinterpret_cast<std::uintptr_t>(pointer), 0, description, event_kind::annotate, any_space, told.category.tag()});
}

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate(const void*, const annotation&) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof
