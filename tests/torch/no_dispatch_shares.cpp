#include "captures.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace memprof_tests::torch_no_dispatch_shares {

using Catch::Matchers::ContainsSubstring;

// Sizes that depend on data which is not known: what is likely, and the most that there can be.

namespace {

/// Large enough that nothing is known of it.
torch::Tensor unknown_numbers(const torch::Device& device = torch::kCPU) { return torch::randn({1000, 100}, device); }

std::int64_t selected(const torch::Tensor& mask) { return mask.nonzero().size(0); }

}  // namespace

TEST_CASE("torch no_dispatch: a comparison of numbers holds for half of them") {
  for (const torch::Device device : {torch::Device{torch::kCPU}, torch::Device{torch::kCUDA}}) {
    INFO(device);
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    const auto a = unknown_numbers(device);
    const auto b = unknown_numbers(device);
    CHECK(selected(a > 0) == 50'000);
    CHECK(a.index({a < b}).numel() == 50'000);
    CHECK(a.masked_select(a <= b).numel() == 50'000);
    CHECK(selected((a > 0).logical_and(b > 0)) == 25'000);
    CHECK(selected((a > 0) & (b > 0)) == 25'000);
    CHECK(selected((a > 0) | (b > 0)) == 75'000);
    CHECK(selected(((a > 0) & (b > 0)).logical_not()) == 75'000);
    CHECK(selected(torch::isnan(a)) == 0);
    CHECK(selected(a) == 100'000);
    auto mask = torch::zeros({1000, 100}, torch::TensorOptions(device).dtype(torch::kBool));
    mask |= a > 0;
    CHECK(selected(mask.clone().flatten()) == 50'000);
    CHECK_FALSE(capture.profile().exact);
  }
}

TEST_CASE("torch no_dispatch: uniform numbers are below p with the probability p") {
  auto capture = begin_no_dispatch();
  CHECK(selected(torch::rand({1000, 100}) < 0.15) == 15'000);
  CHECK(selected(torch::rand({1000, 100}) > 0.9) == 10'000);
  CHECK(selected(torch::bernoulli(torch::full({1000, 100}, 0.15)).to(torch::kBool)) == 15'000);
}

TEST_CASE("torch no_dispatch: a size by numbers drawn after others that were not is listed, until the generator is seeded") {
  const auto sizes_after = [](auto&& program) {
    auto capture = begin_no_dispatch();
    torch::manual_seed(1);
    program();
    const auto& profile = capture.profile();
    CHECK(profile.exact == sizes_of(profile).empty());
    return sizes_of(profile);
  };
  const auto select = [] { return torch::rand({100}).gt(0.5).nonzero(); };
  CHECK(sizes_after(select).empty());
  const auto listed = sizes_after([&] {
    const auto large = unknown_numbers();
    CHECK(select().size(0) < 100);
  });
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].name == "aten::nonzero");
  CHECK_THAT(std::string{listed[0].cause}, ContainsSubstring("random numbers, drawn after others"));
  CHECK(sizes_after([&] {
          const auto large = unknown_numbers();
          torch::manual_seed(2);
          (void)select();
        }).empty());
  CHECK(sizes_after([] {  // labels from data rest on no draw
          const auto large = unknown_numbers();
          (void)torch::arange(100).gt(50).nonzero();
        })
            .empty());
  CHECK(sizes_after([] {
          const auto large = unknown_numbers();
          const auto mask = torch::rand({100}) > 0.5;
          (void)large.index({torch::indexing::Slice{}, torch::arange(100)}).t().index({mask});
        }).size() == 1);
}

TEST_CASE("torch no_dispatch: a comparison with indices of n things holds for one in n") {
  for (const torch::Device device : {torch::Device{torch::kCPU}, torch::Device{torch::kCUDA}}) {
    INFO(device);
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    const auto scores = torch::randn({4000, 8}, device);
    CHECK(selected(scores.argmax(1) == 3) == 4000 / 8);
    CHECK(selected(scores.argmax(1) != 3) == 4000 * 7 / 8);
    CHECK(selected(scores.argmax(1) < 2) == 4000 / 4);
    const auto chosen = std::get<1>(scores.topk(2, 1));
    CHECK(selected(chosen == 3) == 2 * 4000 / 8);
    CHECK(selected((chosen == 3).any(1)) == 2 * 4000 / 8);  // the two of a row differ
    CHECK(selected(torch::one_hot(chosen, 8).permute({2, 1, 0})[5]) == 2 * 4000 / 8);
    CHECK(selected(std::get<1>(scores.sort(1)).select(1, 0) == 3) == 4000 / 8);
    CHECK(std::get<0>(torch::_unique2(chosen)).numel() == 8);
    // Too many to be drawn: 16 MiB of integers and more.
    const auto drawn = torch::randint(10, {4'000'000}, torch::TensorOptions(device).dtype(torch::kLong));
    CHECK(selected(drawn == 3) == 400'000);
  }
}

TEST_CASE("torch no_dispatch: experts that take the tokens that are like them take each of them once for each choice") {
  auto capture = begin_no_dispatch();
  constexpr std::int64_t tokens = 4096;
  constexpr std::int64_t experts = 8;
  const auto input = torch::randn({tokens, 256});
  const auto router = torch::randn({256, experts});
  const auto [weights, chosen] = input.matmul(router).softmax(-1).topk(2, -1);
  std::int64_t taken = 0;
  auto output = torch::zeros_like(input);
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const auto places = torch::where(chosen == expert);
    const auto part = input.index({places[0]});
    output.index_add_(0, places[0], part * weights.index({places[0], places[1]}).unsqueeze(1));
    taken += part.size(0);
  }
  CHECK(taken == 2 * tokens);
  const auto rows = sizes_of(capture.profile());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "aten::nonzero");
  CHECK(rows[0].assumed == 2 * tokens);
  CHECK(rows[0].most == 2 * tokens * experts);
  CHECK_THAT(rows[0].cause, ContainsSubstring("likely share"));
}

TEST_CASE("torch no_dispatch: a program says which share of a mask is true") {
  auto capture = begin_no_dispatch();
  const auto a = unknown_numbers();
  auto mask = a > 0;
  memprof::assume_selected(mask, 0.03);
  CHECK(selected(mask) == 3000);
  CHECK(a.index({mask}).numel() == 3000);
  memprof::set_torch_selected_fraction(0.5);
  CHECK(selected(mask) == 3000);
  CHECK(a.index({mask}).numel() == 3000);
  CHECK(selected(a == a) == 50'000);
  memprof::set_torch_selected_fraction(1.0);
  CHECK(selected(a > 0) == 100'000);
  memprof::set_torch_selected_fraction(std::nullopt);
  mask.copy_(a > 1);
  CHECK(selected(mask) == 50'000);
  const auto known = torch::arange(10) > 6;
  memprof::assume_selected(known, 0.0);
  CHECK(selected(known) == 3);
  CHECK_THROWS_AS(memprof::assume_selected(mask, 1.5), memprof::error);
  CHECK_THROWS_AS(memprof::assume_selected(mask, std::nan("")), memprof::error);
  CHECK_THAT(sizes_of(capture.profile())[0].cause, ContainsSubstring("depends on data"));
}

}  // namespace memprof_tests::torch_no_dispatch_shares
