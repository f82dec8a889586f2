#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/trace/trace.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

/// @file
/// Answers of what-if, confirmed by runs without dispatch in which the change was really made.

namespace memprof_tests::torch_what_if {

namespace {

struct program {
  std::int64_t batch = 16;
  std::int64_t layers = 4;
  c10::ScalarType type = torch::kFloat32;
  bool recomputes = false;
  bool offloads = false;  ///< what blocks save for the backward pass is out of the memory until it is needed
  int steps = 1;
  bool has_optimizer = false;
  bool holds = false;  ///< keeps results that nothing needs any more
  bool records_uses = false;
};

struct block_impl : torch::nn::Module {
  block_impl() {
    up = register_module("up", torch::nn::Linear(64, 256));
    down = register_module("down", torch::nn::Linear(256, 64));
  }
  at::Tensor forward(const at::Tensor& input) {
    auto scope = memprof::track_operation<"block">();
    return input + down->forward(torch::gelu(up->forward(input)));
  }
  torch::nn::Linear up{nullptr};
  torch::nn::Linear down{nullptr};
};

/// A block that keeps its input alone and runs again in the backward pass, as with torch.utils.checkpoint (which, if it is
/// reentrant, also keeps the result of the second run meanwhile).
struct checkpointed : torch::autograd::Function<checkpointed> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input, block_impl* block) {
    context->save_for_backward({input});
    context->saved_data["block"] = reinterpret_cast<std::int64_t>(block);
    const at::NoGradGuard no_gradients;
    return block->forward(input);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_();
    auto* const block = reinterpret_cast<block_impl*>(context->saved_data["block"].toInt());
    torch::autograd::Edge from;
    {
      const at::AutoGradMode with_gradients{true};
      from = torch::autograd::impl::gradient_edge(block->forward(input));  // the result itself is not needed again
    }
    torch::autograd::Engine::get_default_engine().execute({from}, {gradients[0]}, false, false, true);
    return {input.grad(), at::Tensor{}};
  }
};

/// Keeps what a backward function saved out of this memory until it is needed, as torch.autograd.graph.save_on_cpu does: without
/// dispatch no value is missed.
class elsewhere : public torch::autograd::SavedVariableHooks {
 public:
  explicit elsewhere(at::Tensor input) : input_{std::move(input)} {}

  void call_pack_hook(const at::Tensor& saved) override {
    if (saved.is_alias_of(input_)) kept_ = saved;  // is here in any case
    sizes_ = saved.sizes().vec();
    options_ = saved.options();
  }
  at::Tensor call_unpack_hook() override { return kept_.defined() ? kept_ : torch::empty(sizes_, options_); }

 private:
  at::Tensor input_;
  at::Tensor kept_;
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
};

/// Sends away what the functions of a block's result have saved, but weights. `seen` are the functions of the blocks before.
void send_away(const at::Tensor& result, const at::Tensor& input, std::set<torch::autograd::Node*>& seen) {
  std::vector<torch::autograd::Node*> left{result.grad_fn().get()};
  while (!left.empty()) {
    torch::autograd::Node* const node = left.back();
    left.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    torch::autograd::SavedVariable* saved = nullptr;
    if (auto* const product = dynamic_cast<torch::autograd::generated::MmBackward0*>(node)) saved = &product->self_;
    if (auto* const product = dynamic_cast<torch::autograd::generated::AddmmBackward0*>(node)) saved = &product->mat1_;
    if (auto* const gelu = dynamic_cast<torch::autograd::generated::GeluBackward0*>(node)) saved = &gelu->self_;
    if (saved != nullptr) saved->register_hooks(std::make_unique<elsewhere>(input));
    for (const torch::autograd::Edge& edge : node->next_edges()) left.push_back(edge.function.get());
  }
}

struct simulated {
  std::int64_t peak = 0;
  memprof::block_history history;
};

simulated run(const program& asked) {
  memprof::trace events;
  memprof::capture_options options;
  options.trace = &events;
  options.uses = asked.records_uses;
  auto capture = begin_no_dispatch(options);
  {
    std::vector<block_impl> blocks(static_cast<std::size_t>(asked.layers));
    for (block_impl& block : blocks) {
      block.to(asked.type);
      memprof::annotate_module(block);
    }
    const at::Tensor input = torch::empty({asked.batch, 128, 64}, asked.type).requires_grad_();
    memprof::annotate_input(input, "input");
    std::vector<at::Tensor> parameters;
    for (block_impl& block : blocks) {
      for (const at::Tensor& each : block.parameters()) parameters.push_back(each);
    }
    torch::optim::Adam optimizer{parameters};
    for (int step = 0; step < asked.steps; ++step) {
      at::Tensor loss;
      std::vector<at::Tensor> held;
      {
        auto scope = memprof::track_operation<"forward">();
        at::Tensor x = input;
        if (asked.holds) held.push_back(input.detach().repeat({8, 1, 1}));
        std::set<torch::autograd::Node*> seen;
        for (block_impl& block : blocks) {
          x = asked.recomputes ? checkpointed::apply(x, &block) : block.forward(x);
          if (asked.offloads) send_away(x, input, seen);
        }
        loss = x.pow(2).mean();
      }
      memprof::snapshot("FORWARD");
      loss.backward();
      memprof::snapshot("BACKWARD");
      if (asked.has_optimizer) {
        auto scope = memprof::track_operation<"optimizer">();
        optimizer.step();
      }
      if (step + 1 < asked.steps) optimizer.zero_grad();
    }
  }
  capture.end();
  return {capture.profile().space("cpu").cumulative_peak, memprof::read_block_history(events, "cpu", true)};
}

void check_within_a_percent(std::int64_t answer, std::int64_t really) {
  CHECK_THAT(static_cast<double>(answer), Catch::Matchers::WithinRel(static_cast<double>(really), 0.01));
}

}  // namespace

TEST_CASE("torch what if: a larger batch has the peak of a run with that batch, by shapes and by two runs") {
  const simulated sixteen = run({});
  const simulated other = run({.batch = 24});
  const std::int64_t really = run({.batch = 64}).peak;
  using batching = memprof::what_if_change::batching;
  const auto by_shapes = what_if(sixteen.history, {.batch = batching{.factor = 4}});
  CHECK(by_shapes.before.bytes == sixteen.peak);
  CHECK(by_shapes.price.batch_size == 16);
  check_within_a_percent(by_shapes.after.bytes, really);
  check_within_a_percent(what_if(sixteen.history, {.batch = batching{.factor = 4, .other = &other.history}}).after.bytes, really);
}

TEST_CASE("torch what if: another element type has the peak of a run with that type") {
  // oneDNN's scratch memory for products of 16-bit numbers depends on the processor. The answer says that it is not counted.
  at::globalContext().setUserEnabledMkldnn(false);
  const simulated whole = run({});
  const auto found = what_if(whole.history, {.types = {{"**", "", "bf16"}, {"(outside every operation)", "", "bf16"}}});
  check_within_a_percent(found.after.bytes, run({.type = torch::kBFloat16}).peak);
}

TEST_CASE("torch what if: recomputed blocks have the peak of a run that recomputes them") {
  for (const std::int64_t layers : {2, 4, 12}) {
    const auto found = what_if(run({.layers = layers}).history, {.recompute = {"forward/block"}});
    CHECK(found.price.recomputed_calls == layers);
    CHECK(found.saved() > 0);
    check_within_a_percent(found.after.bytes, run({.layers = layers, .recomputes = true}).peak);
  }
}

TEST_CASE("torch what if: offloaded blocks have the peak of a run that keeps what they save elsewhere") {
  for (const std::int64_t layers : {2, 4, 12}) {
    const auto whole = run({.layers = layers, .records_uses = true});
    const auto found = what_if(whole.history, {.offload = {"forward/block"}});
    CHECK(found.saved() > whole.peak / 10);
    check_within_a_percent(found.after.bytes, run({.layers = layers, .offloads = true, .records_uses = true}).peak);
  }
}

TEST_CASE("torch what if: steps without their optimizer have the peak of a run that has none") {
  for (const std::int64_t batch : {1, 16}) {  // in a small batch, the optimizer's own temporaries are at the peak
    const simulated whole = run({.batch = batch, .steps = 3, .has_optimizer = true});
    const auto found = what_if(whole.history, {.without = {"optimizer"}});
    CHECK(found.saved() > whole.peak / 50);
    check_within_a_percent(found.after.bytes, run({.batch = batch, .steps = 3}).peak);
  }
}

TEST_CASE("torch what if: blocks freed at their last use have the peak of a run that holds nothing longer") {
  for (const std::int64_t layers : {2, 12}) {
    const simulated holding = run({.layers = layers, .holds = true, .records_uses = true});
    const auto found = what_if(holding.history, {.free_at_last_use = true});
    CHECK(found.before.bytes == holding.peak);
    CHECK(found.price.unused_bytes == 0);
    const simulated plain = run({.layers = layers, .records_uses = true});
    CHECK(found.saved() > holding.peak / 100);
    // The result that nothing reads is freed as soon as it is there, the rest as in the other run, whose tensors may end early,
    // too.
    check_within_a_percent(found.after.bytes, what_if(plain.history, {.free_at_last_use = true}).after.bytes);
    check_within_a_percent(found.after.bytes, plain.peak);
  }
}

}  // namespace memprof_tests::torch_what_if
