#include <nano_gpt/first_iteration.hpp>
#include <nano_gpt/model.hpp>
#include <nano_gpt/optimizer.hpp>
#include <nano_gpt/progress.hpp>
#include <nano_gpt/train.hpp>

#include <memprof/memprof.hpp>

#include <cstdio>
#include <memory_resource>

namespace nano_gpt {

template <class T>
void train(const options& options, const corpus& corpus) {
  memprof::memory_resource memory{options.memory_space()};
  const tensor_memory tensors{&memory, options.device, options.dtype};
  random_stream random{options.seed};

  gpt<T> model{options.model, random, tensors};
  memprof::snapshot("MODEL_CREATION");
  adamw<T> optimizer{model.parameters(), tensors};
  memprof::snapshot("OPTIMIZER_CREATION");
  std::printf("Number of parameters: %zu\n", model.parameter_count());
  std::fflush(stdout);

  progress progress{options.steps};
  const double share = 1.0 / static_cast<double>(options.micro_batches);
  for (std::size_t step = 0; step < options.steps; ++step) {
    batch batch;
    double loss = 0;
    for (std::size_t micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      batch = corpus.sample(options.batch_size, options.model.seq_len, random, tensors);
      loss += share * static_cast<double>(model.forward(batch));
      memprof::snapshot("FORWARD_PASS");
      model.backward(share);
      memprof::snapshot("BACKWARD_PASS");
    }
    optimizer.step();
    optimizer.free_gradients();
    if (options.track_memory && step == 0) print_first_iteration(options);
    memprof::snapshot("OPTIMIZER_STEP");
    progress.show(loss);
  }
  progress.finish();
  if (options.track_memory) return;
  memprof::end_capture();
  memprof::print_memory_usage();
}

template void train<float>(const options&, const corpus&);
template void train<bf16>(const options&, const corpus&);
template void train<fp16>(const options&, const corpus&);

}  // namespace nano_gpt
