#include <memprof/trace/clock_readings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::trace_clock_readings {

using memprof::extend::clock_readings;

TEST_CASE("clock readings: without any, stamps are nanoseconds; with one, from there on") {
  clock_readings clock;
  CHECK(clock.to_ns(1234) == 1234);
  clock.add(1000, 0);
  CHECK(clock.to_ns(1234) == 234);
  CHECK(clock.to_ns(999) == 0);
}

TEST_CASE("clock readings: without any, times count from the begin of the capture") {
  constexpr std::uint64_t begin = (std::uint64_t{1} << 63) + 5000;  // of a clock that counts from anything
  const clock_readings clock{begin};
  CHECK(clock.to_ns(begin + 140) == 140);
  CHECK(clock.to_ns(begin) == 0);
  CHECK(clock.to_ns(begin - 1) == 0);
}

TEST_CASE("clock readings: between two the line is straight, and behind the last it goes on") {
  clock_readings clock;
  clock.add(1000, 0);
  clock.add(3000, 1000);
  clock.add(4000, 4000);
  CHECK(clock.to_ns(0) == 0);
  CHECK(clock.to_ns(1003) == 1);
  CHECK(clock.to_ns(3000) == 1000);
  CHECK(clock.to_ns(3500) == 2500);
  CHECK(clock.to_ns(5000) == 7000);
  CHECK(clock.last_ns() == 4000);
}

TEST_CASE("clock readings: one that does not come after the last is left out") {
  clock_readings clock;
  clock.add(1000, 0);
  clock.add(2000, 1000);
  clock.add(2000, 5000);  // the same stamp
  clock.add(1500, 9000);
  clock.add(3000, 500);  // time ran backwards
  CHECK(clock.to_ns(3000) == 2000);
}

TEST_CASE("clock readings: stamps from the far future do not overflow") {
  clock_readings clock;
  clock.add(1, 0);
  clock.add(2, 1'000'000'000);
  CHECK(clock.to_ns(~std::uint64_t{0}) == INT64_MAX);
}

TEST_CASE("clock readings: a month of one reading a second takes bounded memory and stays within the drift of a gap") {
  // The rate of the stamps wanders by one part in a million around 2.5 a nanosecond.
  constexpr std::int64_t seconds = 31 * 86'400;
  clock_readings clock;
  std::uint64_t stamp = 1;
  std::size_t bytes_at_start = 0;
  std::int64_t worst = 0;
  for (std::int64_t second = 0; second < seconds; ++second) {
    clock.add(stamp, second * 1'000'000'000);
    if (second == 5000) bytes_at_start = clock.bytes();
    stamp += second % 7200 < 3600 ? 2'500'002'500 : 2'499'997'500;
  }
  CHECK(clock.bytes() == bytes_at_start);
  stamp = 1;
  for (std::int64_t second = 0; second < seconds; ++second) {
    const std::int64_t error = clock.to_ns(stamp) - second * 1'000'000'000;
    worst = error > worst ? error : -error > worst ? -error : worst;
    stamp += second % 7200 < 3600 ? 2'500'002'500 : 2'499'997'500;
  }
  // 2,678,400 readings in at most 4,096: up to 1,310 seconds apart, in which a millionth is 1.31 ms.
  CHECK(worst < 1'310'000);
}

}  // namespace memprof_tests::trace_clock_readings
