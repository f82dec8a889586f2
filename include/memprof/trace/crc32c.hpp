#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// The state after each byte, and after it and one to three zero bytes.
struct crc32c_tables {
  std::uint32_t after[4][256];  // not std::array, because the compiler would have to evaluate every access as a call
};

[[nodiscard]] constexpr crc32c_tables make_crc32c_tables() noexcept {
  crc32c_tables made{};
  // The state is linear in the byte: the states of single bits give all others.
  std::uint32_t crc = 1;
  for (std::uint32_t bit = 128; bit != 0; bit >>= 1) {
    crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
    for (std::uint32_t byte = 0; byte < 256; byte += 2 * bit) made.after[0][bit + byte] = made.after[0][byte] ^ crc;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t step = 1; step < 4; ++step) {
      made.after[step][byte] = made.after[0][made.after[step - 1][byte] & 0xFF] ^ made.after[step - 1][byte] >> 8;
    }
  }
  return made;
}

/// CRC-32C (Castagnoli: reflected polynomial 0x82F63B78, initial value and final exclusive-or all ones), as in iSCSI, ext4 and
/// SCTP: RFC 3720, appendix B.4.
class crc32c {
 public:
  /// Extends `before`, the checksum of the preceding bytes (0 if there are none), by more bytes.
  [[nodiscard]] static std::uint32_t extend(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
    const auto* const data = static_cast<const unsigned char*>(bytes);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2")) return ~extend_by_instruction(~before, data, size);
#endif
    return ~extend_by_table(~before, data, size);
  }

  /// The same without hardware support, for tests.
  [[nodiscard]] static std::uint32_t extend_portably(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
    return ~extend_by_table(~before, static_cast<const unsigned char*>(bytes), size);
  }

 private:
#if defined(__x86_64__)
  using two_words = long long __attribute__((vector_size(16)));

  [[nodiscard]] static std::uint64_t word_at(const unsigned char* data) noexcept {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    return word;
  }

  /// The state after n zero bytes; `factor` is x^(8 n - 33) modulo the polynomial, bit-reversed. Gopal et al., "Fast CRC
  /// Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011.
  [[nodiscard, gnu::target("sse4.2,pclmul")]] static std::uint64_t shifted(std::uint64_t crc, long long factor) noexcept {
    const two_words product = __builtin_ia32_pclmulqdq128(two_words{static_cast<long long>(crc), 0}, two_words{factor, 0}, 0);
    return __builtin_ia32_crc32di(0, static_cast<std::uint64_t>(product[0]));
  }

  /// The instruction takes three cycles but one can start every cycle, so three stretches are processed at a time.
  [[nodiscard, gnu::target("sse4.2,pclmul")]] static std::uint32_t extend_by_instruction(std::uint32_t crc,
                                                                                         const unsigned char* data,
                                                                                         std::size_t size) noexcept {
    constexpr std::size_t stretch = 256;
    constexpr long long over_one = 0xB9E02B86;
    constexpr long long over_two = 0xDD7E3B0C;
    std::uint64_t first = crc;
    for (; size >= 3 * stretch; size -= 3 * stretch, data += 3 * stretch) {
      std::uint64_t second = 0;
      std::uint64_t third = 0;
      for (std::size_t offset = 0; offset != stretch; offset += 8) {
        first = __builtin_ia32_crc32di(first, word_at(data + offset));
        second = __builtin_ia32_crc32di(second, word_at(data + stretch + offset));
        third = __builtin_ia32_crc32di(third, word_at(data + 2 * stretch + offset));
      }
      first = shifted(first, over_two) ^ shifted(second, over_one) ^ third;
    }
    for (; size >= 8; size -= 8, data += 8) first = __builtin_ia32_crc32di(first, word_at(data));
    crc = static_cast<std::uint32_t>(first);
    for (; size != 0; --size) crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
  }
#endif

  [[nodiscard]] static std::uint32_t extend_by_table(std::uint32_t crc, const unsigned char* data, std::size_t size) noexcept {
    static constexpr crc32c_tables tables = make_crc32c_tables();
    for (; size >= 4; size -= 4, data += 4) {
      std::uint32_t word;
      std::memcpy(&word, data, 4);
      crc ^= word;
      crc = tables.after[3][crc & 0xFF] ^ tables.after[2][crc >> 8 & 0xFF] ^ tables.after[1][crc >> 16 & 0xFF] ^
            tables.after[0][crc >> 24];
    }
    for (; size != 0; --size) crc = tables.after[0][(crc ^ *data++) & 0xFF] ^ crc >> 8;
    return crc;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
