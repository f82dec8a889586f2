// A ResNet-18 with frozen weights from a file, and a new last layer that learns two classes.

#include <torch_examples/memory_session.hpp>
#include <torch_examples/shapes_dataset.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

namespace {

namespace nn = torch::nn;

constexpr std::int64_t image_count = 48;
constexpr std::int64_t image_side = 64;
constexpr std::int64_t batch_size = 8;
constexpr std::int64_t epochs = 4;
constexpr std::int64_t feature_count = 512;
constexpr const char* backbone_file = "resnet18_without_last_layer.pt";

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d{nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false)};
}

/// Two convolutions with a shortcut around them.
class blockImpl : public nn::Module {
 public:
  blockImpl(std::int64_t from, std::int64_t to, std::int64_t stride)
      : branch_(convolution(from, to, 3, stride), nn::BatchNorm2d(to), nn::ReLU(nn::ReLUOptions(true)), convolution(to, to, 3, 1),
                nn::BatchNorm2d(to)) {
    register_module("branch", branch_);
    if (stride == 1 && from == to) return;
    shortcut_ = nn::Sequential(convolution(from, to, 1, stride), nn::BatchNorm2d(to));
    register_module("shortcut", shortcut_);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor sum = branch_->forward(x);
    sum += shortcut_.is_empty() ? x : shortcut_->forward(x);
    return sum.relu_();
  }

 private:
  nn::Sequential branch_;
  nn::Sequential shortcut_{nullptr};
};
TORCH_MODULE(block);

/// ResNet-18 up to its 512 features.
nn::Sequential make_backbone() {
  nn::Sequential layers{convolution(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(nn::ReLUOptions(true)),
                        nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1))};
  std::int64_t from = 64;
  for (const std::int64_t to : {64, 128, 256, 512}) {
    layers->push_back(block{from, to, from == to ? 1 : 2});
    layers->push_back(block{to, to, 1});
    from = to;
  }
  layers->push_back(nn::AdaptiveAvgPool2d{1});
  layers->push_back(nn::Flatten{});
  return layers;
}

/// In a real program, weights learned elsewhere; here they are random.
void write_backbone() {
  const nn::Sequential trained = make_backbone();
  torch::save(trained, backbone_file);
}

nn::Sequential load_backbone() {
  nn::Sequential backbone = make_backbone();
  torch::load(backbone, backbone_file);
  for (torch::Tensor& parameter : backbone->parameters()) parameter.set_requires_grad(false);
  backbone->eval();
  return backbone;
}

template <class Loader>
void train(std::int64_t epoch, nn::Sequential& backbone, nn::Linear& head, Loader& loader, torch::optim::Optimizer& optimizer) {
  double loss_sum = 0;
  std::int64_t correct = 0;
  for (const torch::data::Example<>& batch : loader) {
    const torch::Tensor output = head->forward(backbone->forward(batch.data));
    const torch::Tensor loss = torch::cross_entropy_loss(output, batch.target);
    memprof::snapshot("FORWARD_PASS");
    optimizer.zero_grad();
    loss.backward();
    memprof::snapshot("BACKWARD_PASS");
    optimizer.step();
    memprof::snapshot("OPTIMIZER_STEP");
    loss_sum += static_cast<double>(loss.template item<float>() * static_cast<float>(batch.data.size(0)));
    correct += output.argmax(1).eq(batch.target).sum().template item<std::int64_t>();
  }
  std::printf("epoch %lld: mean loss %.6f, accuracy %.3f\n", static_cast<long long>(epoch),
              loss_sum / static_cast<double>(image_count), static_cast<double>(correct) / static_cast<double>(image_count));
}

void learn_with_backbone(const torch_examples::options& given) {
  auto rows = torch_examples::read_index(torch_examples::write_shapes("transfer_shapes", image_count, image_side));
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  write_backbone();
  nn::Sequential backbone = load_backbone();
  nn::Linear head{feature_count, 2};
  torch::optim::Adam optimizer{head->parameters(), torch::optim::AdamOptions(5e-2)};
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      torch_examples::shapes_dataset{std::move(rows)}.map(torch::data::transforms::Stack<>{}),
      torch::data::DataLoaderOptions(batch_size).workers(static_cast<std::size_t>(given.workers)));
  memprof::snapshot("MODEL");
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) train(epoch, backbone, head, *loader, optimizer);
  torch::save(head, "head.pt");
  nn::Linear restored{feature_count, 2};
  torch::load(restored, "head.pt");
  std::printf("the restored head is the same: %s\n", torch::equal(restored->weight, head->weight) ? "yes" : "no");
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, learn_with_backbone); }
