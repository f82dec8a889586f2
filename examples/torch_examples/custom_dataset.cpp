// A custom data set: image files and a table of their classes, read by workers.

#include <torch_examples/memory_session.hpp>
#include <torch_examples/shapes_dataset.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

using torch_examples::labelled_path;
using torch_examples::shapes_dataset;

constexpr std::int64_t image_count = 160;
constexpr std::int64_t test_count = 32;
constexpr std::int64_t image_side = 64;
constexpr std::int64_t batch_size = 16;
constexpr std::int64_t epochs = 4;

class networkImpl : public torch::nn::Module {
 public:
  networkImpl() {
    std::int64_t channels = 3;
    for (const std::int64_t width : {16, 32, 64}) {
      features_->push_back(torch::nn::Conv2d{torch::nn::Conv2dOptions(channels, width, 3).padding(1)});
      features_->push_back(torch::nn::ReLU{});
      features_->push_back(torch::nn::MaxPool2d{2});
      channels = width;
    }
    register_module("features", features_);
    register_module("hidden", hidden_);
    register_module("head", head_);
  }

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor x = torch::adaptive_avg_pool2d(features_->forward(images), {4, 4}).flatten(1);
    return torch::log_softmax(head_->forward(torch::relu(hidden_->forward(x))), 1);
  }

 private:
  torch::nn::Sequential features_;
  torch::nn::Linear hidden_{64 * 4 * 4, 128};
  torch::nn::Linear head_{128, 2};
};
TORCH_MODULE(network);

/// One pass over the images; only evaluates if there is no optimizer.
template <class Loader>
void pass(const char* name, network& model, Loader& loader, std::int64_t count, torch::optim::Optimizer* optimizer) {
  const torch::AutoGradMode gradients{optimizer != nullptr};
  model->train(optimizer != nullptr);
  double loss_sum = 0;
  std::int64_t correct = 0;
  for (const torch::data::Example<>& batch : loader) {
    const torch::Tensor output = model->forward(batch.data);
    const torch::Tensor loss = torch::nll_loss(output, batch.target);
    if (optimizer != nullptr) {
      optimizer->zero_grad();
      loss.backward();
      optimizer->step();
    }
    memprof::snapshot(name);
    loss_sum += static_cast<double>(loss.template item<float>() * static_cast<float>(batch.data.size(0)));
    correct += output.argmax(1).eq(batch.target).sum().template item<std::int64_t>();
  }
  std::printf("%s: mean loss %.6f, accuracy %.3f\n", name, loss_sum / static_cast<double>(count),
              static_cast<double>(correct) / static_cast<double>(count));
}

void learn_shapes(const torch_examples::options& given) {
  const auto rows = torch_examples::read_index(torch_examples::write_shapes("shapes", image_count, image_side));
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  const auto options = torch::data::DataLoaderOptions(batch_size).workers(static_cast<std::size_t>(given.workers));
  const auto loader_of = [&](std::vector<labelled_path> part) {
    return torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
        shapes_dataset{std::move(part)}.map(torch::data::transforms::Stack<>{}), options);
  };
  auto training = loader_of({rows.begin() + test_count, rows.end()});
  auto test = loader_of({rows.begin(), rows.begin() + test_count});
  network model;
  torch::optim::Adam optimizer{model->parameters(), torch::optim::AdamOptions(2e-3)};
  memprof::snapshot("MODEL");
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    pass("TRAINING", model, *training, image_count - test_count, &optimizer);
    pass("TEST", model, *test, test_count, nullptr);
  }
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, learn_shapes); }
