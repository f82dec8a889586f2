#include <memprof/detail/byte_size.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>

namespace memprof_tests::detail_byte_size {

using memprof::parse_byte_size;

TEST_CASE("byte size: bytes are exact up to 2^63-1") {
  CHECK(parse_byte_size("0") == 0);
  CHECK(parse_byte_size("12884901888") == 12'884'901'888);
  CHECK(parse_byte_size("9223372036854775807") == INT64_MAX);
}

TEST_CASE("byte size: units with a B count in thousands, those with iB in 1024") {
  CHECK(parse_byte_size("12GB") == 12'000'000'000);
  CHECK(parse_byte_size("12GiB") == 12'884'901'888);
  CHECK(parse_byte_size("12 gib") == 12'884'901'888);
  CHECK(parse_byte_size("512B") == 512);
  CHECK(parse_byte_size("3KB") == 3'000);
  CHECK(parse_byte_size("3KiB") == 3'072);
  CHECK(parse_byte_size("7MB") == 7'000'000);
  CHECK(parse_byte_size("7MiB") == 7'340'032);
  CHECK(parse_byte_size("2TB") == 2'000'000'000'000);
  CHECK(parse_byte_size("2TiB") == 2'199'023'255'552);
  CHECK(parse_byte_size("1PiB") == std::int64_t{1} << 50);
  CHECK(parse_byte_size("7.5EiB") == std::int64_t{15} << 59);
  CHECK(parse_byte_size("2EB") == 2'000'000'000'000'000'000);
}

TEST_CASE("byte size: units may be wholly in upper or in lower case, and kilobytes as SI writes them") {
  CHECK(parse_byte_size("25MB") == 25'000'000);
  CHECK(parse_byte_size("25mb") == 25'000'000);
  CHECK(parse_byte_size("25kB") == 25'000);
  CHECK(parse_byte_size("25mib") == 26'214'400);
  CHECK(parse_byte_size("25 MIB") == 26'214'400);
  CHECK(parse_byte_size("25b") == 25);
}

TEST_CASE("byte size: bits are refused, and letters that could be powers of 1000 or of 1024; the message has what to write") {
  const auto fault_of = [](const char* text) -> std::string {
    try {
      return std::to_string(parse_byte_size(text));
    } catch (const memprof::error& fault) {
      return fault.what();
    }
  };
  CHECK(fault_of("25Mb") ==
        "'25Mb' is not a valid size: Mb is a unit of bits; write 25MB (25 * 10^6 bytes) or 25MiB (25 * 2^20)");
  CHECK(fault_of("1.5 Gib") ==
        "'1.5 Gib' is not a valid size: Gib is a unit of bits; write 1.5GB (1.5 * 10^9 bytes) or 1.5GiB (1.5 * 2^30)");
  CHECK(fault_of("3M") == "'3M' is not a valid size: it could be 3MB (3 * 10^6 bytes) or 3MiB (3 * 2^20)");
  CHECK(fault_of("3k") == "'3k' is not a valid size: it could be 3KB (3 * 10^3 bytes) or 3KiB (3 * 2^10)");
  for (const char* const odd : {"1mB", "1Mib", "1miB", "1mIb", "1KiBs"}) CHECK(fault_of(odd).find("is not a valid size") < 20);
}

TEST_CASE("byte size: fractions and exponents are as in analyze_memory.py, rounded to the nearest byte") {
  CHECK(parse_byte_size("1.5e9") == 1'500'000'000);
  CHECK(parse_byte_size("1e9") == 1'000'000'000);
  CHECK(parse_byte_size("1.5GiB") == 1'610'612'736);
  CHECK(parse_byte_size("0.3") == 0);
  CHECK(parse_byte_size("1.7") == 2);
}

TEST_CASE("byte size: what is no size is refused, with the text and how to write it") {
  for (const std::string text : {"", " ", "GB", "-1", "-1GB", "+5", "12G", "12 GBs", "1,5GB", "nan", "inf", "1e400",
                                 "9223372036854775808", "9000000TiB", "12GB ", "0x10", "12GB12"}) {
    INFO("text: '" << text << "'");
    std::string what;
    try {
      (void)parse_byte_size(text);
    } catch (const memprof::error& fault) {
      what = fault.what();
    }
    CHECK(what.find("'" + text + "'") != std::string::npos);
    CHECK(what.find("GiB (12 * 2^30)") != std::string::npos);
  }
}

}  // namespace memprof_tests::detail_byte_size
