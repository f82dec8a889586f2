#include <memprof/ledger/linear_fit.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace memprof_tests::ledger_linear_fit {

using memprof::linear_fit;
using memprof::detail::int128;
using memprof::detail::wide_integer;

namespace {

/// The line through points (step, bytes).
linear_fit fit(const std::vector<std::pair<std::uint64_t, std::int64_t>>& points) {
  memprof::detail::exact_fit_steps steps{};
  memprof::detail::exact_fit_sums line{};
  if (!points.empty()) line.first = points.front().second;
  for (const auto& [step, bytes] : points) {
    steps.add(step);
    line.add(bytes, step, steps);
  }
  return line.fit(steps);
}

}  // namespace

TEST_CASE("wide integers: sums, differences and products are exact beyond 128 bits") {
  const int128 large = (int128{1} << 100) + 12345;
  const wide_integer square = wide_integer{large} * wide_integer{large};
  // (a + 1)^2 - a^2 = 2a + 1, of which 200 bits cancel.
  const wide_integer next = wide_integer{large + 1} * wide_integer{large + 1};
  CHECK(next - square == wide_integer{2 * large + 1});
  CHECK(wide_integer{-large} * wide_integer{large} == -square);
  CHECK((wide_integer{5} - wide_integer{7}) == wide_integer{-2});
  CHECK(wide_integer{-2}.is_negative());
  CHECK(wide_integer{-3}.to_double() == -3.0);
  CHECK(wide_integer{int128{1} << 100}.to_double() == 1267650600228229401496703205376.0);
  CHECK((wide_integer{int128{1} << 100} * wide_integer{int128{1} << 100}).to_double() ==
        1267650600228229401496703205376.0 * 1267650600228229401496703205376.0);
}

TEST_CASE("linear fit: points on a line have its slope, and it explains them all") {
  const linear_fit line = fit({{3, 1000}, {4, 1004}, {5, 1008}, {7, 1016}});
  CHECK(line.per_step == 4.0);
  CHECK(line.r_squared == 1.0);
}

TEST_CASE("linear fit: slope and R squared are those of the textbook") {
  // Deviations of the steps are -1.5 -0.5 0.5 1.5, of the bytes -1.75 -0.75 -0.75 3.25: Sxy 7.5, Sxx 5, Syy 14.75.
  const linear_fit line = fit({{1, 2}, {2, 3}, {3, 3}, {4, 7}});
  CHECK(line.per_step == 1.5);
  CHECK(line.r_squared > 0.76271);  // 7.5^2 / (5 * 14.75) = 0.762711...
  CHECK(line.r_squared < 0.76272);
}

TEST_CASE("linear fit: what does not vary lies on a level line, and one step has no slope") {
  CHECK(fit({{0, 7}, {1, 7}, {2, 7}}).per_step == 0.0);
  CHECK(fit({{0, 7}, {1, 7}, {2, 7}}).r_squared == 1.0);
  CHECK(fit({{5, 9}}).per_step == 0.0);
  CHECK(fit({{5, 9}, {5, 10}}).per_step == 0.0);
  CHECK(fit({{5, 9}, {5, 10}}).r_squared == 0.0);
  CHECK(fit({}).per_step == 0.0);
}

TEST_CASE("linear fit: a byte a step is found beside a hundred terabytes that do not grow, over a million steps") {
  memprof::detail::exact_fit_steps steps{};
  memprof::detail::exact_fit_sums line{};
  constexpr std::int64_t base = 100'000'000'000'000;
  line.first = 0;  // the first step, before the model is there
  steps.add(0);
  line.add(0, 0, steps);
  memprof::detail::exact_fit_steps level_steps{};
  memprof::detail::exact_fit_sums level{};
  level.first = base;
  for (std::uint64_t step = 0; step < 1'000'000; ++step) {
    level_steps.add(step);
    level.add(base + static_cast<std::int64_t>(step), step, level_steps);
  }
  CHECK(level.fit(level_steps).per_step == 1.0);
  CHECK(level.fit(level_steps).r_squared == 1.0);

  // One step at 0 and n at `base` with no growth: by hand, slope = 6 base / (n + 2) / (n + 1) for x = 0, 1 ... n.
  constexpr std::uint64_t count = 1'000'000;
  for (std::uint64_t step = 1; step <= count; ++step) {
    steps.add(step);
    line.add(base, step, steps);
  }
  const double expected = 6.0 * static_cast<double>(base) / (static_cast<double>(count + 2) * static_cast<double>(count + 1));
  const double found = line.fit(steps).per_step;
  CHECK(found > expected * (1 - 1e-12));
  CHECK(found < expected * (1 + 1e-12));
}

TEST_CASE("linear fit: the greatest numbers there are do not overflow") {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  const linear_fit up = fit({{0, 0}, {1, greatest}});
  CHECK(up.per_step == static_cast<double>(greatest));
  CHECK(up.r_squared == 1.0);
  const linear_fit down = fit({{0, greatest}, {std::uint64_t{1} << 40, 0}});
  CHECK(down.per_step == -static_cast<double>(greatest) / static_cast<double>(std::uint64_t{1} << 40));
}

}  // namespace memprof_tests::ledger_linear_fit
