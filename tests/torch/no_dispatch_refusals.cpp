#include "captures.hpp"
#include "fault_of.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

using Catch::Matchers::ContainsSubstring;

// Tensors that the simulation cannot stand for: never a wrong number, but a message with what to do.

TEST_CASE("torch no_dispatch refusals: sparse tensors are refused where they are made and where they are used") {
  const at::Tensor from_before = torch::eye(4).to_sparse();
  auto capture = begin_no_dispatch();
  const at::Tensor dense = torch::ones({4, 4});
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, ContainsSubstring("a tensor of layout Sparse has no storage that could be counted") &&
                         ContainsSubstring("use dense tensors in this capture"));
  };
  check(fault_of([&] { (void)torch::mm(from_before, dense); }));
  check(fault_of([&] { (void)torch::sparse_coo_tensor(torch::zeros({2, 3}, torch::kLong), torch::ones({3}), {4, 4}); }));
  torch::nn::Embedding embedding{torch::nn::EmbeddingOptions(10, 3).sparse(true)};
  check(fault_of([&] { embedding->forward(torch::zeros({2}, torch::kLong)).sum().backward(); }));
  CHECK(capture.profile().approximations.empty());
}

TEST_CASE("torch no_dispatch refusals: what changes the layout or the bits of a tensor is not estimated, and takes a rule") {
  auto capture = begin_no_dispatch();
  const at::Tensor dense = torch::ones({4, 4});
  const std::string quantized = fault_of([&] { (void)torch::quantize_per_tensor(dense, 0.1, 0, torch::kQInt8); });
  CHECK_THAT(quantized, ContainsSubstring("nothing is known of the results of 'aten::quantize_per_tensor'") &&
                            ContainsSubstring("memprof::register_torch_rule(\"aten::quantize_per_tensor\""));
  CHECK_THAT(fault_of([&] { (void)dense.to_sparse(); }), ContainsSubstring("nothing is known of the results of 'aten::"));
  CHECK_THAT(fault_of([&] { (void)dense.to_mkldnn(); }),
             ContainsSubstring("nothing is known of the results of 'aten::to_mkldnn'"));
  CHECK(capture.profile().approximations.empty());
  CHECK((dense + dense).sizes() == dense.sizes());  // the program goes on
}

TEST_CASE("torch no_dispatch refusals: every strided type of number has its size") {
  auto capture = begin_no_dispatch();
  const at::Tensor complex = torch::ones({10}, torch::kComplexDouble);
  CHECK(capture.profile().space("cpu").cumulative_current == 160);
  const at::Tensor narrow = torch::ones({10}).to(torch::kFloat8_e4m3fn);
  CHECK(capture.profile().space("cpu").cumulative_current == 160 + 10);
  const at::Tensor half = torch::ones({10}, torch::kHalf);
  CHECK(capture.profile().space("cpu").cumulative_current == 160 + 10 + 20);
  CHECK(capture.profile().approximations.empty());
}
