#include "captures.hpp"
#include "fault_of.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/library.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <vector>

namespace memprof_tests::torch_no_dispatch_custom_operators {

using Catch::Matchers::ContainsSubstring;

// Operators that are not libtorch's.

namespace {

torch::Tensor doubled(const torch::Tensor& a) {
  const auto scratch = a.clone();
  auto result = torch::empty_like(a);
  auto* const to = result.mutable_data_ptr<float>();
  const auto* const from = scratch.const_data_ptr<float>();
  for (std::int64_t index = 0; index < a.numel(); ++index) to[index] = 2 * from[index];
  return result;
}
std::vector<torch::Tensor> parts(const torch::Tensor& a) { return {a.clone(), a.clone()}; }

template <class Function>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace

TORCH_LIBRARY(memprof_tests, library) {
  library.def("doubled(Tensor a) -> Tensor");
  library.def("parts(Tensor a) -> Tensor[]");
  library.def("elsewhere(Tensor a) -> Tensor");
  library.def("parts_elsewhere(Tensor a) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(memprof_tests, CPU, library) {
  library.impl("doubled", TORCH_FN(doubled));
  library.impl("parts", TORCH_FN(parts));
}

TEST_CASE("torch no_dispatch: the kernel of an unknown operator runs, and what it allocates is recorded") {
  const auto doubled_op = find_operator<torch::Tensor(const torch::Tensor&)>("memprof_tests::doubled");
  const auto parts_op = find_operator<std::vector<torch::Tensor>(const torch::Tensor&)>("memprof_tests::parts");
  auto capture = begin_no_dispatch();
  CHECK(doubled_op.call(torch::full({2}, 3.0F))[1].item<float>() == 6.0F);
  const auto a = torch::ones({1 << 20});
  const auto made = doubled_op.call(a);
  CHECK(made.sizes() == a.sizes());
  CHECK(parts_op.call(a).size() == 2);
  const memprof::profile profile = capture.profile();
  CHECK(estimates_of(profile).empty());
  CHECK(profile.space("cpu").cumulative_current == 2 * 4 * (1 << 20));
  CHECK(profile.space("cpu").cumulative_peak == 4 * 4 * (1 << 20));  // a, made, and both parts
}

TEST_CASE("torch no_dispatch: an operator without a kernel that could run is estimated, counted, and takes a rule in one line") {
  const auto op = find_operator<torch::Tensor(const torch::Tensor&)>("memprof_tests::elsewhere");
  const auto parts_op = find_operator<std::vector<torch::Tensor>(const torch::Tensor&)>("memprof_tests::parts_elsewhere");
  {
    auto capture = begin_no_dispatch();
    const auto a = torch::ones({100});
    for (int call = 0; call < 3; ++call) CHECK(op.call(a).sizes() == a.sizes());
    CHECK_THAT(fault_of([&] { (void)parts_op.call(a); }),
               ContainsSubstring("memprof_tests::parts_elsewhere") &&
                   ContainsSubstring("memprof::register_torch_rule(\"memprof_tests::parts_elsewhere\""));
    const memprof::profile profile = capture.profile();
    REQUIRE(estimates_of(profile).size() == 1);
    CHECK(estimates_of(profile)[0].name == "memprof_tests::elsewhere");
    CHECK(estimates_of(profile)[0].count == 3);
    CHECK(estimates_of(profile)[0].bytes == 3 * 400);
  }
  memprof::register_torch_rule("memprof_tests::elsewhere", [](memprof::torch_call& call) {
    call.returns(call.empty({2, call.tensor(0).numel()}, call.tensor(0), torch::kDouble));
  });
  auto capture = begin_no_dispatch();
  const auto made = op.call(torch::ones({100}));
  CHECK(made.sizes() == std::vector<std::int64_t>{2, 100});
  CHECK(made.scalar_type() == torch::kDouble);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(capture.profile().space("cpu").cumulative_current == 1600);
}

}  // namespace memprof_tests::torch_no_dispatch_custom_operators
