#define MEMPROF_ENABLED 0
#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

TEST_CASE("torch no_dispatch: compiled out, programs compute as ever") {
  memprof::register_torch_rule("myops::fused", [](memprof::torch_call& call) { call.returns(call.tensor(0)); });
  memprof::set_torch_selected_fraction(0.5);
  memprof::set_torch_read_limit(7);
  memprof::assume_selected(torch::ones({4}, torch::kBool), 0.5);
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cuda"}});
  const memprof::real_scope scope;
  CHECK(torch::ones({4}).sum().item<float>() == 4.0F);
  CHECK(capture.profile().spaces.empty());
}
