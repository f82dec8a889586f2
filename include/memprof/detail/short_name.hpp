#pragma once

#include <memprof/detail/error.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A name of at most 31 bytes, stored inline so that the enclosing object can be copied as plain bytes.
class short_name {
 public:
  static constexpr std::size_t max_size = 31;

  constexpr short_name() = default;
  /// Implicit, so that a literal can be assigned. Throws `memprof::error` if the text is longer than `max_size`.
  short_name(std::string_view text) : size_(static_cast<unsigned char>(text.size())) {
    if (text.size() > max_size) {
      detail::raise("the name '" + std::string{text} + "' has " + std::to_string(text.size()) + " bytes; use at most " +
                    std::to_string(max_size));
    }
    if (!text.empty()) std::memcpy(text_, text.data(), text.size());
  }
  short_name(const char* text) : short_name(std::string_view{text}) {}

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_, std::size_t{size_}}; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

  bool operator==(const short_name&) const = default;

 private:
  char text_[max_size] = {};
  unsigned char size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI
