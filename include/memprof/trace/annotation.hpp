#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Describes a block for reports. Every field is optional.
struct annotation {
  std::string_view name{};   ///< "transformer.h.0.attn.c_attn.weight"
  std::string_view shape{};  ///< "[768, 2304]"
  std::string_view dtype{};  ///< "float32"
  optional_category category{};
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;
};

namespace detail {

/// An annotation's text as stored in a trace: name, shape and dtype joined by `name_separator`, followed by requires_grad if
/// known. Takes nothing from `operator new`.
class annotation_text {
 public:
  /// Whether there is nothing to record except perhaps a category.
  [[nodiscard]] static bool is_empty(const annotation& source) noexcept {
    return source.name.empty() && source.shape.empty() && source.dtype.empty() && !is_graded(source);
  }

  explicit annotation_text(const annotation& source) noexcept {
    const std::size_t longest = source.name.size() + source.shape.size() + source.dtype.size() + 64;
    if (longest > sizeof near_ && far_.resize(longest)) text_ = far_.data();
    append(source.name);
    append(separator);
    append(source.shape);
    append(separator);
    append(source.dtype);
    if (!is_graded(source)) return;
    append(separator);
    append(to_string(source.requires_grad));
  }
  annotation_text(const annotation_text&) = delete;
  annotation_text& operator=(const annotation_text&) = delete;

  [[nodiscard]] std::string_view view() const noexcept {
    const char* const text = text_;  // exactly these types: others cost the compiler many checks
    return {text, size_};
  }

 private:
  [[nodiscard]] static bool is_graded(const annotation& source) noexcept {
    return source.requires_grad != requires_grad::unknown;
  }

  /// Truncates what does not fit if the system had no pages for it.
  void append(std::string_view part) noexcept {
    const std::size_t room = (far_.empty() ? sizeof near_ : far_.size()) - size_;
    const std::size_t count = part.size() < room ? part.size() : room;
    if (count != 0) std::memcpy(text_ + size_, part.data(), count);
    size_ += count;
  }

  static constexpr std::string_view separator{&name_separator, std::size_t{1}};

  char near_[512];
  page_array<char> far_;
  char* text_ = near_;
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
