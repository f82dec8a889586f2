#include <memprof/config.hpp>
#include <memprof/toolkit/format/quoted_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string quoted(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr std::size_t longest = 64;
  std::string result{'\''};
  for (const char byte : text.substr(0, longest)) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= 0x20 && code != 0x7f) {
      result += byte;
    } else {
      result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
    }
  }
  return result += text.size() > longest ? "...'" : "'";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
