#include "captures.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <optional>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_data_dependent {

using Catch::Matchers::ContainsSubstring;

namespace {

/// Of all rows of an operator.
memprof::assumed_size size_of(const memprof::profile& profile, const std::string& name) {
  memprof::assumed_size sum;
  for (const memprof::assumed_size& row : sizes_of(profile)) {
    if (row.name != name) continue;
    sum.cause = row.cause;
    sum.count += row.count;
    sum.assumed += row.assumed;
    sum.most += row.most;
    sum.bytes += row.bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "torch no_dispatch: sizes that depend on unknown data are the likely ones, or the fraction that is set, and are listed") {
  auto capture = begin_no_dispatch();
  const auto a = torch::randn({200, 1000});
  const auto mask = a > 0;
  CHECK(a.nonzero().sizes() == std::vector<std::int64_t>{200'000, 2});
  CHECK(a.masked_select(mask).numel() == 100'000);
  CHECK(a.index({mask}).numel() == 100'000);
  CHECK(std::get<0>(torch::_unique2(a, true, true, true)).numel() == 200'000);
  memprof::set_torch_selected_fraction(0.25);
  CHECK(a.nonzero().size(0) == 50'000);
  CHECK(a.index({mask}).numel() == 50'000);
  memprof::set_torch_selected_fraction(std::nullopt);
  CHECK_THROWS_AS(memprof::set_torch_selected_fraction(1.5), memprof::error);
  const memprof::profile profile = capture.profile();
  const memprof::assumed_size nonzero = size_of(profile, "aten::nonzero");
  CHECK_THAT(nonzero.cause, ContainsSubstring("depends on data"));
  CHECK(nonzero.count == 2);
  CHECK(nonzero.assumed == 250'000);
  CHECK(nonzero.most == 400'000);
  CHECK(nonzero.bytes == 250'000 * 2 * 8);  // two coordinates each
  CHECK(size_of(profile, "aten::index.Tensor").count == 2);
  CHECK(estimates_of(profile).empty());
  CHECK_FALSE(profile.exact);
}

TEST_CASE("torch no_dispatch: an assumed size is named where the summary says how exact it is") {
  auto capture = begin_no_dispatch();
  const auto a = torch::randn({100, 1000});
  {
    const auto scope = memprof::track_operation<"routing">();
    memprof::set_torch_selected_fraction(0.25);
    (void)a.masked_select(a > 0);
    memprof::set_torch_selected_fraction(std::nullopt);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK_FALSE(profile.exact);
  CHECK_THAT(memprof::to_text(profile, {.columns = 400}),
             ContainsSubstring("not exact: aten::masked_select in routing assumed 25,000 of at most 100,000 results"));
}

TEST_CASE("torch no_dispatch: sizes that depend on known data are true") {
  auto capture = begin_no_dispatch();
  const auto flags = torch::arange(10) % 3 == 0;  // 0, 3, 6, 9
  CHECK(flags.nonzero().size(0) == 4);
  const auto large = torch::randn({10, 50'000});
  CHECK(large.index({flags}).size(0) == 4);
  CHECK(torch::repeat_interleave(torch::tensor({1, 2, 3})).numel() == 6);
  CHECK(large.repeat_interleave(torch::tensor({1, 0, 0, 2, 0, 0, 0, 0, 0, 1}), 0).size(0) == 4);
  CHECK(torch::one_hot(torch::tensor({0, 2, 1})).size(1) == 3);
  CHECK(torch::bincount(torch::tensor({0, 2, 2})).numel() == 3);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(sizes_of(capture.profile()).empty());
  CHECK(capture.profile().exact);
}

}  // namespace memprof_tests::torch_no_dispatch_data_dependent
