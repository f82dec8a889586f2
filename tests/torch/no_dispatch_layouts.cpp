#include "captures.hpp"
#include "recorded_events.hpp"

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

// Tensors of several blocks or of other types of numbers: their kernels run, so their bytes are those of the real ones.

namespace {

/// What `run` allocates, for real and simulated.
template <class Run>
void check_equal_bytes(Run run) {
  auto& allocations = recorded::cpu_allocations::instance();
  run();
  allocations.start();
  run();
  const auto real = recorded::totals_of(recorded::without_scalars(allocations.stop()));
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  run();
  const auto simulated = recorded::totals_of(recorded::without_scalars(events.so_far()));
  CHECK(simulated == real);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

}  // namespace

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
  (void)torch::randn({300, 300}).to_sparse();
  CHECK_FALSE(estimates_of(capture.profile()).empty());
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
