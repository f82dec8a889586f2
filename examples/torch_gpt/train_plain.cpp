#include <nano_gpt/progress.hpp>
#include <torch_gpt/train.hpp>

#include <torch/torch.h>

#include <cstdio>

namespace torch_gpt {

void train(const options& options, const token_text& text) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  decoder model{options.model};
  model->to(options.torch_device());
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
  std::printf("Number of parameters: %lld\n", static_cast<long long>(model->parameter_count()));
  std::fflush(stdout);

  nano_gpt::progress progress{static_cast<std::size_t>(options.steps)};
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const batch batch = text.sample(options.batch_size, options.model.seq_len, options.torch_device());
    const at::Tensor loss = model->forward(batch.tokens, batch.targets);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    progress.show(loss.item<double>());
  }
  progress.finish();
}

}  // namespace torch_gpt
