#include <memprof/config.hpp>
#include <memprof/toolkit/page/base64.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  for (std::size_t in = 0, to = 0; in < bytes.size(); in += 3, to += 4) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - in, 3);
    std::uint32_t group = 0;
    for (std::size_t byte = 0; byte < 3; ++byte) {
      group = group << 8U | (byte < count ? static_cast<unsigned char>(bytes[in + byte]) : 0U);
    }
    for (std::size_t digit = 0; digit <= count; ++digit) out[to + digit] = digits[group >> (18 - 6 * digit) & 63U];
  }
  return out;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
