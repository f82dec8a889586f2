#include "captures.hpp"
#include "models.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch/simulation/composite_overrides.hpp>
#include <memprof/backend/torch/simulation/fake_device.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/profile/fact/device_context.hpp>
#include <memprof/profile/fact/library_workspace.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/fact_table.hpp>

#include <c10/util/Exception.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace memprof_tests::torch_no_dispatch_cuda {

TEST_CASE("torch no_dispatch: a program finds the fake CUDA device during the capture alone") {
  CHECK_FALSE(torch::cuda::is_available());
  {
    auto capture = begin_no_dispatch({.device = memprof::device_preset("gpu-24gb")});
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
    auto capture = begin_no_dispatch({.device = {"cpu"}});
    CHECK_FALSE(torch::cuda::is_available());
  }
}

TEST_CASE("torch no_dispatch: the first operation of a thread may create a tensor on the fake device, which is none elsewhere") {
  const auto create = [] { return torch::empty({256}, torch::kCUDA); };
  {
    auto capture = begin_no_dispatch({.device = memprof::device_preset("gpu-24gb")});
    at::Tensor made;
    std::thread{[&] { made = create(); }}.join();
    CHECK(capture.profile().space("cuda:0").cumulative_current == 1024);
    const memprof::real_scope real;
    CHECK_THROWS_WITH(create(), Catch::Matchers::ContainsSubstring("aten::empty"));
  }
  CHECK_THROWS_WITH(create(), Catch::Matchers::ContainsSubstring("aten::empty"));
  {
    auto capture = begin_no_dispatch({.device = {"cpu"}});
    bool is_refused = false;
    std::thread{[&] {
      try {
        (void)create();
      } catch (const c10::Error&) {
        is_refused = true;
      }
    }}.join();
    CHECK(is_refused);
  }
}

TEST_CASE("torch no_dispatch: a model that moves to CUDA trains there, and all of it is freed") {
  const models::options chosen{.dropout = 0.1};
  memprof::profile profile;
  std::int64_t parameter_bytes = 0;
  {
    auto capture = begin_no_dispatch({.device = {"cuda"}});
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
  CHECK(cuda.anomalies.overlapping_blocks.count == 0);
  CHECK(estimates_of(profile).empty());
}

TEST_CASE("torch no_dispatch: what computes the values of small tensors on CUDA leaves no trace on the CPU") {
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  {
    const auto on_cuda = torch::TensorOptions(torch::kCUDA);
    auto numbers = torch::arange(200, on_cuda.dtype(torch::kFloat));
    numbers = (numbers * 2 + 1).view({10, 20}).softmax(1);
    const auto [values, places] = numbers.topk(3);
    (void)at::linalg_svd(numbers);
    CHECK(numbers.sum().item<float>() > 9.9F);
    CHECK(places[0][0].item<std::int64_t>() == 19);
    const auto unknown = torch::randn({100, 1000}, on_cuda).sum(0);
    (void)(unknown * 2 + 1).sort();
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cpu").anomalies.unmatched_frees.count == 0);
  CHECK(profile.space("cpu").cumulative_peak <= 16);  // numbers that become tensors for a while
  CHECK(profile.space("cuda:0").cumulative_current == 0);
}

TEST_CASE("torch no_dispatch: CUDA counts integers in a histogram, too") {
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  const auto on_cuda = torch::TensorOptions(torch::kCUDA).dtype(torch::kLong);
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{5'000'000}}) {  // the values of the former are known
    const auto counts = torch::histc(torch::randint(10, {count}, on_cuda), 8, 0, 8);
    CHECK(counts.sizes() == std::vector<std::int64_t>{8});
    CHECK(counts.scalar_type() == torch::kLong);
    CHECK(counts.is_cuda());
  }
  CHECK(torch::histc(torch::randn({1000, 1000}, torch::kCUDA), 8).scalar_type() == torch::kFloat);
  REQUIRE(estimates_of(capture.profile()).size() == 1);
  CHECK(estimates_of(capture.profile())[0].name == "aten::histc");
}

TEST_CASE("torch no_dispatch: sparse gradients on CUDA take the bytes that they take on the CPU") {
  const auto train = [](torch::Device device, std::int64_t count, auto layer) {
    auto capture = begin_no_dispatch({.device = {device.is_cuda() ? "cuda" : "cpu"}});
    const auto current = [&] { return capture.profile().space(device.is_cuda() ? "cuda:0" : "cpu").cumulative_current; };
    auto embedding = layer();
    embedding->to(device);
    torch::optim::SGD optimizer(embedding->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::vector<std::int64_t> held;
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      held.push_back(current());
      embedding->forward(torch::arange(count, torch::TensorOptions(device).dtype(torch::kLong)).view({count / 10, 10}))
          .square()
          .sum()
          .backward();
      const torch::Tensor gradient = embedding->weight.grad();
      CHECK(gradient.is_sparse());
      CHECK(gradient.device().type() == device.type());
      CHECK(gradient._values().device().type() == device.type());
      CHECK(gradient._nnz() == count);
      CHECK(gradient.sizes() == std::vector<std::int64_t>{50000, 64});
      held.push_back(current());
      optimizer.step();
      held.push_back(current());
    }
    const torch::Tensor sum = embedding->weight.grad().coalesce();
    CHECK(sum.is_coalesced());
    CHECK(sum.device().type() == device.type());
    CHECK(sum.indices().sizes() == std::vector<std::int64_t>{1, count});
    held.push_back(current());
    return held;
  };
  const auto single = [] { return torch::nn::Embedding{torch::nn::EmbeddingOptions(50000, 64).sparse(true)}; };
  const auto bag = [](auto mode) {
    return [mode] { return torch::nn::EmbeddingBag{torch::nn::EmbeddingBagOptions(50000, 64).sparse(true).mode(mode)}; };
  };
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{3000}}) {  // kernels compute the bytes of the former
    CHECK(train(torch::kCUDA, count, single) == train(torch::kCPU, count, single));
    CHECK(train(torch::kCUDA, count, bag(torch::kSum)) == train(torch::kCPU, count, bag(torch::kSum)));
    CHECK(train(torch::kCUDA, count, bag(torch::kMean)) == train(torch::kCPU, count, bag(torch::kMean)));
  }
}

TEST_CASE("torch no_dispatch: the first product of matrices of a pass takes cuBLAS's workspace, of the device's size") {
  const auto current = [](auto& capture) { return capture.profile().space("cuda:0").cumulative_current; };
  auto device = memprof::device_preset("gpu-141gb");
  auto capture = begin_no_dispatch({.device = device});
  const auto a = torch::ones({8, 8}, torch::kCUDA).requires_grad_();
  CHECK(current(capture) == 512 / 2);
  auto product = torch::mm(a, a);
  CHECK(current(capture) == 2 * 256 + 33'554'432);
  product = torch::mm(a, a);
  CHECK(current(capture) == 2 * 256 + 33'554'432);
  product.backward(torch::ones_like(product));
  CHECK(current(capture) == 3 * 256 + 2 * 33'554'432);
  const auto listed = memprof::rows_of<memprof::library_workspace>(capture.profile().facts);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0] == memprof::library_workspace{"cuda:0", "cuBLAS", 2 * 33'554'432});
  const auto contexts = memprof::rows_of<memprof::device_context>(capture.profile().facts);
  REQUIRE(contexts.size() == 1);
  CHECK(contexts[0].space == "cuda:0");
  CHECK(contexts[0].bytes == 804'061'184);
}

/// What `work` allocates and frees on the fake device.
recorded::changes sequence_of(std::string_view device, const std::function<void()>& work) {
  auto capture = begin_no_dispatch({.device = memprof::device_preset(device)});
  recorded::capture_events events{"cuda:0"};
  work();
  return events.so_far();
}

TEST_CASE("torch no_dispatch: a product with a bias takes cuBLASLt's workspace, as on an H200") {
  const std::int64_t workspace = 33'554'432;
  CHECK(sequence_of("gpu-141gb", [] {
          const torch::NoGradGuard no_gradients;
          const auto x = torch::empty({64, 64}, torch::kCUDA);
          torch::addmm(torch::empty({64}, torch::kCUDA), x, x);
        }) == recorded::changes{16384, 256, 16384, workspace, 1'048'576, -16384, -256, -16384});
}

TEST_CASE("torch no_dispatch: thread blocks of a long reduction hold what they did on an H200") {
  const auto partial = [](std::vector<std::int64_t> sizes, std::vector<std::int64_t> dimensions, at::ScalarType type) {
    const auto made = sequence_of("gpu-141gb", [&] {
      const auto x = torch::empty(sizes, torch::TensorOptions(torch::kCUDA).dtype(type));
      x.sum(dimensions);
    });
    return made.size() < 4 || made[2] < 0 ? recorded::changes{} : recorded::changes{made[2], made[3]};
  };
  using expected = recorded::changes;
  CHECK(partial({2048, 768}, {0}, torch::kFloat) == expected{12'582'912, 24});
  CHECK(partial({2048, 768}, {1}, torch::kFloat).empty());
  CHECK(partial({2048, 768}, {0, 1}, torch::kBFloat16) == expected{768, 4});
  CHECK(partial({16, 3, 224, 224}, {0, 2, 3}, torch::kFloat) == expected{1176, 12});
  CHECK(partial({64, 1024, 1024}, {1}, torch::kFloat) == expected{167'772'160, 2048});
  CHECK(partial({200000, 9}, {0}, torch::kFloat) == expected{56'448, 8});
  CHECK(partial({100000, 32}, {0}, torch::kBFloat16) == expected{1'601'536, 4});
}

TEST_CASE("torch no_dispatch: the device decides how attention is computed") {
  const auto attend = [](std::int64_t heads, std::int64_t key_heads, at::ScalarType type, std::string_view device) {
    return sequence_of(device, [&] {
      const torch::NoGradGuard no_gradients;
      const auto options = torch::TensorOptions(torch::kCUDA).dtype(type);
      const auto q = torch::empty({2, heads, 256, 64}, options);
      const auto k = torch::empty({2, key_heads, 256, 64}, options);
      at::scaled_dot_product_attention(q, k, k, {}, 0.0, true, std::nullopt, heads != key_heads);
    });
  };
  using expected = recorded::changes;
  // Memory-efficient attention: the result alone.
  CHECK(attend(8, 8, torch::kFloat, "gpu-141gb") ==
        expected{1'048'576, 1'048'576, 1'048'576, -1'048'576, -1'048'576, -1'048'576});
  // cuDNN's, on an H200: its generator's state, the result, a workspace.
  if (MEMPROF_TORCH_PREFERS_CUDNN)
    CHECK(attend(8, 8, torch::kHalf, "gpu-141gb") ==
          expected{524'288, 524'288, 8, 8, 524'288, 256, -256, -8, -8, -524'288, -524'288, -524'288});
  // Flash attention before Hopper: the result, sums of rows, the generator's state.
  CHECK(attend(8, 8, torch::kHalf, "gpu-80gb") ==
        expected{524'288, 524'288, 524'288, 16'384, 16, 8, -16'384, -16, -8, -524'288, -524'288, -524'288});
  // No fused kernel shares heads in single precision, so that there are scores: 2 x 8 x 256 x 256 of 4 bytes.
  const auto grouped = attend(8, 2, torch::kFloat, "gpu-141gb");
  CHECK(std::count(grouped.begin(), grouped.end(), 4'194'304) >= 2);
}

TEST_CASE("torch no_dispatch: an operator with a kernel on CUDA is not taken apart there") {
  CHECK(sequence_of("gpu-141gb", [] {
          const auto x = torch::empty({512}, torch::kCUDA).requires_grad_();
          torch::silu(x).backward(torch::empty({512}, torch::kCUDA));
        }) == recorded::changes{2048, 2048, 2048, 2048, -2048, -2048, -2048, -2048});
}

TEST_CASE("torch no_dispatch: fused attention on CUDA holds no scores") {
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  const auto made = torch::TensorOptions(torch::kCUDA).dtype(torch::kBFloat16);
  const auto q = torch::randn({2, 8, 4096, 64}, made).requires_grad_();
  const std::int64_t before = capture.profile().space("cuda:0").cumulative_current;
  const auto output = at::scaled_dot_product_attention(q, q, q, {}, 0.0, true);
  // The output, 4 bytes of log-sum-exp a row, and the state of the random generator.
  CHECK(capture.profile().space("cuda:0").cumulative_current - before == 2 * 8 * 4096 * (64 * 2 + 4) + 3 * 8);
  output.sum().backward();
  CHECK(q.grad().sizes() == q.sizes());
}

/// An allocator of the fake device that counts, with a limit if that is not 0. Requests are rounded to 512 bytes, as a GPU's are.
struct counting_allocator {
  std::map<const void*, std::int64_t> live;
  std::int64_t bytes = 0;
  std::int64_t allocations = 0;
  std::int64_t limit = 0;
  memprof::detail::device_allocator calls{
      this,
      [](void* self, std::int64_t requested, bool, char* message, std::size_t room, std::int64_t* free_bytes) {
        const auto& known = *static_cast<counting_allocator*>(self);
        const std::int64_t left = known.limit - known.bytes;
        if (known.limit == 0 || (requested + 511) / 512 * 512 <= left) return true;
        std::snprintf(message, room, "no room for %lld%%s", static_cast<long long>(requested));
        *free_bytes = left;
        return false;
      },
      [](void* self, const void* address, std::int64_t size, bool) -> memprof::extend::label {
        auto& known = *static_cast<counting_allocator*>(self);
        known.live[address] = size;
        known.bytes += size;
        ++known.allocations;
        return 0;
      },
      [](void* self, const void* address) -> memprof::extend::label {
        auto& known = *static_cast<counting_allocator*>(self);
        const auto block = known.live.find(address);
        CHECK(block != known.live.end());
        if (block == known.live.end()) return 0;
        known.bytes -= block->second;
        known.live.erase(block);
        return 0;
      },
      [](void*) -> std::uint64_t { return 0; },
      [](void*) { return true; },
      [](void*) {}};

  counting_allocator() { memprof::detail::fake_cuda_device.set_allocator(&calls); }
  ~counting_allocator() { memprof::detail::fake_cuda_device.set_allocator(nullptr); }
  counting_allocator(const counting_allocator&) = delete;
  counting_allocator& operator=(const counting_allocator&) = delete;
};

TEST_CASE("torch no_dispatch: an allocator of the fake device hears of each block of its capture") {
  torch::Tensor earlier;
  {
    const counting_allocator device;
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    earlier = torch::empty({1000}, torch::kCUDA);
    CHECK(device.bytes == 4000);
  }
  const counting_allocator device;
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  const auto kept = torch::empty({100}, torch::kCUDA);
  torch::empty({200}, torch::kCUDA);
  earlier.reset();  // counts no longer
  CHECK(device.bytes == 400);
  CHECK(device.bytes == capture.profile().space("cuda:0").cumulative_current);
  CHECK((device.allocations == 2 && device.live.size() == 1));
}

TEST_CASE("torch no_dispatch: a fake device without room fails as its allocator says, and goes on when there is some") {
  counting_allocator device;
  device.limit = 2048;
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  const auto options = torch::TensorOptions(torch::kCUDA).dtype(torch::kByte);
  auto first = torch::empty({1024}, options);
  CHECK_THROWS_WITH(torch::empty({1025}, options), Catch::Matchers::StartsWith("no room for 1025%s"));
  CHECK_THROWS_AS(torch::empty({1025}, options), c10::OutOfMemoryError);
  CHECK_NOTHROW(torch::empty({1024}, options));
  first.reset();
  CHECK_NOTHROW(torch::empty({2048}, options));
}

}  // namespace memprof_tests::torch_no_dispatch_cuda
