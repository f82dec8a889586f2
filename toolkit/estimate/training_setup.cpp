#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// Raises an error for what only the layers of PyTorch have.
void check_torch_only(const decoder_model& model, const training_setup& setup) {
  const bool is_selective = setup.recompute == recomputation_kind::selective;
  if (setup.layers.works_in_place && is_selective)
    raise("selective recomputation needs the layers of PyTorch: --torch, in code torch_layers");
  if (setup.layers.works_in_place && setup.float32_logits)
    raise("float32 logits need the layers of PyTorch: --torch, in code torch_layers");
  if (is_selective && model.experts != 0)
    raise(
        "selective recomputation is not estimated for experts: PyTorch keeps other products where they run in a loop than in a "
        "grouped product, and of Megatron-LM's --recompute-modules moe and moe_act no measured or published formula is at hand; "
        "recompute whole blocks, or nothing");
}

}  // namespace

void check(const decoder_model& model, const training_setup& setup) {
  check(model);
  constexpr std::int64_t most = 1'000'000'000, max_micro_batches = 100'000;
  const auto require = [](std::int64_t value, std::int64_t greatest, std::string_view name) {
    if (value >= 1 && value <= greatest) return;
    raise(std::string{name} + " is " + std::to_string(value) + ", but must be from 1 to " + std::to_string(greatest));
  };
  require(setup.batch_size, most, "batch_size");
  require(setup.seq_len, most, "seq_len");
  require(setup.micro_batches, max_micro_batches, "micro_batches");
  require(setup.parallel.tensor, most, "tensor_parallel");
  require(setup.parallel.pipeline, most, "pipeline_parallel");
  require(setup.parallel.data, most, "data_parallel");
  require(setup.parallel.context, most, "context_parallel");
  if (model.positions != 0 && setup.seq_len > model.positions) {
    raise("seq_len " + std::to_string(setup.seq_len) + " is longer than the " + std::to_string(model.positions) +
          " positions of the model");
  }
  if (setup.parallel.zero_stage < 0 || setup.parallel.zero_stage > 3) {
    raise("zero_stage is " + std::to_string(setup.parallel.zero_stage) + ", but must be 0, 1, 2 or 3");
  }
  require_divides(setup.parallel.tensor, "tensor_parallel", model.heads, "heads");
  require_divides(setup.parallel.tensor, "tensor_parallel", model.mlp_channels(), "mlp_width");
  // With fewer key and value heads than parts, each part has one head that it shares with others.
  const std::int64_t kv_heads = model.key_value_heads();
  if (kv_heads % setup.parallel.tensor != 0) {
    require_divides(kv_heads, "kv_heads", setup.parallel.tensor, "tensor_parallel");
  }
  require_divides(setup.parallel.context, "context_parallel", setup.seq_len, "seq_len");
  require_divides(setup.parallel.pipeline, "pipeline_parallel", model.layers, "layers");
  if (setup.pipeline_stage < -1 || setup.pipeline_stage >= setup.parallel.pipeline) {
    raise("pipeline_stage is " + std::to_string(setup.pipeline_stage) + ", but must be at least -1 and less than " +
          std::to_string(setup.parallel.pipeline));
  }
  if (setup.optimizer == optimizer_kind::adam_8bit && setup.master_weights) {
    raise("adam-8bit has no master weights: choose one or the other");
  }
  check_torch_only(model, setup);
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
