#include <nano_gpt/model.hpp>
#include <nano_gpt/optimizer.hpp>
#include <nano_gpt/progress.hpp>
#include <nano_gpt/train.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>

#include <cstdio>
#include <memory_resource>

namespace nano_gpt {

void train(const options& options, const corpus& corpus) {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  random_stream random{options.seed};

  gpt<float> model{{corpus.vocabulary_size(), options.seq_len, options.layers, options.heads, options.d_model}, random, &memory};
  memprof::snapshot("MODEL_CREATION");
  adamw<float> optimizer{model.parameters(), &memory};
  memprof::snapshot("OPTIMIZER_CREATION");
  std::printf("Number of parameters: %zu\n", model.parameter_count());
  std::fflush(stdout);

  progress progress{options.steps};
  for (std::size_t step = 0; step < options.steps; ++step) {
    const batch batch = corpus.sample(options.batch_size, options.seq_len, random, &memory);
    const float loss = model.forward(batch);
    memprof::snapshot("FORWARD_PASS");
    model.backward();
    memprof::snapshot("BACKWARD_PASS");
    optimizer.step();
    optimizer.free_gradients();
    memprof::snapshot("OPTIMIZER_STEP");
    progress.show(loss);
  }
  progress.finish();
  capture.end();
  memprof::print_memory_usage();
  if (options.json) memprof::write_json(capture.profile(), *options.json);
}

}  // namespace nano_gpt
