// Uses of autograd beyond a training loop: gradients that control the program, gradients of gradients, functions with their own
// backward pass, penalties.

#include <torch_examples/memory_session.hpp>

#include <memprof/record.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <vector>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

double value_of(const torch::Tensor& scalar) { return scalar.item<double>(); }

void show_gradients() {
  const torch::Tensor x = torch::ones({2, 2}, torch::requires_grad());
  const torch::Tensor y = x + 2;
  const torch::Tensor out = (y * y * 3).mean();
  std::cout << y << '\n' << "made by " << y.grad_fn()->name() << '\n';
  out.backward();
  std::cout << x.grad() << '\n';

  // The number of iterations depends on the values.
  const torch::Tensor start = torch::randn(3, torch::requires_grad());
  torch::Tensor doubled = start * 2;
  int turns = 1;
  for (; doubled.norm().item<double>() < 1000; ++turns) doubled = doubled * 2;
  doubled.backward(torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat));
  std::printf("doubled %d times, gradient %.6f\n", turns, value_of(start.grad()[1]));
  {
    const torch::NoGradGuard no_gradients;
    std::printf("recorded: %s, without gradients: %s\n", start.requires_grad() ? "yes" : "no",
                (start * 2).requires_grad() ? "yes" : "no");
  }
  memprof::snapshot("GRADIENTS");
}

/// A critic whose gradient with respect to its input should have a norm of one, as in WGAN-GP.
void penalize_gradients() {
  torch::nn::Sequential critic{torch::nn::Linear{256, 512}, torch::nn::Tanh{}, torch::nn::Linear{512, 1}};
  torch::optim::Adam optimizer{critic->parameters(), torch::optim::AdamOptions(1e-3)};
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor input = torch::randn({128, 256}).requires_grad_();
    const torch::Tensor output = critic->forward(input);
    const torch::Tensor gradient = torch::autograd::grad({output}, {input}, {torch::ones_like(output)}, /*retain_graph=*/true,
                                                         /*create_graph=*/true)[0];
    const torch::Tensor penalty = (gradient.norm(2, /*dim=*/1) - 1).pow(2).mean();
    const torch::Tensor loss = output.mean() + 10 * penalty;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    memprof::snapshot("GRADIENT_PENALTY");
    std::printf("critic, step %d: loss %.6f, penalty %.6f\n", step, value_of(loss), value_of(penalty));
  }
}

/// x W^T + b, with its own backward pass.
class linear_function : public torch::autograd::Function<linear_function> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, const torch::Tensor& weight,
                               const torch::Tensor& bias) {
    context->save_for_backward({input, weight, bias});
    torch::Tensor output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& gradient = gradients[0];
    return {gradient.mm(saved[1]), gradient.t().mm(saved[0]), saved[2].defined() ? gradient.sum(0) : torch::Tensor{}};
  }
};

class multiply : public torch::autograd::Function<multiply> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& tensor, double constant) {
    context->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0] * context->saved_data["constant"].toDouble(), torch::Tensor{}};
  }
};

/// Sparse weights through an L1 penalty, with the functions from above for layers.
void use_custom_functions() {
  const torch::Tensor weight = (0.1 * torch::randn({200, 300})).requires_grad_();
  const torch::Tensor bias = torch::zeros(200, torch::requires_grad());
  torch::optim::SGD optimizer{std::vector<torch::Tensor>{weight, bias}, torch::optim::SGDOptions(0.05)};
  const torch::Tensor input = torch::randn({150, 300});
  const torch::Tensor target = torch::randn({150, 200});
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor output = multiply::apply(linear_function::apply(input, weight, bias), 0.5);
    const torch::Tensor loss = torch::mse_loss(output, target) + 1e-5 * (weight.abs().sum() + bias.abs().sum());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    memprof::snapshot("CUSTOM_FUNCTIONS");
    std::printf("custom functions, step %d: loss %.6f\n", step, value_of(loss));
  }
}

void differentiate(const torch_examples::options& given) {
  const auto session = torch_examples::begin_session(given);
  torch::manual_seed(1);
  show_gradients();
  penalize_gradients();
  use_custom_functions();
}

}  // namespace

int main(int argument_count, char** arguments) { return torch_examples::run(argument_count, arguments, differentiate); }
