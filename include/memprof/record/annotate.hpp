#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/detail/page_array.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/registry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
namespace detail {

/// The text of an annotation as labels keep it: `name\x1fshape\x1fdtype`, with `\x1frequires_grad` if that is known. Takes
/// nothing from `operator new`.
class annotation_text {
 public:
  [[nodiscard]] static bool is_empty(const annotation& description) noexcept {
    return description.name.empty() && description.shape.empty() && description.dtype.empty() && !is_graded(description);
  }

  explicit annotation_text(const annotation& description) noexcept {
    const std::size_t longest = description.name.size() + description.shape.size() + description.dtype.size() + 64;
    if (longest > sizeof near_ && far_.resize(longest)) text_ = far_.data();
    append(description.name, false);
    append(description.shape, true);
    append(description.dtype, true);
    if (is_graded(description)) append(to_string(description.requires_grad), true);
  }

  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

 private:
  [[nodiscard]] static bool is_graded(const annotation& description) noexcept {
    return description.requires_grad != requires_grad::unknown;
  }

  /// Cuts what does not fit: the system had no pages for it.
  void append(std::string_view part, bool is_separated) noexcept {
    const std::size_t room = (far_.empty() ? sizeof near_ : far_.size()) - size_;
    if (is_separated && room != 0) text_[size_++] = '\x1f';
    const std::size_t count = std::min(part.size(), room - (is_separated && room != 0 ? 1 : 0));
    std::copy_n(part.data(), count, text_ + size_);
    size_ += count;
  }

  char near_[512];
  page_array<char> far_;
  char* text_ = near_;
  std::size_t size_ = 0;
};

}  // namespace detail

inline namespace enabled {

/// Says what the live block at `pointer` is, in whatever memory space it lives. A category replaces the block's.
///
/// Interns the text, so use a bounded number of different descriptions; takes a lock. An address that is not live is counted in
/// the profile (`unknown_annotations`), not an error. Does nothing while no capture is active.
inline void annotate(const void* pointer, const annotation& description) noexcept {
  registry& shared = abi_1::process_registry;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) return;
  if (!detail::is_outside(abi_1::this_thread)) {
    return detail::note_reentrant(shared, abi_1::this_thread.doing().load(std::memory_order_relaxed));
  }
  label text = 0;
  if (!detail::annotation_text::is_empty(description)) {
    const detail::control_guard control;
    const detail::annotation_text joined{description};
    text = abi_1::intern(shared, joined.view());
  }
  detail::record_event(
      {0, reinterpret_cast<std::uintptr_t>(pointer), 0, text, event_kind::annotate, any_space, description.category.tag()});
}

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate(const void*, const annotation&) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof
