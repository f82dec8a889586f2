#include <tinyllama_table/replay.hpp>

#include <memprof/memprof.hpp>

#include <cstddef>
#include <memory>
#include <tuple>
#include <vector>

namespace tinyllama_table {
namespace {

using memprof::category;
using memprof::track_operation;

struct layer_parameters {
  variable_ptr attention_norm, queries, keys_and_values, output, mlp_norm, gate, up, down;
};

struct model_parameters {
  variable_ptr embedding;
  std::vector<layer_parameters> layers;
  variable_ptr final_norm, head;
};

class training_step {
 public:
  training_step(const dimensions& sizes, const device_memory& device, activations mode)
      : sizes_{sizes}, device_{device}, mode_{mode} {}

  void create_model() {
    const auto scope = track_operation<"model">();
    const std::size_t width = sizes_.width;
    parameters_.embedding = parameter({sizes_.vocabulary, width});
    for (std::size_t index = 0; index < sizes_.layers; ++index) {
      layer_parameters& layer = parameters_.layers.emplace_back();
      layer.attention_norm = parameter({1, width});
      layer.queries = parameter({width, width});
      layer.keys_and_values = parameter({width, keys_and_values_width()});
      layer.output = parameter({width, width});
      layer.mlp_norm = parameter({1, width});
      layer.gate = parameter({width, sizes_.mlp_width});
      layer.up = parameter({width, sizes_.mlp_width});
      layer.down = parameter({sizes_.mlp_width, width});
    }
    parameters_.final_norm = parameter({1, width});
    parameters_.head = parameter({width, sizes_.vocabulary});

    constants_.push_back(device_.make({sizes_.sequence, sizes_.sequence}, category::other));  // causal mask
    // Cosines and sines of positions, and negated sines; negated cosines are the cosines.
    for (int table = 0; table < 3; ++table) {
      constants_.push_back(device_.make({sizes_.sequence, sizes_.head_width()}, category::other));
    }
    constants_.push_back(device_.make({32, 32}, category::other));  // rotates a tile
  }

  /// The two moments of AdamW.
  void create_optimizer() {
    const auto scope = track_operation<"adamw">();
    for (const variable_ptr& one : all_) {
      moments_.push_back(make_like(one->value, category::optimizer_state));
      moments_.push_back(make_like(one->value, category::optimizer_state));
    }
  }

  void forward() {
    const auto scope = track_operation<"forward">();
    const std::size_t tokens_bytes = sizes_.sequence * 4;  // not in tiles
    tokens_ = device_.make_bytes(tokens_bytes, category::input);
    targets_ = device_.make_bytes(tokens_bytes, category::input);
    const operations on_tape{sizes_, device_, &tape_};
    variable_ptr x = on_tape.embedding(tokens_, parameters_.embedding);
    for (const layer_parameters& layer : parameters_.layers) {
      x = mode_ == activations::kept ? run_layer(x, layer, &tape_) : run_and_forget_layer(x, layer);
    }
    logits_ = on_tape.linear(on_tape.rms_norm(x, parameters_.final_norm), parameters_.head, sizes_.vocabulary);
    loss_ = on_tape.cross_entropy(logits_, targets_);
  }

  /// The loss and the logits, which the training loop holds, keep their gradients.
  void backward() {
    const auto scope = track_operation<"backward">();
    loss_->gradient = make_gradient(*loss_);
    tape_.backward();
  }

 private:
  [[nodiscard]] std::size_t keys_and_values_width() const { return 2 * sizes_.groups * sizes_.head_width(); }

  [[nodiscard]] variable_ptr parameter(std::vector<std::size_t> sizes) {
    const variable_ptr made = make_variable(device_.make(std::move(sizes), category::parameter));
    made->is_parameter = true;
    all_.push_back(made);
    return made;
  }

  [[nodiscard]] variable_ptr run_attention(const variable_ptr& x, const layer_parameters& layer, const operations& run) const {
    const variable_ptr queries = run.linear(x, layer.queries, sizes_.width);
    const variable_ptr keys_and_values = run.linear(x, layer.keys_and_values, keys_and_values_width());
    auto [q, k, v] = run.split_heads(queries, keys_and_values);
    q = run.rotate(q);
    k = run.rotate(k);
    const variable_ptr attended = run.attention(q, k, v);
    return run.linear(run.merge_heads(attended), layer.output, sizes_.width);
  }

  [[nodiscard]] variable_ptr run_mlp(const variable_ptr& x, const layer_parameters& layer, const operations& run) const {
    const variable_ptr gate = run.silu(run.linear(x, layer.gate, sizes_.mlp_width));
    const variable_ptr up = run.linear(x, layer.up, sizes_.mlp_width);
    return run.linear(run.multiply(gate, up), layer.down, sizes_.width);
  }

  [[nodiscard]] variable_ptr run_layer(const variable_ptr& x, const layer_parameters& layer, tape* nodes) const {
    const auto scope = track_operation<"layer">();
    const operations run{sizes_, device_, nodes};
    const variable_ptr attended = run.add(run_attention(run.rms_norm(x, layer.attention_norm), layer, run), x);
    return run.add(run_mlp(run.rms_norm(attended, layer.mlp_norm), layer, run), attended);
  }

  /// Keeps only the input. In the backward pass, the layer runs again on its own tape, with an input that is not on the outer
  /// tape.
  [[nodiscard]] variable_ptr run_and_forget_layer(const variable_ptr& x, const layer_parameters& layer) {
    const variable_ptr y = make_variable(run_layer(x, layer, nullptr)->value);
    tape_.add([this, x, &layer, y] {
      tape inner;
      const variable_ptr input = make_variable(x->value);
      const variable_ptr output = run_layer(input, layer, &inner);  // lives until the layer has been differentiated
      output->gradient = y->gradient;
      inner.backward();
      add_gradient(*x, input->gradient);
    });
    return y;
  }

  dimensions sizes_;
  const device_memory& device_;
  activations mode_;
  model_parameters parameters_;
  std::vector<variable_ptr> all_;
  std::vector<tensor> constants_;
  std::vector<tensor> moments_;
  tensor tokens_, targets_;
  variable_ptr logits_, loss_;
  tape tape_;
};

}  // namespace

memprof::profile replay_training_step(activations mode, const dimensions& sizes) {
  auto capture = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch});
  memprof::memory_resource dram{"dram"};
  const device_memory device{dram};
  {
    training_step step{sizes, device, mode};
    step.create_model();
    memprof::snapshot("MODEL_CREATION");
    step.create_optimizer();
    memprof::snapshot("OPTIMIZER_CREATION");
    step.forward();
    memprof::snapshot("FORWARD_PASS");
    step.backward();
    memprof::snapshot("BACKWARD_PASS");
  }
  capture.end();
  return capture.profile();
}

}  // namespace tinyllama_table
