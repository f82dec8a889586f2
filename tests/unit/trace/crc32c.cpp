#include <memprof/trace/crc32c.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace memprof_tests::trace_crc32c {

using memprof::detail::crc32c;

namespace {

[[nodiscard]] std::vector<unsigned char> mixed_bytes(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  std::uint32_t state = 1;
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>((state = state * 1'664'525 + 1'013'904'223) >> 24);
  return bytes;
}

}  // namespace

TEST_CASE("crc32c: the examples of RFC 3720, B.4, and the check value of the CRC catalogue") {
  std::vector<unsigned char> bytes(32);
  CHECK(crc32c::extend(0, bytes.data(), bytes.size()) == 0x8A9136AA);
  std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0xFF));
  CHECK(crc32c::extend(0, bytes.data(), bytes.size()) == 0x62A8AB43);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  CHECK(crc32c::extend(0, bytes.data(), bytes.size()) == 0x46DD794E);
  std::reverse(bytes.begin(), bytes.end());
  CHECK(crc32c::extend(0, bytes.data(), bytes.size()) == 0x113FDB5C);
  constexpr std::string_view digits = "123456789";
  CHECK(crc32c::extend(0, digits.data(), digits.size()) == 0xE3069283);
}

TEST_CASE("crc32c: with and without the processor's instructions, at every length and from every alignment") {
  const std::vector<unsigned char> bytes = mixed_bytes(5'000);
  for (std::size_t size = 0; size != 3'200; ++size) {
    const unsigned char* const from = bytes.data() + size % 9;
    if (crc32c::extend(7, from, size) != crc32c::extend_portably(7, from, size)) FAIL("they differ at " << size << " bytes");
  }
}

TEST_CASE("crc32c: of parts it is that of the whole") {
  const std::vector<unsigned char> bytes = mixed_bytes(2'400);
  const std::uint32_t whole = crc32c::extend_portably(0, bytes.data(), bytes.size());
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    const std::uint32_t first = crc32c::extend(0, bytes.data(), cut);
    if (crc32c::extend(first, bytes.data() + cut, bytes.size() - cut) != whole) FAIL("they differ when cut at " << cut);
  }
}

}  // namespace memprof_tests::trace_crc32c
