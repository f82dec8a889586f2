#include "captures.hpp"

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_data {

// Programs that touch the bytes of their tensors: zeros are there to read, and what they write stays.

namespace {

/// Without pages of files, as of libtorch's code.
std::int64_t resident_bytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("torch no_dispatch: torch::save writes a model and torch::load reads it") {
  auto capture = begin_no_dispatch();
  torch::nn::Sequential model(torch::nn::Linear(300, 400), torch::nn::BatchNorm1d(400), torch::nn::Linear(400, 3));
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  model->forward(torch::randn({5, 300})).sum().backward();
  optimizer.step();
  std::stringstream stream;
  torch::save(model, stream);
  CHECK(stream.str().size() > (300 + 3) * 400 * sizeof(float));
  torch::nn::Sequential loaded(torch::nn::Linear(300, 400), torch::nn::BatchNorm1d(400), torch::nn::Linear(400, 3));
  torch::load(loaded, stream);
  CHECK(loaded->forward(torch::randn({5, 300})).sizes() == std::vector<std::int64_t>{5, 3});
  std::stringstream states;
  torch::save(optimizer, states);
  torch::load(optimizer, states);
  optimizer.step();
}

TEST_CASE("torch no_dispatch: a saved tensor that has values comes back with them") {
  std::stringstream stream;
  {
    auto capture = begin_no_dispatch();
    torch::save(torch::arange(7), stream);
  }
  torch::Tensor loaded;
  torch::load(loaded, stream);
  CHECK(torch::equal(loaded, torch::arange(7)));
}

TEST_CASE("torch no_dispatch: tensors can be printed") {
  const auto printed = [](const torch::Tensor& tensor) {
    std::ostringstream text;
    text << tensor;
    return text.str();
  };
  const std::string numbers = printed(torch::tensor({1.0, 2.0}));
  auto capture = begin_no_dispatch();
  CHECK(printed(torch::tensor({1.0, 2.0})) == numbers);
  const auto unknown = torch::randn({300, 300});
  CHECK(printed(unknown.narrow(0, 0, 2).narrow(1, 0, 2)) == printed(torch::full({2, 2}, unknown.max().item<float>())));
}

TEST_CASE("torch no_dispatch: accessors and pointers read zeros, and keep what is written") {
  auto capture = begin_no_dispatch();
  auto image = torch::empty({3, 200, 200});
  auto pixels = image.accessor<float, 3>();
  CHECK(pixels[1][2][3] == 0.0F);
  pixels[1][2][3] = 5.0F;
  CHECK(image.data_ptr<float>()[200 * 200 + 2 * 200 + 3] == 5.0F);
  CHECK(image[1][2][3].item<float>() == 5.0F);
  const auto product = torch::relu(image);
  CHECK(product.accessor<float, 3>()[1][2][3] == 0.0F);
}

TEST_CASE("torch no_dispatch: data of the program's own is read where it lies") {
  auto capture = begin_no_dispatch();
  std::vector<float> data{1, 2, 3, 4};
  const auto tensor = torch::from_blob(data.data(), {4});
  CHECK(tensor.sum().item<float>() == 10.0F);
  CHECK((tensor * 2)[3].item<float>() == 8.0F);
  CHECK(tensor.clone()[2].item<float>() == 3.0F);
  CHECK(estimates_of(capture.profile()).empty());
}

TEST_CASE("torch no_dispatch: a part of a large tensor has its nominal value, and takes no memory for the rest") {
  for (const torch::Device device : {torch::Device{torch::kCPU}, torch::Device{torch::kCUDA}}) {
    INFO(device);
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    const std::int64_t before = resident_bytes();
    const auto large = torch::randn({1 << 20, 1 << 10}, device);  // 4 GiB
    const auto number = large.max().item<float>();
    CHECK(large[5].max().item<float>() == number);
    CHECK(std::abs(large[5].slice(0, 0, 10).sum().item<float>() - 10 * number) < 1e-4);
    CHECK((large[5] + large[6]).max().item<float>() == 2 * number);
    CHECK(torch::isfinite(large[7].clone()).all().item<bool>());
    CHECK(resident_bytes() - before < 64 << 20);
  }
}

TEST_CASE("torch no_dispatch: terabytes take no memory, whatever reads them") {
  auto capture = begin_no_dispatch();
  const std::int64_t before = resident_bytes();
  const auto huge = torch::zeros({std::int64_t{1} << 38});
  CHECK(capture.profile().space("cpu").cumulative_current == std::int64_t{1} << 40);
  CHECK(huge.data_ptr<float>()[std::int64_t{1} << 37] == 0.0F);
  const auto sum = (huge + 1).relu().sum();
  CHECK(sum.item<float>() == static_cast<float>(std::int64_t{1} << 38));
  CHECK(resident_bytes() - before < 16 << 20);
}

}  // namespace memprof_tests::torch_no_dispatch_data
