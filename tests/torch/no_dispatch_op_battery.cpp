#include "op_battery.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>

TEST_CASE("torch no_dispatch: prints where single operators differ", "[.report]") {
  const auto all = battery::compare_all();
  for (const auto& row : all) {
    const bool same = row.real.totals == row.simulated.totals && row.real.fault.empty() && row.simulated.fault.empty();
    if (same) continue;
    std::printf("%-24s %d net %ld/%ld peak %ld/%ld total %ld/%ld %s %s | %s\n", row.name.c_str(), row.has_backward,
                row.real.totals.net, row.simulated.totals.net, row.real.totals.peak, row.simulated.totals.peak,
                row.real.totals.allocated, row.simulated.totals.allocated, row.real.fault.c_str(), row.simulated.fault.c_str(),
                row.simulated.approximated.c_str());
  }
  long net = 0, peak = 0, equal = 0;
  for (const auto& row : all) {
    net += row.real.totals.net == row.simulated.totals.net;
    peak += row.real.totals.peak == row.simulated.totals.peak;
    equal += row.real.totals == row.simulated.totals;
  }
  std::printf("%zu cases, net equal %ld, peak equal %ld, all equal %ld\n", all.size(), net, peak, equal);
}
