#include "captures.hpp"
#include "recorded_events.hpp"

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests::torch_no_dispatch_layouts {

// Tensors of several blocks or of other types of numbers: their kernels run, so their bytes are those of the real ones.

namespace {

/// What `run` allocates, for real and simulated.
template <class Run>
std::pair<recorded::totals, recorded::totals> totals_of_both(Run run) {
  auto& allocations = recorded::cpu_allocations::instance();
  run();
  allocations.start();
  run();
  const auto real = recorded::totals_of(recorded::without_scalars(allocations.stop()));
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  run();
  const auto simulated = recorded::totals_of(recorded::without_scalars(events.so_far()));
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
  return {real, simulated};
}

template <class Run>
void check_equal_bytes(Run run) {
  const auto [real, simulated] = totals_of_both(run);
  INFO("real: net " << real.net << ", peak " << real.peak << ", allocated " << real.allocated << "; simulated: net "
                    << simulated.net << ", peak " << simulated.peak << ", allocated " << simulated.allocated);
  CHECK(simulated == real);
}

/// Forward and backward of `layer`, whose gradient is that of a sum: one number, expanded.
template <class Layer>
void check_training(const torch::Tensor& input, Layer layer) {
  at::set_num_threads(1);
  check_equal_bytes([&] {
    const auto x = input.clone(at::MemoryFormat::Preserve).requires_grad_();
    layer(x).sum().backward();
  });
}

}  // namespace

namespace functional = torch::nn::functional;

TEST_CASE("torch no_dispatch: batch normalisation takes the bytes of its backward pass") {
  for (const auto format : {torch::MemoryFormat::ChannelsLast, torch::MemoryFormat::Contiguous}) {
    check_training(torch::rand({8, 16, 32, 32}).contiguous(format),
                   [](const torch::Tensor& x) { return torch::relu(torch::nn::BatchNorm2d(16)->forward(x)); });
  }
  check_training(torch::rand({300, 300}),
                 [](const torch::Tensor& x) { return torch::relu(torch::nn::BatchNorm1d(300)->forward(x)); });
}

TEST_CASE("torch no_dispatch: attention on the CPU copies a gradient with gaps, and its result has the real strides") {
  const auto attend = [](const torch::Tensor& x) {
    const auto heads = x.view({2, 128, 3, 4, 32}).permute({2, 0, 3, 1, 4});
    return at::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0.0, true);
  };
  check_training(torch::rand({2, 128, 384}), attend);
  check_training(torch::rand({2, 128, 384}), [&](const torch::Tensor& x) { return attend(x).transpose(1, 2).contiguous(); });
  check_training(torch::rand({2, 128, 384}), [&](const torch::Tensor& x) { return attend(x).narrow(3, 0, 16) * 2; });
  // Keys and values of 16 bits are copied as the processor likes them, here in one tile and in several.
  for (const std::int64_t length : {72, 200}) {
    check_training(torch::rand({2, length, 240}).to(torch::kBFloat16), [&](const torch::Tensor& x) {
      const auto heads = x.view({2, length, 3, 5, 16}).permute({2, 0, 3, 1, 4});
      return at::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0.0, true);
    });
  }
  const auto contiguous = torch::rand({2, 4, 128, 32});
  const auto strides_of = [](const torch::Tensor& x) { return at::scaled_dot_product_attention(x, x, x).strides().vec(); };
  const auto real = strides_of(contiguous);
  auto capture = begin_no_dispatch();
  CHECK(strides_of(torch::rand({2, 4, 128, 32})) == real);
}

TEST_CASE("torch no_dispatch: pooling takes the bytes of its copies") {
  const auto image = torch::rand({4, 16, 32, 32});
  const auto last = image.contiguous(torch::MemoryFormat::ChannelsLast);
  const auto volume = torch::rand({2, 8, 16, 16, 16});
  for (const auto& x : {image, last}) {
    check_training(x, [](const torch::Tensor& y) { return torch::max_pool2d(y, 2); });
    check_training(x, [](const torch::Tensor& y) { return torch::avg_pool2d(y, 2); });
    check_training(x, [](const torch::Tensor& y) { return torch::adaptive_avg_pool2d(y, {7, 7}); });
    check_training(x, [](const torch::Tensor& y) { return std::get<0>(torch::adaptive_max_pool2d(y, {7, 7})); });
  }
  check_training(volume, [](const torch::Tensor& x) { return torch::avg_pool3d(x, 2); });
  check_training(volume, [](const torch::Tensor& x) { return std::get<0>(torch::adaptive_max_pool3d(x, {5, 5, 5})); });
  check_training(volume, [](const torch::Tensor& x) { return torch::max_pool3d(x, 2); });
}

TEST_CASE("torch no_dispatch: bags of embeddings take their bytes in every mode") {
  const auto indices = torch::randint(0, 5000, {64, 40});
  for (const std::int64_t mode : {0, 1, 2}) {  // sum, mean, max
    check_training(torch::rand({5000, 32}), [&](const torch::Tensor& weight) {
      return std::get<0>(torch::embedding_bag(weight, indices.flatten(), torch::arange(0, 64 * 40, 40), false, mode));
    });
  }
}

TEST_CASE("torch no_dispatch: the gradient of an image at another resolution may be expanded") {
  const auto image = torch::rand({4, 8, 24, 24});
  const auto double_of = [](auto mode) {
    return functional::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(mode);
  };
  check_training(image, [&](const torch::Tensor& x) { return functional::interpolate(x, double_of(torch::kNearest)); });
  check_training(image, [&](const torch::Tensor& x) {
    return functional::interpolate(x, double_of(torch::kBilinear).align_corners(false));
  });
  check_training(
      image, [&](const torch::Tensor& x) { return functional::interpolate(x, double_of(torch::kBicubic).align_corners(false)); });
  check_training(image, [](const torch::Tensor& x) { return torch::pixel_shuffle(x, 2); });
}

TEST_CASE("torch no_dispatch: an image at another resolution is copied where the kernel does") {
  for (const std::int64_t side : {50, 90}) {
    for (const std::int64_t channels : {2, 6}) {
      for (const auto format : {torch::MemoryFormat::ChannelsLast, torch::MemoryFormat::Contiguous}) {
        const auto image = torch::rand({3, channels, 64, 60}).contiguous(format);
        check_training(image, [&](const torch::Tensor& x) { return torch::upsample_nearest2d(x, {side, side + 6}); });
        check_training(image, [&](const torch::Tensor& x) { return torch::upsample_bilinear2d(x, {side, side + 6}, false); });
      }
    }
  }
  // Too large to be done for real.
  at::set_num_threads(1);
  for (const auto format : {torch::MemoryFormat::ChannelsLast, torch::MemoryFormat::Contiguous}) {
    auto capture = begin_no_dispatch();
    (void)torch::upsample_nearest2d(torch::rand({1, 3, 512, 512}).contiguous(format), {2048, 1024});
    CHECK_FALSE(estimates_of(capture.profile()).empty());
  }
}

TEST_CASE("torch no_dispatch: a selection by several threads holds where each number goes") {
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (const std::int64_t numbers : {20'000, 90'000}) {
      const auto x = torch::rand({numbers});
      check_equal_bytes([&] { (void)torch::masked_select(x * 2, x * 2 == x * 2); });  // all of them, as the simulation assumes
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("torch no_dispatch: the loss of a slice takes the bytes of its copies") {
  const auto targets = torch::randint(0, 100, {4, 63});
  check_training(torch::rand({4, 64, 100}), [&](const torch::Tensor& x) {
    return torch::cross_entropy_loss(x.slice(1, 0, 63).reshape({-1, 100}), targets.flatten());
  });
  check_training(torch::rand({4, 100, 64}),
                 [&](const torch::Tensor& x) { return torch::cross_entropy_loss(x.slice(2, 0, 63), targets); });
  check_training(torch::rand({300, 200}), [&](const torch::Tensor& x) {
    return torch::cross_entropy_loss(x.slice(1, 0, 100), torch::zeros({300}, torch::kLong));
  });
}

TEST_CASE("torch no_dispatch: sparse gradients of an embedding and their steps take their bytes") {
  check_equal_bytes([] {
    torch::nn::Embedding embedding{torch::nn::EmbeddingOptions(5000, 64).sparse(true)};
    torch::optim::SGD optimizer(embedding->parameters(), 0.1);
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      embedding->forward(torch::arange(0, 600, 3)).square().sum().backward();
      optimizer.step();
    }
  });
}

TEST_CASE("torch no_dispatch: products with a sparse matrix take their bytes") {
  const auto indices = torch::stack({torch::arange(100), torch::arange(100)});
  check_equal_bytes([&] {
    const auto sparse = torch::sparse_coo_tensor(indices, torch::ones({100}), {100, 100});
    const auto dense = torch::randn({100, 300}).requires_grad_();
    const auto product = at::_sparse_mm(sparse, dense);
    CHECK(product.sizes() == dense.sizes());
    product.sum().backward();
  });
}

TEST_CASE("torch no_dispatch: what turns into a sparse tensor has as many elements as data that is known") {
  auto capture = begin_no_dispatch();
  CHECK(torch::eye(40).to_sparse()._nnz() == 40);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(capture.profile().exact);
  (void)torch::randn({300, 300}).to_sparse();
  CHECK_FALSE(capture.profile().exact);
}

TEST_CASE("torch no_dispatch: quantized tensors take a byte an element") {
  check_equal_bytes([] {
    const auto dense = torch::rand({300, 400});
    const auto quantized = torch::quantize_per_tensor(dense, 0.1, 0, torch::kQInt8);
    CHECK(quantized.nbytes() == 300 * 400);
    CHECK(quantized.dequantize().sizes() == dense.sizes());
  });
}

TEST_CASE("torch no_dispatch: every strided type of number has its size") {
  auto capture = begin_no_dispatch();
  const at::Tensor complex = torch::ones({10}, torch::kComplexDouble);
  CHECK(capture.profile().space("cpu").cumulative_current == 160);
  const at::Tensor narrow = torch::ones({10}).to(torch::kFloat8_e4m3fn);
  CHECK(capture.profile().space("cpu").cumulative_current == 160 + 10);
  const at::Tensor half = torch::ones({10}, torch::kHalf);
  CHECK(capture.profile().space("cpu").cumulative_current == 160 + 10 + 20);
  CHECK(estimates_of(capture.profile()).empty());
}

}  // namespace memprof_tests::torch_no_dispatch_layouts
