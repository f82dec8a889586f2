#include <memprof/ledger/operation_stats.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::ledger_operation_stats {

using memprof::detail::owner_stats;

TEST_CASE("operation stats: values at the last peak are those before the first change after it") {
  owner_stats owner{};
  std::uint64_t epoch = 1;
  owner.change(epoch, 100, 1);
  ++epoch;  // a peak
  CHECK(owner.bytes_at_peak(epoch) == 100);
  owner.change(epoch, -60, 0);
  owner.change(epoch, 5, 1);
  CHECK(owner.live == 45);
  CHECK(owner.bytes_at_peak(epoch) == 100);
  CHECK(owner.blocks_at_peak(epoch) == 1);
  ++epoch;  // the next peak
  CHECK(owner.bytes_at_peak(epoch) == 45);
  CHECK(owner.blocks_at_peak(epoch) == 2);
}

TEST_CASE("operation stats: a correction changes what is live and what was live at the peak") {
  owner_stats owner{};
  owner.change(1, 100, 2);
  owner.correct(2, -30, -1);  // first touch after the peak
  CHECK(owner.live == 70);
  CHECK(owner.bytes_at_peak(2) == 70);
  owner.change(2, -10, -1);
  owner.correct(2, 1, 1);
  CHECK(owner.live == 61);
  CHECK(owner.bytes_at_peak(2) == 71);
  CHECK(owner.blocks_at_peak(2) == 2);
}

}  // namespace memprof_tests::ledger_operation_stats
