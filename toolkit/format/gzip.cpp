#include <memprof/config.hpp>
#include <memprof/toolkit/format/gzip.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::uint32_t crc32(std::string_view bytes) noexcept {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t index = 0; index < 256; ++index) {
      std::uint32_t word = index;
      for (int bit = 0; bit < 8; ++bit) word = (word & 1) != 0 ? 0xEDB88320U ^ (word >> 1) : word >> 1;
      made[index] = word;
    }
    return made;
  }();
  std::uint32_t sum = ~0U;
  for (const char byte : bytes) sum = table[(sum ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (sum >> 8);
  return ~sum;
}

std::string gzip_stored(std::string_view bytes) {
  constexpr std::size_t longest_block = 65535;
  const auto little_endian = [](std::string& out, std::uint64_t value, int size) {
    for (int byte = 0; byte < size; ++byte) out += static_cast<char>(value >> (8 * byte));
  };
  std::string out{"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10};
  std::string_view rest = bytes;
  do {
    const std::string_view block = rest.substr(0, longest_block);
    rest.remove_prefix(block.size());
    out += rest.empty() ? '\1' : '\0';
    little_endian(out, block.size(), 2);
    little_endian(out, ~block.size(), 2);
    out.append(block);
  } while (!rest.empty());
  little_endian(out, crc32(bytes), 4);
  little_endian(out, bytes.size(), 4);
  return out;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
