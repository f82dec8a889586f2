#include "captures.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_data_dependent {

using Catch::Matchers::ContainsSubstring;

namespace {

const memprof::approximated_operation* find(const memprof::profile& profile, const std::string& name) {
  for (const auto& row : estimates_of(profile)) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("torch no_dispatch: sizes that depend on unknown data are upper bounds, or the fraction that is set, and are listed") {
  auto capture = begin_no_dispatch();
  const auto a = torch::randn({200, 1000});
  const auto mask = a > 0;
  CHECK(a.nonzero().sizes() == std::vector<std::int64_t>{200'000, 2});
  CHECK(a.masked_select(mask).numel() == 200'000);
  CHECK(a.index({mask}).numel() == 200'000);
  CHECK(std::get<0>(torch::_unique2(a, true, true, true)).numel() == 200'000);
  memprof::set_torch_selected_fraction(0.25);
  CHECK(a.nonzero().size(0) == 50'000);
  CHECK(a.index({mask}).numel() == 50'000);
  memprof::set_torch_selected_fraction(1.0);
  CHECK_THROWS_AS(memprof::set_torch_selected_fraction(1.5), memprof::error);
  const memprof::profile profile = capture.profile();
  const auto* const nonzero = find(profile, "aten::nonzero");
  REQUIRE(nonzero != nullptr);
  CHECK_THAT(nonzero->cause, ContainsSubstring("depends on data"));
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
}

}  // namespace memprof_tests::torch_no_dispatch_data_dependent
