#include <nano_gpt/progress.hpp>
#include <torch_gpt/memory_report.hpp>
#include <torch_gpt/train.hpp>

#include <memprof/backend/torch.hpp>

#include <torch/torch.h>

#include <cstdio>

namespace torch_gpt {

void train(const options& options, const token_text& text) {
  memory_report report{options};
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  decoder model{options.model};
  model->to(options.torch_device());
  memprof::annotate_module(model);
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
  const auto states = memprof::annotate_optimizer(optimizer);
  std::printf("Number of parameters: %lld\n", static_cast<long long>(model->parameter_count()));
  std::fflush(stdout);

  nano_gpt::progress progress{static_cast<std::size_t>(options.steps)};
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const batch batch = text.sample(options.batch_size, options.model.seq_len, options.torch_device());
    const at::Tensor loss = model->forward(batch.tokens, batch.targets);
    memprof::snapshot("FORWARD_PASS");
    optimizer.zero_grad();
    loss.backward();
    memprof::snapshot("BACKWARD_PASS");
    optimizer.step();
    memprof::snapshot("OPTIMIZER_STEP");
    progress.show(loss.item<double>());
  }
  progress.finish();
  report.print();
}

}  // namespace torch_gpt
