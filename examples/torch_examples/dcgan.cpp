// A generator of digits and a discriminator that learns to distinguish them from MNIST's, trained alternately, with checkpoints.

#include <torch_examples/made_up_images.hpp>
#include <torch_examples/memory_session.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace {

namespace nn = torch::nn;

constexpr const char* data_folder = "mnist_data";
constexpr std::int64_t noise_size = 100;
constexpr std::int64_t batch_size = 32;
constexpr std::int64_t epochs = 2;
constexpr std::size_t examples_per_epoch = 32 * 6;
constexpr std::int64_t steps_between_checkpoints = 5;
constexpr std::int64_t samples_per_checkpoint = 10;

class generatorImpl : public nn::Module {
 public:
  generatorImpl()
      : first_(nn::ConvTranspose2dOptions(noise_size, 128, 4).bias(false)),
        second_(nn::ConvTranspose2dOptions(128, 64, 3).stride(2).padding(1).bias(false)),
        third_(nn::ConvTranspose2dOptions(64, 32, 4).stride(2).padding(1).bias(false)),
        fourth_(nn::ConvTranspose2dOptions(32, 1, 4).stride(2).padding(1).bias(false)),
        first_norm_(128),
        second_norm_(64),
        third_norm_(32) {
    register_module("first", first_);
    register_module("second", second_);
    register_module("third", third_);
    register_module("fourth", fourth_);
    register_module("first_norm", first_norm_);
    register_module("second_norm", second_norm_);
    register_module("third_norm", third_norm_);
  }

  /// Images of 28 x 28 from noise of 1 x 1.
  torch::Tensor forward(const torch::Tensor& noise) {
    torch::Tensor x = torch::relu(first_norm_(first_(noise)));
    x = torch::relu(second_norm_(second_(x)));
    x = torch::relu(third_norm_(third_(x)));
    return torch::tanh(fourth_(x));
  }

 private:
  nn::ConvTranspose2d first_, second_, third_, fourth_;
  nn::BatchNorm2d first_norm_, second_norm_, third_norm_;
};
TORCH_MODULE(generator);

nn::Sequential make_discriminator() {
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 4).stride(2).padding(1).bias(false)), leaky(),
                        nn::Conv2d(nn::Conv2dOptions(32, 64, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(64), leaky(),
                        nn::Conv2d(nn::Conv2dOptions(64, 128, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(128), leaky(),
                        nn::Conv2d(nn::Conv2dOptions(128, 1, 3).bias(false)), nn::Sigmoid());
}

class adversaries {
 public:
  /// A step of the discriminator, then one of the generator.
  void step(const torch::Tensor& real_images) {
    discriminator_->zero_grad();
    const torch::Tensor real_output = discriminator_->forward(real_images).reshape(-1);
    const torch::Tensor real_labels = torch::empty(real_images.size(0)).uniform_(0.8, 1.0);
    const torch::Tensor real_loss = torch::binary_cross_entropy(real_output, real_labels);
    real_loss.backward();

    const torch::Tensor noise = torch::randn({real_images.size(0), noise_size, 1, 1});
    const torch::Tensor fake_images = generator_->forward(noise);
    const torch::Tensor fake_output = discriminator_->forward(fake_images.detach()).reshape(-1);
    const torch::Tensor fake_loss = torch::binary_cross_entropy(fake_output, torch::zeros(real_images.size(0)));
    fake_loss.backward();
    discriminator_optimizer_.step();
    memprof::snapshot("DISCRIMINATOR");

    generator_->zero_grad();
    const torch::Tensor output = discriminator_->forward(fake_images).reshape(-1);
    const torch::Tensor generator_loss = torch::binary_cross_entropy(output, torch::ones(real_images.size(0)));
    generator_loss.backward();
    generator_optimizer_.step();
    memprof::snapshot("GENERATOR");
    std::printf("step %lld: loss of the discriminator %.6f, of the generator %.6f\n", static_cast<long long>(++steps_),
                static_cast<double>((real_loss + fake_loss).item<float>()), static_cast<double>(generator_loss.item<float>()));
    if (steps_ % steps_between_checkpoints == 0) save();
  }

 private:
  void save() {
    torch::save(generator_, "generator.pt");
    torch::save(generator_optimizer_, "generator_optimizer.pt");
    torch::save(discriminator_, "discriminator.pt");
    torch::save(discriminator_optimizer_, "discriminator_optimizer.pt");
    const torch::NoGradGuard no_gradients;
    const torch::Tensor noise = torch::randn({samples_per_checkpoint, noise_size, 1, 1});
    generator_->eval();
    const torch::Tensor samples = generator_->forward(noise);
    generator_->train();
    torch::save((samples + 1.0) / 2.0, "samples_" + std::to_string(++checkpoints_) + ".pt");

    generator restored;
    torch::load(restored, "generator.pt");
    restored->eval();
    std::printf("checkpoint %lld: a restored generator draws the same: %s\n", static_cast<long long>(checkpoints_),
                torch::equal(restored->forward(noise), samples) ? "yes" : "no");
    memprof::snapshot("CHECKPOINT");
  }

  generator generator_;
  nn::Sequential discriminator_ = make_discriminator();
  torch::optim::Adam generator_optimizer_{generator_->parameters(), torch::optim::AdamOptions(2e-4).betas({0.5, 0.999})};
  torch::optim::Adam discriminator_optimizer_{discriminator_->parameters(), torch::optim::AdamOptions(2e-4).betas({0.5, 0.999})};
  std::int64_t steps_ = 0;
  std::int64_t checkpoints_ = 0;
};

void learn_to_draw(const torch_examples::options& given) {
  torch_examples::write_made_up_mnist(data_folder);
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  adversaries both;

  using torch::data::datasets::MNIST;
  auto images = MNIST{data_folder, MNIST::Mode::kTest}  // the smaller set is enough
                    .map(torch::data::transforms::Normalize<>{0.5, 0.5})
                    .map(torch::data::transforms::Stack<>{});
  auto loader =
      torch::data::make_data_loader(std::move(images), torch::data::samplers::SequentialSampler{examples_per_epoch},
                                    torch::data::DataLoaderOptions(batch_size).workers(static_cast<std::size_t>(given.workers)));
  memprof::snapshot("MODELS_AND_DATA");
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const torch::data::Example<>& batch : *loader) both.step(batch.data);
  }
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, learn_to_draw); }
