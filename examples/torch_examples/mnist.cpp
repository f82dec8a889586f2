// A small convolutional network that learns to read digits.

#include <torch_examples/made_up_images.hpp>
#include <torch_examples/memory_session.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace {

constexpr const char* data_folder = "mnist_data";
constexpr std::int64_t training_batch_size = 64;
constexpr std::int64_t test_batch_size = 500;
constexpr std::int64_t epochs = 2;
constexpr std::size_t examples_per_epoch = 64 * 30;  // of the 60,000
constexpr std::int64_t steps_between_lines = 10;

class networkImpl : public torch::nn::Module {
 public:
  networkImpl()
      : first_(torch::nn::Conv2dOptions(1, 10, 5)),
        second_(torch::nn::Conv2dOptions(10, 20, 5)),
        hidden_(320, 50),
        head_(50, 10) {
    register_module("first", first_);
    register_module("second", second_);
    register_module("dropout", dropout_);
    register_module("hidden", hidden_);
    register_module("head", head_);
  }

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = torch::relu(torch::max_pool2d(first_->forward(images), 2));
    x = torch::relu(torch::max_pool2d(dropout_->forward(second_->forward(x)), 2));
    x = torch::relu(hidden_->forward(x.flatten(1)));
    x = torch::dropout(x, 0.5, is_training());
    return torch::log_softmax(head_->forward(x), 1);
  }

 private:
  torch::nn::Conv2d first_;
  torch::nn::Conv2d second_;
  torch::nn::Dropout2d dropout_;
  torch::nn::Linear hidden_;
  torch::nn::Linear head_;
};
TORCH_MODULE(network);

template <class Loader>
void train(std::int64_t epoch, network& model, Loader& loader, torch::optim::Optimizer& optimizer) {
  model->train();
  std::int64_t step = 0;
  for (const torch::data::Example<>& batch : loader) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nll_loss(model->forward(batch.data), batch.target);
    TORCH_CHECK(!std::isnan(loss.item<float>()), "the loss is not a number");
    memprof::snapshot("FORWARD_PASS");
    loss.backward();
    memprof::snapshot("BACKWARD_PASS");
    optimizer.step();
    memprof::snapshot("OPTIMIZER_STEP");
    if (++step % steps_between_lines == 0) {
      std::printf("epoch %lld, step %lld: loss %.6f\n", static_cast<long long>(epoch), static_cast<long long>(step),
                  static_cast<double>(loss.item<float>()));
    }
  }
}

template <class Loader>
void test(network& model, Loader& loader, std::size_t examples) {
  const torch::NoGradGuard no_gradients;
  model->eval();
  double loss = 0;
  std::int64_t correct = 0;
  for (const torch::data::Example<>& batch : loader) {
    const torch::Tensor output = model->forward(batch.data);
    loss +=
        static_cast<double>(torch::nll_loss(output, batch.target, /*weight=*/{}, torch::Reduction::Sum).template item<float>());
    correct += output.argmax(1).eq(batch.target).sum().template item<std::int64_t>();
  }
  memprof::snapshot("TEST");
  const auto count = static_cast<double>(examples);
  std::printf("test: mean loss %.6f, accuracy %.3f\n", loss / count, static_cast<double>(correct) / count);
}

void learn_digits(const torch_examples::options& given) {
  torch_examples::write_made_up_mnist(data_folder);
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  network model;

  using torch::data::datasets::MNIST;
  const torch::data::transforms::Normalize<> normalize{0.1307, 0.3081};
  auto training_set = MNIST{data_folder}.map(normalize).map(torch::data::transforms::Stack<>{});
  auto training_loader = torch::data::make_data_loader(
      std::move(training_set), torch::data::samplers::SequentialSampler{examples_per_epoch}, training_batch_size);
  auto test_set = MNIST{data_folder, MNIST::Mode::kTest}.map(normalize).map(torch::data::transforms::Stack<>{});
  constexpr std::size_t tested = 2000;
  auto test_loader =
      torch::data::make_data_loader(std::move(test_set), torch::data::samplers::SequentialSampler{tested}, test_batch_size);

  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)};
  memprof::snapshot("MODEL_AND_DATA");
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    train(epoch, model, *training_loader, optimizer);
    test(model, *test_loader, tested);
  }
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, learn_digits); }
