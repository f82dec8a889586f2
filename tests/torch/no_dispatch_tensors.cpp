#include "captures.hpp"
#include "fault_of.hpp"
#include "models.hpp"
#include "recorded_events.hpp"

#include <ATen/ScalarOps.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_tensors {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("torch no_dispatch: tensors take no memory, and views share their bytes") {
  auto capture = begin_no_dispatch();
  const auto a = torch::empty({1000, 1000});
  CHECK(a.device() == torch::kCPU);
  CHECK(a.numel() == 1'000'000);
  const auto view = a.t().narrow(0, 3, 10).view({10, 1000, 1});
  CHECK(view.storage().is_alias_of(a.storage()));
  CHECK(capture.profile().space("cpu").cumulative_current == 4'000'000);
  const auto copy = a.t().contiguous();
  CHECK(capture.profile().space("cpu").cumulative_current == 8'000'000);
}

TEST_CASE("torch no_dispatch: a resize takes the new block before it lets the old one go") {
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  auto a = torch::empty({1000});
  a.resize_({3000});
  CHECK(events.so_far() == recorded::changes{4000, 12000, -4000});
  a.resize_({10});
  CHECK(events.so_far().size() == 3);
  CHECK(a.storage().nbytes() == 12000);
}

TEST_CASE("torch no_dispatch: a result takes its bytes, however large it is") {
  constexpr std::int64_t numbers = 17'000'000;  // above the 64 MiB that a kernel on values may take
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  auto empty = torch::empty({0});
  empty.resize_({numbers});
  CHECK(events.so_far() == recorded::changes{4 * numbers});
  const auto absolute = empty.abs();
  CHECK(events.so_far() == recorded::changes{4 * numbers, 4 * numbers});
  CHECK(absolute.storage().nbytes() == 4 * numbers);
  CHECK((absolute.t() + 1).numel() == numbers);
}

TEST_CASE("torch no_dispatch: results have the strides and the type that they have for real") {
  const auto results = [] {
    const auto matrix = torch::ones({4, 6}).t();
    const auto image = torch::ones({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
    const auto gaps = torch::ones({4, 6, 8}).permute({2, 0, 1}).slice(1, 0, 2);
    std::vector<torch::Tensor> made;
    for (const auto& x : {matrix, image, gaps}) {
      made.push_back(torch::relu(x));
      made.push_back(torch::gelu(x));
      made.push_back(torch::empty_like(x));
      made.push_back(torch::where(x > 0, x, x));
      made.push_back(x + 1);
      made.push_back(std::get<0>(torch::native_dropout(x, 0.5, true)));
    }
    // A number takes part in promotion by its kind alone, also where it is a tensor already.
    made.push_back(torch::ones({2}, torch::kInt) * 2.5);
    at::Tensor number = c10::scalar_to_tensor(2.5);
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    made.push_back(torch::ones({2}, torch::kInt) * number);
    made.push_back(torch::ones({2}, torch::kHalf) * torch::ones({2}));
    made.push_back(torch::ones({2}, torch::kInt) / 2);
    made.push_back(torch::ones({2}, torch::kInt).sum());
    return made;
  };
  const auto real = results();
  auto capture = begin_no_dispatch();
  const auto simulated = results();
  REQUIRE(real.size() == simulated.size());
  for (std::size_t index = 0; index < real.size(); ++index) {
    INFO("result " << index);
    CHECK(simulated[index].sizes() == real[index].sizes());
    CHECK(simulated[index].strides() == real[index].strides());
    CHECK(simulated[index].scalar_type() == real[index].scalar_type());
  }
}

TEST_CASE("torch no_dispatch: fake tensors outlive the capture; computing with them is refused with a reason") {
  torch::Tensor kept;
  std::optional<models::gpt> model;
  {
    auto capture = begin_no_dispatch();
    kept = torch::ones({64, 64});
    model.emplace(models::options{});
  }
  CHECK_THAT(fault_of([&] { (void)(kept + 1); }), ContainsSubstring("aten::add") && ContainsSubstring("has ended"));
  CHECK_THAT(fault_of([&] { kept.resize_({128, 128}).zero_(); }), ContainsSubstring("has ended"));
  CHECK(torch::ones({8}).sum().item<float>() == 8.0F);
  // In the next capture they are freed as blocks that were never seen.
  auto next = begin_no_dispatch();
  kept.reset();
  model.reset();
  CHECK(next.profile().space("cpu").anomalies.unmatched_frees.count > 1);
  CHECK(next.profile().space("cpu").deallocations == 0);
}

TEST_CASE("torch no_dispatch: dimensions that are not there are refused as by the kernels") {
  const auto refusals = [] {
    const auto scalar = torch::ones({});
    const auto matrix = torch::ones({4, 4});
    return std::vector<std::string>{
        fault_of([&] { (void)at::unique_dim(scalar, 0); }),
        fault_of([&] { (void)at::pixel_shuffle(matrix, 2); }),
        fault_of([&] { (void)at::pixel_unshuffle(matrix, 2); }),
        fault_of([&] { (void)matrix.repeat({2}); }),
    };
  };
  const auto real = refusals();
  auto capture = begin_no_dispatch();
  const auto simulated = refusals();
  for (std::size_t index = 0; index < real.size(); ++index) {
    INFO("refusal " << index);
    CHECK_FALSE(real[index].empty());
    CHECK(simulated[index] == real[index]);
  }
  CHECK(capture.profile().space("cpu").cumulative_current == 0);
}

TEST_CASE("torch no_dispatch: a tensor without dimensions is unfolded, and its gradient has none") {
  const auto run = [] {
    const auto scalar = torch::ones({}).requires_grad_();
    auto unfolded = scalar.unfold(0, 1, 1);
    CHECK(unfolded.sizes() == std::vector<std::int64_t>{1});
    unfolded.backward(torch::ones({1}));
    CHECK(scalar.grad().sizes().empty());
  };
  run();
  auto capture = begin_no_dispatch();
  run();
  CHECK(capture.profile().space("cpu").cumulative_current == 0);
}

TEST_CASE("torch no_dispatch: a block that is computed again in the backward pass holds less in between") {
  // The usual checkpoint: forward without a graph, and again with one when the gradient comes.
  struct recomputed : torch::autograd::Function<recomputed> {
    static torch::Tensor layer(const torch::Tensor& x) { return torch::gelu(torch::gelu(torch::gelu(x))); }
    static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x) {
      context->save_for_backward({x});
      const torch::NoGradGuard no_graph;
      return layer(x);
    }
    static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::tensor_list gradients) {
      const torch::AutoGradMode with_graph(true);
      const auto x = context->get_saved_variables()[0].detach().requires_grad_();
      layer(x).backward(gradients[0]);
      return {x.grad()};
    }
  };
  constexpr std::int64_t bytes = 1 << 20;
  auto capture = begin_no_dispatch();
  const auto x = torch::randn({bytes / 4}).requires_grad_();
  auto y = recomputed::layer(x);
  CHECK(capture.profile().space("cpu").cumulative_current == 4 * bytes);  // input, two in the graph, result
  y.reset();
  y = recomputed::apply(x);
  CHECK(capture.profile().space("cpu").cumulative_current == 2 * bytes);
  y.backward(torch::ones_like(y));
  CHECK(x.grad().sizes() == x.sizes());
  y.reset();
  CHECK(capture.profile().space("cpu").cumulative_current == 2 * bytes);  // input and gradient
}

}  // namespace memprof_tests::torch_no_dispatch_tensors
