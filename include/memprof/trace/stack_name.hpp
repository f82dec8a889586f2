#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/payload.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// @file
/// Stacks in a trace: the label of an allocation is the name of its stack, and these are the texts of such names, as
/// docs/trace_format.md describes them. A stack shares its outer frames with an earlier one and its inner frames with another, so
/// a new one takes some 20 bytes.

namespace memprof::inline MEMPROF_ABI::detail {

/// The place that a function returns to.
struct stack_frame {
  label module = 0;          ///< the name of the file it is in: `module_text`; 0: none, as of code made at run time
  std::uint64_t offset = 0;  ///< as in the file's symbols; of no module: the address

  bool operator==(const stack_frame&) const = default;
};

/// Frames of one stack, at most.
inline constexpr std::size_t max_stack_frames = 64;

/// The outermost or the innermost frames of a stack. 0 frames: none.
struct stack_part {
  label stack = 0;
  std::size_t frames = 0;

  bool operator==(const stack_part&) const = default;
};

/// The number of outer frames that a stack shares is in so many lowest bits, that of inner ones above.
inline constexpr unsigned shared_frames_bits = 7;
static_assert(max_stack_frames < std::size_t{1} << shared_frames_bits);

/// Makes the text of a stack's name without heap memory.
class stack_text {
 public:
  /// The stack begins with these outermost frames, and ends with these innermost ones.
  explicit stack_text(stack_part outer, stack_part inner = {}) noexcept {
    put(outer.frames == 0 ? 0 : outer.stack);
    put(outer.frames | inner.frames << shared_frames_bits);
    if (inner.frames != 0) put(inner.stack);
  }

  /// Adds the next frame inwards of those between. At most `max_stack_frames`.
  void add(stack_frame frame) noexcept {
    const bool is_other_module = frame.module != last_.module;
    const std::uint64_t change = zigzag(static_cast<std::int64_t>((frame.offset & offset_bits) - last_.offset));
    put(change << 1 | (is_other_module ? 1 : 0));
    if (is_other_module) put(frame.module);
    last_ = {frame.module, frame.offset & offset_bits};
  }

  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes_), size_}; }

  /// What is kept of an offset; the kernel's addresses have more.
  static constexpr std::uint64_t offset_bits = (std::uint64_t{1} << 62) - 1;

 private:
  void put(std::uint64_t value) noexcept { size_ = static_cast<std::size_t>(put_varint(bytes_ + size_, value) - bytes_); }

  unsigned char bytes_[(3 + 2 * max_stack_frames) * max_varint_bytes];
  std::size_t size_ = 0;
  stack_frame last_{};
};

/// Reads such a text.
class stack_text_reader {
 public:
  explicit stack_text_reader(std::string_view text) noexcept : in_(text) {
    const std::uint64_t outer = in_.number();
    const std::uint64_t frames = in_.number();
    outer_ = {static_cast<label>(outer), frames & ((1U << shared_frames_bits) - 1)};
    inner_.frames = frames >> shared_frames_bits;
    const std::uint64_t inner = inner_.frames == 0 ? 0 : in_.number();
    inner_.stack = static_cast<label>(inner);
    is_damaged_ = outer > most_label || inner > most_label || inner_.frames > max_stack_frames;
  }

  /// What it has in common with an earlier stack.
  [[nodiscard]] stack_part outer() const noexcept { return outer_; }
  [[nodiscard]] stack_part inner() const noexcept { return inner_; }

  /// The next frame inwards of those between; false at the end, or if the text is damaged.
  [[nodiscard]] bool next(stack_frame& frame) noexcept {
    if (in_.is_at_end()) return false;
    const std::uint64_t change = in_.number();
    const std::uint64_t module = (change & 1) != 0 ? in_.number() : last_.module;
    if (in_.has_failed() || module > most_label) return false;
    last_ = {static_cast<label>(module), last_.offset + static_cast<std::uint64_t>(unzigzag(change >> 1))};
    frame = last_;
    return true;
  }
  [[nodiscard]] bool has_failed() const noexcept { return is_damaged_ || in_.has_failed(); }

 private:
  static constexpr std::uint64_t most_label = 0xFFFF'FFFFU;

  payload_reader in_;
  stack_part outer_;
  stack_part inner_;
  bool is_damaged_ = false;
  stack_frame last_{};
};

/// The text of a module's name: `path\x1fbuild-id\x1faddress`, both in hexadecimal. The address is what was added to the file's
/// own addresses when it was loaded. Where another program has named the calls, the text goes on with
/// `\x1ffunction\x1ffile\x1fline` of each, innermost first, the lines in decimal: it then stands for one return address.
struct module_text {
  std::string_view path;
  std::string_view build_id;  ///< empty: it has none
  std::string_view loaded_at;
  std::string_view calls = {};  ///< what follows: `function\x1ffile\x1fline` of each call; empty: to be looked up

  [[nodiscard]] static module_text of(std::string_view text) noexcept {
    module_text parts;
    for (std::string_view* const part : {&parts.path, &parts.build_id, &parts.loaded_at}) {
      const std::size_t end = text.find(name_separator);
      *part = text.substr(0, end);
      text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    }
    parts.calls = text;
    return parts;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
