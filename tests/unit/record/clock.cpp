#include <memprof/record/clock.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::record_clock {

TEST_CASE("clock: stamps of one thread never go back and are never 0") {
  memprof::detail::stamp_source stamps;
  std::uint64_t last = stamps.next();
  CHECK(last != 0);
  std::uint64_t wrong = 0;
  for (int index = 0; index < 100'000; ++index) {
    const std::uint64_t next = stamps.next();
    wrong += next < last;
    last = next;
  }
  CHECK(wrong == 0);
}

TEST_CASE("clock: the shared counter gives every stamp once") {
  memprof::detail::stamp_source stamps;
  stamps.chosen.store(memprof::detail::stamp_source::kind::shared_counter);
  std::uint64_t last = stamps.next();
  std::uint64_t wrong = 0;
  for (int index = 0; index < 100'000; ++index) {
    const std::uint64_t next = stamps.next();
    wrong += next <= last;
    last = next;
  }
  CHECK(wrong == 0);
}

}  // namespace memprof_tests::record_clock
