#include <memprof/report/text/quantity.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace memprof_tests::report_text_quantity {

using namespace memprof::detail;

namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t gib = 1024 * mib;

}  // namespace

TEST_CASE("quantity: bytes have three significant digits in a unit that fits") {
  CHECK(short_bytes(std::int64_t{0}) == "0 B");
  CHECK(short_bytes(std::int64_t{512}) == "512 B");
  CHECK(short_bytes(std::int64_t{1023}) == "1023 B");
  CHECK(short_bytes(kib) == "1.00 KiB");
  CHECK(short_bytes(std::int64_t{5000}) == "4.88 KiB");        // 4.8828...
  CHECK(short_bytes(std::int64_t{18'773'504}) == "17.9 MiB");  // 17.9037...
  CHECK(short_bytes(999 * mib) == "999 MiB");
  CHECK(short_bytes(1000 * mib) == "0.977 GiB");  // 0.9765625
  CHECK(short_bytes(1023 * mib) == "0.999 GiB");  // 0.99902...
  CHECK(short_bytes(gib - 1) == "1.00 GiB");
  CHECK(short_bytes(24 * gib) == "24.0 GiB");
  CHECK(short_bytes(std::numeric_limits<std::int64_t>::max()) == "8.00 EiB");
  CHECK(short_bytes(std::numeric_limits<std::int64_t>::min()) == "-8.00 EiB");
}

TEST_CASE("quantity: changes have a sign, but nothing is not signed") {
  CHECK(signed_short_bytes(3 * mib / 2) == "+1.50 MiB");
  CHECK(signed_short_bytes(-3 * mib / 2) == "-1.50 MiB");
  CHECK(signed_short_bytes(std::int64_t{0}) == "0 B");
  CHECK(signed_short_bytes(-0.25) == "0 B");
}

TEST_CASE("quantity: rounding is within half a unit of the third digit, and no text is longer than nine characters") {
  std::mt19937_64 random{4};
  for (int round = 0; round < 20'000; ++round) {
    const auto bytes = static_cast<std::int64_t>((random() >> 1) >> (random() % 63));
    INFO(bytes);
    const std::string text = short_bytes(bytes);
    CHECK(text.size() <= 9);
    const std::string units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    double factor = -1;
    for (int unit = 0; unit < 7; ++unit) {
      if (text.ends_with(units[unit])) factor = std::ldexp(1.0, 10 * unit);  // " B" ends no other one
    }
    const double read = std::stod(text) * factor;
    CHECK(std::abs(read - static_cast<double>(bytes)) <= 0.005 * static_cast<double>(bytes));
    if (bytes < kib) CHECK(text == std::to_string(bytes) + " B");
  }
}

TEST_CASE("quantity: totals show all their digits where the short form does not") {
  CHECK(short_and_exact_bytes(18'513'664) == "17.7 MiB (18,513,664 B)");
  CHECK(short_and_exact_bytes(512) == "512 B");
  CHECK(short_and_exact_bytes(-2048) == "-2.00 KiB (-2,048 B)");
}

TEST_CASE("quantity: times") {
  constexpr std::int64_t second = 1'000'000'000;
  CHECK(short_time(0) == "0 ns");
  CHECK(short_time(999) == "999 ns");
  CHECK(short_time(4'880) == "4.88 us");
  CHECK(short_time(17'900'000) == "17.9 ms");
  CHECK(short_time(999'600'000) == "1.00 s");
  CHECK(short_time(4'210'000'000) == "4.21 s");
  CHECK(short_time(59'940'000'000) == "59.9 s");
  CHECK(short_time(59'960'000'000) == "1 min 00 s");
  CHECK(short_time(125 * second) == "2 min 05 s");
  CHECK(short_time(3600 * second) == "1 h 00 min");
  CHECK(short_time(11'520 * second) == "3 h 12 min");
  CHECK(short_time(187'200 * second) == "2 d 04 h");
  CHECK(short_time(-4'880) == "-4.88 us");
  CHECK(short_time(std::numeric_limits<std::int64_t>::max()) == "106751 d 23 h");
  CHECK(short_time(std::numeric_limits<std::int64_t>::min()) == "-106751 d 23 h");
}

TEST_CASE("quantity: counts and shares") {
  CHECK(grouped(1'234'567) == "1,234,567");
  CHECK(grouped(1, "block", "blocks") == "1 block");
  CHECK(grouped(1000, "block", "blocks") == "1,000 blocks");
  CHECK(short_percent(3, 8) == "37.5 %");
  CHECK(short_percent(8, 8) == "100 %");
  CHECK(short_percent(9996, 10'000) == "100 %");
  CHECK(short_percent(1, 0) == "0.0 %");
  CHECK(short_percent(0, 8) == "0.0 %");
  CHECK(short_percent(1, 10'000) == "< 0.1 %");
  CHECK(short_percent(5, 10'000) == "0.1 %");
}

}  // namespace memprof_tests::report_text_quantity
