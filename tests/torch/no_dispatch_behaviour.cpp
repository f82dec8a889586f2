#include "models.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/core/device_presets.hpp>

#include <ATen/ScalarOps.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using Catch::Matchers::ContainsSubstring;

namespace {

/// The text of the `c10::Error` that `run` throws.
template <class Run>
std::string fault_of(Run run) {
  try {
    run();
  } catch (const c10::Error& thrown) {
    return thrown.what_without_backtrace();
  }
  return "";
}

const memprof::approximated_operation* find(const memprof::profile& profile, const std::string& name) {
  for (const auto& row : profile.approximations) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("torch no_dispatch: tensors have sizes and no data, and views share their bytes") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  const auto a = torch::empty({1000, 1000});
  CHECK(a.device() == torch::kCPU);
  CHECK(a.numel() == 1'000'000);
  CHECK_THROWS_AS(a.data_ptr<float>(), c10::Error);
  const auto view = a.t().narrow(0, 3, 10).view({10, 1000, 1});
  CHECK(view.storage().is_alias_of(a.storage()));
  CHECK(capture.profile().space("cpu").cumulative_current == 4'000'000);
  const auto copy = a.t().contiguous();
  CHECK(capture.profile().space("cpu").cumulative_current == 8'000'000);
}

TEST_CASE("torch no_dispatch: a resize takes the new block before it lets the old one go") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  auto a = torch::empty({1000});
  recorded::capture_events events{"cpu"};
  a.resize_({3000});
  CHECK(events.so_far() == recorded::changes{12000, -4000});
  a.resize_({10});
  CHECK(events.so_far().size() == 2);
  CHECK(a.storage().nbytes() == 12000);
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
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  const auto simulated = results();
  REQUIRE(real.size() == simulated.size());
  for (std::size_t index = 0; index < real.size(); ++index) {
    INFO("result " << index);
    CHECK(simulated[index].sizes() == real[index].sizes());
    CHECK(simulated[index].strides() == real[index].strides());
    CHECK(simulated[index].scalar_type() == real[index].scalar_type());
  }
}

TEST_CASE("torch no_dispatch: torch_backend in the same capture is refused, and leaves nothing attached") {
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  const auto check_refusal = [&](auto begin) {
    std::string said;
    try {
      auto capture = begin();
    } catch (const memprof::error& refusal) {
      said = refusal.what();
    }
    CHECK_THAT(said, ContainsSubstring("give one of torch_backend and torch_no_dispatch"));
    CHECK(c10::GetAllocator(c10::kCPU) == before);
    CHECK(torch::ones({8}).sum().item<float>() == 8.0F);
    CHECK_FALSE(torch::cuda::is_available());
  };
  const memprof::capture_options cuda{.device = {"cuda"}};
  check_refusal([&] { return memprof::begin_capture<memprof::torch_backend, memprof::torch_no_dispatch>(cuda); });
  check_refusal([&] { return memprof::begin_capture<memprof::torch_no_dispatch, memprof::torch_backend>(cuda); });
  {
    auto capture = memprof::begin_capture<memprof::torch_backend>();
    const auto a = torch::ones({8});
    CHECK(capture.profile().space("cpu").cumulative_current == 32);
  }
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  const auto a = torch::ones({8});
  CHECK(capture.profile().space("cpu").cumulative_current == 32);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch no_dispatch: what reads data gets zeros") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  CHECK(torch::ones({1}).item<float>() == 0.0F);
  CHECK(torch::full({}, 7, torch::kLong).item<std::int64_t>() == 0);
  CHECK_FALSE(torch::ones({1}, torch::kBool).item<bool>());
  CHECK_FALSE(torch::ones({1}).is_nonzero());
  const auto a = torch::ones({2, 2});
  CHECK(torch::equal(a, a.view({2, 2})));
  CHECK_FALSE(torch::equal(a, a.t()));
  CHECK_FALSE(torch::equal(a, torch::ones({2, 2})));
}

TEST_CASE("torch no_dispatch: claimed tensors outlive the capture; computing with them is refused with a reason") {
  torch::Tensor kept;
  std::optional<models::gpt> model;
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
    kept = torch::ones({64, 64});
    model.emplace(models::options{});
  }
  CHECK_THAT(fault_of([&] { (void)(kept + 1); }), ContainsSubstring("aten::add") && ContainsSubstring("has ended"));
  CHECK_THAT(fault_of([&] { kept.resize_({128, 128}).zero_(); }), ContainsSubstring("has ended"));
  CHECK(torch::ones({8}).sum().item<float>() == 8.0F);
  // In the next capture they are freed as blocks that were never seen.
  auto next = memprof::begin_capture<memprof::torch_no_dispatch>();
  kept.reset();
  model.reset();
  CHECK(next.profile().space("cpu").anomalies.unmatched_frees.count > 1);
  CHECK(next.profile().space("cpu").deallocations == 0);
}

TEST_CASE("torch no_dispatch: tensors from before the capture keep their data") {
  auto weight = torch::ones({16, 16});
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  auto product = torch::mm(weight, weight);
  weight.add_(1);
  CHECK(capture.profile().space("cpu").cumulative_current == 16 * 16 * 4);
  product.reset();
  capture.end();
  CHECK(weight.sum().item<float>() == 256.0F);
}

TEST_CASE("torch no_dispatch: work in a real_scope is done") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  torch::Tensor loaded;
  const auto claimed = torch::ones({4});
  {
    const memprof::real_scope scope;
    loaded = torch::arange(4);
    CHECK(loaded.sum().item<std::int64_t>() == 6);
    CHECK_THAT(fault_of([&] { (void)(loaded + claimed); }), ContainsSubstring("real_scope"));
  }
  CHECK(loaded.data_ptr<std::int64_t>()[3] == 3);
  CHECK((loaded + claimed).sizes() == loaded.sizes());
  CHECK((loaded + claimed).sum().item<float>() == 0.0F);
}

TEST_CASE("torch no_dispatch: sizes that depend on data are upper bounds, or the fraction that is told, and are listed") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  const auto a = torch::randn({10, 20});
  const auto mask = a > 0;
  CHECK(a.nonzero().sizes() == std::vector<std::int64_t>{200, 2});
  CHECK(a.masked_select(mask).numel() == 200);
  CHECK(a.index({mask}).numel() == 200);
  CHECK(std::get<0>(torch::_unique2(a, true, true, true)).numel() == 200);
  memprof::set_torch_selected_fraction(0.25);
  CHECK(a.nonzero().size(0) == 50);
  CHECK(a.index({mask}).numel() == 50);
  memprof::set_torch_selected_fraction(1.0);
  CHECK_THROWS_AS(memprof::set_torch_selected_fraction(1.5), memprof::error);
  const memprof::profile profile = capture.profile();
  const auto* const nonzero = find(profile, "aten::nonzero");
  REQUIRE(nonzero != nullptr);
  CHECK(nonzero->count == 4);  // two of them asked by the indexing
  CHECK(nonzero->bytes == (200 * 2 + 200 * 2 + 50 * 2 + 50 * 2) * 8);
  CHECK_THAT(nonzero->cause, ContainsSubstring("depends on data"));
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
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
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
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  run();
  CHECK(capture.profile().space("cpu").cumulative_current == 0);
}

// --- operators that are not libtorch's --------------------------------------------------------------------------------

namespace {

torch::Tensor doubled(const torch::Tensor& a) { return a * 2; }
std::vector<torch::Tensor> parts(const torch::Tensor& a) { return {a, a}; }

}  // namespace

TORCH_LIBRARY(memprof_tests, library) {
  library.def("doubled(Tensor a) -> Tensor");
  library.def("parts(Tensor a) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(memprof_tests, CPU, library) {
  library.impl("doubled", TORCH_FN(doubled));
  library.impl("parts", TORCH_FN(parts));
}

TEST_CASE("torch no_dispatch: an unknown operator is estimated by its schema, counted, and takes a rule in one line") {
  const auto doubled_op =
      c10::Dispatcher::singleton().findSchemaOrThrow("memprof_tests::doubled", "").typed<torch::Tensor(const torch::Tensor&)>();
  const auto parts_op = c10::Dispatcher::singleton()
                            .findSchemaOrThrow("memprof_tests::parts", "")
                            .typed<std::vector<torch::Tensor>(const torch::Tensor&)>();
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
    const auto a = torch::ones({100});
    for (int call = 0; call < 3; ++call) CHECK(doubled_op.call(a).sizes() == a.sizes());
    CHECK_THAT(
        fault_of([&] { (void)parts_op.call(a); }),
        ContainsSubstring("memprof_tests::parts") && ContainsSubstring("memprof::register_torch_rule(\"memprof_tests::parts\""));
    const memprof::profile profile = capture.profile();
    REQUIRE(profile.approximations.size() == 1);
    CHECK(profile.approximations[0].name == "memprof_tests::doubled");
    CHECK(profile.approximations[0].count == 3);
    CHECK(profile.approximations[0].bytes == 3 * 400);
  }
  memprof::register_torch_rule("memprof_tests::doubled", [](memprof::torch_call& call) {
    call.returns(call.empty({2, call.tensor(0).numel()}, call.tensor(0), torch::kDouble));
  });
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  const auto made = doubled_op.call(torch::ones({100}));
  CHECK(made.sizes() == std::vector<std::int64_t>{2, 100});
  CHECK(made.scalar_type() == torch::kDouble);
  CHECK(capture.profile().approximations.empty());
  CHECK(capture.profile().space("cpu").cumulative_current == 1600);
}

// --- claimed CUDA -----------------------------------------------------------------------------------------------------

TEST_CASE("torch no_dispatch: a program finds the claimed CUDA device during the capture alone") {
  CHECK_FALSE(torch::cuda::is_available());
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = memprof::device_preset("gpu-24gb")});
    CHECK(torch::cuda::is_available());
    CHECK(torch::cuda::device_count() == 1);
    torch::manual_seed(1);
    torch::cuda::synchronize();
    const auto a = torch::ones({256}, torch::kCUDA);
    CHECK(a.device() == torch::Device(torch::kCUDA, 0));
    const auto b = torch::ones({128}).to(torch::kCUDA);
    CHECK(capture.profile().space("cuda:0").cumulative_current == 1024 + 512);
    CHECK(capture.profile().space("cuda:0").capacity == std::int64_t{24'207} << 20);
    CHECK(capture.profile().space("cpu").cumulative_current == 0);
  }
  CHECK_FALSE(torch::cuda::is_available());
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cpu"}});
    CHECK_FALSE(torch::cuda::is_available());
  }
}

TEST_CASE("torch no_dispatch: a model that moves to CUDA trains there, and all of it is freed") {
  const models::options chosen{.dropout = 0.1};
  memprof::profile profile;
  std::int64_t parameter_bytes = 0;
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cuda"}});
    {
      models::gpt model(chosen);
      for (const auto& parameter : model->parameters()) parameter_bytes += parameter.numel() * 4;
      models::train(model, chosen, {.clips_gradients = true, .device = torch::kCUDA},
                    [](const char* phase) { memprof::snapshot(phase); });
    }
    capture.end();
    profile = capture.profile();
  }
  const auto& cuda = profile.space("cuda:0");
  // Parameters, the mask of the attention, and nothing else.
  CHECK(cuda.segments[0].cumulative_current == parameter_bytes + chosen.context * chosen.context);
  CHECK(profile.space("cpu").segments[0].cumulative_current == 0);
  CHECK(cuda.cumulative_peak > 4 * parameter_bytes);  // with gradients and two moments
  // cuBLAS keeps its workspaces, one for the thread of each pass.
  CHECK(cuda.cumulative_current == 2 * 8'519'680);
  CHECK(profile.approximations.empty());
}

TEST_CASE("torch no_dispatch: the first product of matrices of a pass takes cuBLAS's workspace, of the device's size") {
  const auto current = [](auto& capture) { return capture.profile().space("cuda:0").cumulative_current; };
  auto device = memprof::device_preset("gpu-141gb");
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = device});
  const auto a = torch::ones({8, 8}, torch::kCUDA).requires_grad_();
  CHECK(current(capture) == 512 / 2);
  auto product = torch::mm(a, a);
  CHECK(current(capture) == 2 * 256 + 33'554'432);
  product = torch::mm(a, a);
  CHECK(current(capture) == 2 * 256 + 33'554'432);
  product.backward(torch::ones_like(product));
  CHECK(current(capture) == 3 * 256 + 2 * 33'554'432);
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
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
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

TEST_CASE("torch no_dispatch: fused attention on CUDA holds no scores") {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cuda"}});
  const auto made = torch::TensorOptions(torch::kCUDA).dtype(torch::kBFloat16);
  const auto q = torch::randn({2, 8, 4096, 64}, made).requires_grad_();
  const std::int64_t before = capture.profile().space("cuda:0").cumulative_current;
  const auto output = at::scaled_dot_product_attention(q, q, q, {}, 0.0, true);
  // The output, 4 bytes of log-sum-exp a row, and the state of the random generator.
  CHECK(capture.profile().space("cuda:0").cumulative_current - before == 2 * 8 * 4096 * (64 * 2 + 4) + 3 * 8);
  output.sum().backward();
  CHECK(q.grad().sizes() == q.sizes());
}
