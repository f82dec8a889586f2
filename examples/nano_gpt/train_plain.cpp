#include <nano_gpt/model.hpp>
#include <nano_gpt/optimizer.hpp>
#include <nano_gpt/progress.hpp>
#include <nano_gpt/train.hpp>

#include <cstdio>
#include <memory_resource>

namespace nano_gpt {

void train(const options& options, const corpus& corpus) {
  std::pmr::memory_resource& memory = *std::pmr::new_delete_resource();
  random_stream random{options.seed};

  gpt<float> model{{corpus.vocabulary_size(), options.seq_len, options.layers, options.heads, options.d_model}, random, &memory};
  adamw<float> optimizer{model.parameters(), &memory};
  std::printf("Number of parameters: %zu\n", model.parameter_count());
  std::fflush(stdout);

  progress progress{options.steps};
  for (std::size_t step = 0; step < options.steps; ++step) {
    const batch batch = corpus.sample(options.batch_size, options.seq_len, random, &memory);
    const float loss = model.forward(batch);
    model.backward();
    optimizer.step();
    optimizer.free_gradients();
    progress.show(loss);
  }
  progress.finish();
}

}  // namespace nano_gpt
