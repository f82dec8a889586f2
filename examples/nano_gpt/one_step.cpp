#include <nano_gpt/one_step.hpp>

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/element.hpp>
#include <nano_gpt/model.hpp>
#include <nano_gpt/optimizer.hpp>
#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/tensor_memory.hpp>

#include <memprof/detail/error.hpp>
#include <memprof/memprof.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>

namespace nano_gpt {
namespace {

batch random_batch(const options& options, random_stream& random, const tensor_memory& memory) {
  const auto scope = memprof::track_operation<"batch">(memprof::category::input);
  const extents shape{options.batch_size, options.model.seq_len};
  batch result{{shape, memory}, {shape, memory}};
  if (!memprof::dispatching()) return result;
  for (tensor<std::int32_t>* const part : {&result.tokens, &result.targets}) {
    for (std::int32_t& token : part->elements()) token = static_cast<std::int32_t>(random.below(options.model.vocabulary_size));
  }
  return result;
}

template <class T>
void run(const options& options, double learning_rate) {
  memprof::memory_resource memory{options.memory_space()};
  const tensor_memory tensors{&memory, options.device, options.dtype};
  random_stream random{options.seed};

  gpt<T> model{options.model, random, tensors};
  memprof::snapshot("MODEL_CREATION");
  adamw<T> optimizer{model.parameters(), tensors, {.learning_rate = learning_rate}};
  memprof::snapshot("OPTIMIZER_CREATION");
  batch batch;
  for (std::size_t micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
    batch = random_batch(options, random, tensors);
    (void)model.forward(batch);
    memprof::snapshot("FORWARD_PASS");
    model.backward(1.0 / static_cast<double>(options.micro_batches));
    memprof::snapshot("BACKWARD_PASS");
  }
  optimizer.step();
  optimizer.free_gradients();
  memprof::snapshot("OPTIMIZER_STEP");
}

}  // namespace

options options_for(const memprof::decoder_model& model, const memprof::training_setup& setup) {
  const auto refuse = [](bool condition, const char* what) {
    if (condition) throw memprof::error{std::string{"the plain trainer has no "} + what};
  };
  refuse(model.experts != 0, "experts");
  refuse(setup.attention != memprof::attention_kind::plain, "attention but plain");
  refuse(setup.optimizer != memprof::optimizer_kind::adam && setup.optimizer != memprof::optimizer_kind::adamw,
         "optimizer but Adam");
  refuse(setup.master_weights, "master weights");
  refuse(setup.gradient_type.value_or(setup.type) != setup.type, "gradients of another dtype");
  refuse(setup.state_type.value_or(setup.type) != setup.type, "optimizer state of another dtype");
  refuse(!(setup.layers == memprof::plain_layers), "layers as of PyTorch");
  refuse(setup.parallel.tensor != 1 || setup.parallel.pipeline != 1 || setup.parallel.data != 1 || setup.parallel.context != 1,
         "other devices to share with");
  refuse(model.positions != 0 && model.positions != setup.seq_len, "positions beyond a sequence");
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  options result;
  result.model = {.vocabulary_size = size(model.vocabulary),
                  .seq_len = size(setup.seq_len),
                  .layers = size(model.layers),
                  .heads = size(model.heads),
                  .d_model = size(model.d_model),
                  .kv_heads = size(model.kv_heads),
                  .mlp_width = size(model.mlp_width),
                  .architecture = model.is_llama() ? architecture::llama : architecture::gpt2,
                  .tied_output = model.tied_output,
                  .memory_efficient = setup.recompute == memprof::recomputation_kind::blocks};
  result.batch_size = size(setup.batch_size);
  result.micro_batches = size(setup.micro_batches);
  result.dtype = setup.type;
  result.device = setup.device;
  return result;
}

measured_step measure_one_step(const options& options, double learning_rate, memprof::trace* events) {
  measured_step result;
  frees_early = !options.free_late;
  auto capture =
      memprof::begin_capture({.mode = options.mode, .device = options.device, .trace = events, .uses = options.record_uses});
  try {
    switch (options.dtype) {
      case memprof::dtype::bfloat16: run<bf16>(options, learning_rate); break;
      case memprof::dtype::float16: run<fp16>(options, learning_rate); break;
      default: run<float>(options, learning_rate); break;
    }
  } catch (const std::bad_alloc&) {
    result.ran_out_of_memory = true;
  } catch (const std::length_error&) {  // from a std::vector larger than any address space
    result.ran_out_of_memory = true;
  }
  capture.end();
  result.profile = capture.profile();
  return result;
}

}  // namespace nano_gpt
