// Fits a polynomial of degree four to its values. The loop ends when the loss is small.

#include <torch_examples/memory_session.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t degree = 4;
constexpr std::int64_t batch_size = 32;
constexpr std::int64_t greatest_steps = 2000;

/// Columns x, x^2, x^3, x^4.
torch::Tensor powers_of(const torch::Tensor& x) {
  const torch::Tensor column = x.unsqueeze(1);
  std::vector<torch::Tensor> powers;
  for (std::int64_t power = 1; power <= degree; ++power) powers.push_back(column.pow(power));
  return torch::cat(powers, 1);
}

std::string to_text(const torch::Tensor& weights, const torch::Tensor& bias) {
  const auto values = weights.accessor<float, 1>();
  std::string text = "y =";
  char term[64];
  for (std::int64_t power = degree; power >= 1; --power) {
    std::snprintf(term, sizeof term, " %+.3f x^%lld", static_cast<double>(values[power - 1]), static_cast<long long>(power));
    text += term;
  }
  std::snprintf(term, sizeof term, " %+.3f", static_cast<double>(bias.item<float>()));
  return text + term;
}

void find_polynomial(const torch_examples::options& given) {
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  const torch::Tensor wanted_weights = torch::randn({degree, 1}) * 5;
  const torch::Tensor wanted_bias = torch::randn(1) * 5;
  torch::nn::Linear model{degree, 1};
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1)};

  float loss = 0;
  std::int64_t step = 0;
  do {
    const torch::Tensor x = powers_of(torch::randn(batch_size).clamp(-1.5, 1.5));
    const torch::Tensor y = x.mm(wanted_weights) + wanted_bias;
    optimizer.zero_grad();
    const torch::Tensor output = torch::smooth_l1_loss(model->forward(x), y);
    loss = output.item<float>();
    output.backward();
    optimizer.step();
    memprof::snapshot("STEP");
    if (++step % 200 == 0) std::printf("step %lld: loss %.6f\n", static_cast<long long>(step), static_cast<double>(loss));
  } while (loss > 1e-3F && step < greatest_steps);
  std::printf("loss %.6f after %lld steps\n", static_cast<double>(loss), static_cast<long long>(step));
  std::printf("found:  %s\n", to_text(model->weight.detach().view(-1), model->bias.detach()).c_str());
  std::printf("wanted: %s\n", to_text(wanted_weights.view(-1), wanted_bias).c_str());
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, find_polynomial); }
