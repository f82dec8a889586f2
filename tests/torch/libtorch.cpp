#include <memprof/backend/torch/version.hpp>
#include <memprof/memprof.hpp>

#include <ATen/ATen.h>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::torch_libtorch {

TEST_CASE("torch: a program that links memprof::torch computes with tensors") {
  const at::Tensor sum = at::ones({3, 4}).sum();
  CHECK(sum.item<float>() == 12.0F);
}

}  // namespace memprof_tests::torch_libtorch
