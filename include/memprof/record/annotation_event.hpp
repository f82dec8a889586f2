#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Describes the live block at `address`, whichever memory space it is in. Takes the registry's lock to intern the text.
inline void record_annotation(std::uint64_t address, const annotation& description) noexcept {
  if (!may_control()) return;
  label text = 0;
  if (!annotation_text::is_empty(description)) {
    const control_guard control;
    text = intern(abi_1::process_registry, annotation_text{description}.view());
  }
  record_event({0, address, 0, text, event_kind::annotate, any_space, description.category.tag()});
}

}  // namespace memprof::inline MEMPROF_ABI::detail
