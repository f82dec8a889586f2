#pragma once

#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/succeeds.hpp>
#include <memprof/record/recorder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

/// @file
/// The texts of NVTX's messages.

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

/// A wide string in UTF-8, cut to the 500 bytes or so that suffice for a name; what is no character becomes U+FFFD.
class narrow_text {
 public:
  explicit narrow_text(const wchar_t* wide) noexcept {
    for (; *wide != 0 && size_ + 4 <= text_.size(); ++wide) add(static_cast<std::uint32_t>(*wide));
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  void add(std::uint32_t code) noexcept {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xC0U | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xE0U | code >> 12);
      } else {
        put(0xF0U | code >> 18);
        put(0x80U | (code >> 12 & 0x3FU));
      }
      put(0x80U | (code >> 6 & 0x3FU));
    }
    put(0x80U | (code & 0x3FU));
  }
  void put(std::uint32_t byte) noexcept { text_[size_++] = static_cast<char>(byte); }

  std::array<char, 504> text_;
  std::size_t size_ = 0;
};

/// Strings that the program has registered: a handle is the address of the string, which lives as long as the process.
class registered_strings {
 public:
  /// Null if the system has no memory.
  [[nodiscard]] const std::string* add(std::string_view text) noexcept {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    const std::string* kept = nullptr;
    return succeeds([&] { kept = &*known_.emplace(text).first; }) ? kept : nullptr;
  }
  [[nodiscard]] static std::string_view text_of(string_handle handle) noexcept {
    return *static_cast<const std::string*>(handle);
  }

 private:
  futex_lock lock_;
  std::unordered_set<std::string> known_;
};

[[nodiscard]] inline registered_strings& process_strings() {
  const recording_suppressor hidden;
  static auto* const made = new registered_strings;
  return *made;
}

/// Calls `use(text)` with a message.
template <class Use>
auto with_message(message_type type, message_value message, Use use) {
  using namespace std::string_view_literals;
  if (message.registered == nullptr) return use("(unnamed)"sv);
  switch (type) {
    case message_type::ascii: return use(std::string_view{message.ascii});
    case message_type::registered: return use(registered_strings::text_of(message.registered));
    case message_type::unicode: return use(narrow_text{message.unicode}.view());
    default: return use("(unnamed)"sv);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
