#include "training.hpp"

#include <torch/torch.h>

#include <stdexcept>
#include <string>

namespace gpu_accuracy {

const training& find_training(std::string_view name) {
  std::string known;
  for (const training& candidate : trainings) {
    if (candidate.name == name) return candidate;
    known.append(" ").append(candidate.name);
  }
  throw std::invalid_argument{"unknown training '" + std::string{name} + "'; available:" + known};
}

void train(const training& wanted, const std::function<void(std::string_view)>& finished) {
  torch::manual_seed(1);
  torch_gpt::decoder model{wanted.model};
  model->to(at::kCUDA, wanted.dtype);
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-4)};
  finished("MODEL_CREATION");
  constexpr int steps = 3;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor tokens =
        torch::randint(wanted.model.vocabulary, {wanted.batch_size, wanted.model.seq_len}, at::kLong).to(at::kCUDA);
    const at::Tensor loss = model->forward(tokens, tokens);
    finished("FORWARD_PASS");
    optimizer.zero_grad();
    loss.backward();
    finished("BACKWARD_PASS");
    optimizer.step();
    finished("OPTIMIZER_STEP");
  }
}

}  // namespace gpu_accuracy
