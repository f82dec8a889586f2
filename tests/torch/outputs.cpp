#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/trace.hpp>

#include <torch/library.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace memprof_tests::torch_outputs {

// What blocks are that operators return, of which the program says nothing.

using memprof::requires_grad;

namespace {

torch::Tensor first_row(std::int64_t rows, std::int64_t columns) { return torch::ones({rows, columns}).select(0, 0); }
torch::Tensor repeated_row(std::int64_t rows, std::int64_t columns) { return torch::ones({1, columns}).expand({rows, columns}); }
/// Keeps more tensors than a thread lists.
std::vector<torch::Tensor> many(std::int64_t count, std::int64_t columns) {
  std::vector<torch::Tensor> made;
  for (std::int64_t index = 0; index < count; ++index) made.push_back(torch::ones({index + 1, columns}));
  return made;
}

template <class Function>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

/// What is known of a tensor's block.
struct description {
  std::string shape;
  std::string dtype;
  memprof::requires_grad requires_grad = requires_grad::unknown;

  bool operator==(const description&) const = default;
};
std::ostream& operator<<(std::ostream& out, const description& of) {
  return out << of.shape << ' ' << of.dtype << ' ' << memprof::to_string(of.requires_grad);
}

/// As a checkpoint sees it now.
memprof::live_block block_now(const torch::Tensor& tensor) {
  memprof::memory_checkpoint("now");
  const memprof::profile run = memprof::current_profile();
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.storage().data());
  for (const memprof::checkpoint_usage& space : run.checkpoints.back().spaces) {
    for (const memprof::live_block& block : space.largest_blocks) {
      if (block.address == address) return block;
    }
  }
  return {};
}
description described(const torch::Tensor& tensor) {
  const memprof::live_block block = block_now(tensor);
  return {block.shape, block.dtype, block.requires_grad};
}

memprof::capture_guard begin() { return begin_torch({.largest_blocks = 256}); }

void check_no_anomalies(memprof::capture_guard& capture) {
  capture.end();
  const memprof::space_anomalies found = capture.profile().space("cpu").anomalies;
  CHECK(found.unknown_annotations.count == 0);
  CHECK(found.unmatched_frees.count == 0);
}

}  // namespace

TORCH_LIBRARY(memprof_output_tests, library) {
  library.def("first_row(int rows, int columns) -> Tensor", first_row);
  library.def("repeated_row(int rows, int columns) -> Tensor", repeated_row);
  library.def("many(int count, int columns) -> Tensor[]", many);
}

TEST_CASE("torch outputs: activations have shape, element type and requires_grad without being annotated") {
  auto capture = begin();
  const auto input = torch::randn({2, 3, 16});
  const auto weight = torch::randn({4, 16}).requires_grad_();
  const auto bias = torch::zeros({4});
  const auto hidden = torch::linear(input, weight, bias);
  const auto output = torch::relu(hidden);
  CHECK(described(input) == description{"[2, 3, 16]", "float32", requires_grad::no});
  // What an operator within made is [6, 4]; the program has this:
  CHECK(described(hidden) == description{"[2, 3, 4]", "float32", requires_grad::yes});
  CHECK(described(output) == description{"[2, 3, 4]", "float32", requires_grad::yes});
  CHECK(block_now(output).operation == "aten::relu/aten::clamp_min");
  CHECK(block_now(output).category == memprof::category::activation);
  CHECK(block_now(output).name.empty());
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: every element type and rank") {
  auto capture = begin();
  const std::vector<std::int64_t> sizes{1, 2, 3, 1, 2, 3, 2};
  const std::vector<std::tuple<torch::ScalarType, std::string>> types{
      {torch::kFloat64, "float64"}, {torch::kFloat16, "float16"}, {torch::kBFloat16, "bfloat16"}, {torch::kInt64, "int64"},
      {torch::kInt32, "int32"},     {torch::kUInt8, "uint8"},     {torch::kBool, "bool"}};
  for (const auto& [type, name] : types) {
    for (std::size_t rank = 0; rank <= sizes.size(); ++rank) {
      std::string shape;
      for (std::size_t at = 0; at < rank; ++at) shape += (at == 0 ? "" : ", ") + std::to_string(sizes[at]);
      const auto tensor = torch::ones(torch::IntArrayRef{sizes}.slice(0, rank), type);
      CHECK(described(tensor) == description{"[" + shape + "]", name, requires_grad::no});
    }
  }
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: tuples and lists of tensors are all described") {
  auto capture = begin();
  const auto [values, indices] = torch::topk(torch::randn({5, 40}), 7);
  CHECK(described(values) == description{"[5, 7]", "float32", requires_grad::no});
  CHECK(described(indices) == description{"[5, 7]", "int64", requires_grad::no});
  const std::vector<torch::Tensor> sums = torch::_foreach_add({torch::ones({2, 6}), torch::ones({9})}, 1.0);
  CHECK(described(sums[0]) == description{"[2, 6]", "float32", requires_grad::no});
  CHECK(described(sums[1]) == description{"[9]", "float32", requires_grad::no});
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: what autograd saves is described too") {
  auto capture = begin();
  const auto input = torch::randn({6, 32}).requires_grad_();
  const auto normal = torch::layer_norm(input, {32});
  memprof::memory_checkpoint("now");
  std::vector<std::string> shapes;
  const memprof::profile profile = memprof::current_profile();
  for (const memprof::live_block& block : profile.checkpoints.back().spaces[0].largest_blocks) shapes.push_back(block.shape);
  // Input and output, and mean and reciprocal deviation of each row, which only an operator within returns.
  CHECK(shapes == std::vector<std::string>{"[6, 32]", "[6, 32]", "[6, 1]", "[6, 1]"});
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: a view, an operator in place and one with out= keep to the block") {
  auto capture = begin();
  auto base = torch::ones({4, 6});
  const auto view = base.view({24}).narrow(0, 2, 5);
  base.mul_(2).t().add_(1);
  CHECK(described(view) == description{"[4, 6]", "float32", requires_grad::no});
  auto out = torch::empty({0});
  at::add_out(out, base, base);  // which resizes it
  CHECK(described(out) == description{"[4, 6]", "float32", requires_grad::no});
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: a part of a block does not stand for the whole") {
  auto capture = begin();
  const auto row = find_operator<torch::Tensor(std::int64_t, std::int64_t)>("memprof_output_tests::first_row").call(3, 8);
  CHECK(row.sizes() == torch::IntArrayRef{8});
  CHECK(described(row) == description{"[3, 8]", "float32", requires_grad::no});
  const auto rows = find_operator<torch::Tensor(std::int64_t, std::int64_t)>("memprof_output_tests::repeated_row").call(1000, 8);
  CHECK(rows.sizes() == torch::IntArrayRef{1000, 8});
  CHECK(described(rows) == description{"[1, 8]", "float32", requires_grad::no});
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: an operator that makes many blocks") {
  auto capture = begin();
  constexpr std::int64_t count = 100;
  const auto made =
      find_operator<std::vector<torch::Tensor>(std::int64_t, std::int64_t)>("memprof_output_tests::many").call(count, 3);
  for (std::int64_t index = 0; index < count; ++index) {
    CHECK(described(made[static_cast<std::size_t>(index)]) ==
          description{"[" + std::to_string(index + 1) + ", 3]", "float32", requires_grad::no});
  }
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: what the program says of a block stays") {
  auto capture = begin();
  torch::nn::Linear layer{torch::nn::LinearOptions{12, 5}};
  memprof::annotate_module(layer, "head");
  const auto input = torch::randn({7, 12});
  memprof::annotate_input(input, "tokens");
  torch::relu(layer(input)).sum().backward();
  layer->weight.mutable_grad().mul_(0.5);
  CHECK(block_now(input).name == "tokens");
  CHECK(block_now(layer->weight).name == "head.weight");
  const memprof::live_block gradient = block_now(layer->weight.grad());
  CHECK(gradient.name == "head.weight.grad");
  CHECK(gradient.shape == "[5, 12]");
  CHECK(gradient.category == memprof::category::gradient);
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: on other threads, and in the backward pass of the engine") {
  auto capture = begin();
  torch::Tensor of_thread;
  std::thread worker{[&] { of_thread = torch::ones({3, 7}) + 1; }};
  worker.join();
  CHECK(described(of_thread) == description{"[3, 7]", "float32", requires_grad::no});
  const auto weight = torch::randn({10, 20}).requires_grad_();
  torch::matmul(torch::randn({5, 10}), weight).sum().backward();
  CHECK(described(weight.grad()) == description{"[10, 20]", "float32", requires_grad::no});
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: the blocks of a peak are described, also where the next operator frees them") {
  auto capture = begin();
  {
    const auto large = torch::ones({256, 256});
    const auto larger = large.to(torch::kFloat64);
  }
  capture.end();
  const memprof::profile run = capture.profile();
  const memprof::live_set& peak = run.space("cpu").live_at_peak;
  REQUIRE(peak.largest_blocks.size() == 2);
  CHECK(peak.largest_blocks[0].shape == "[256, 256]");
  CHECK(peak.largest_blocks[0].dtype == "float64");
  CHECK(peak.largest_blocks[1].shape == "[256, 256]");
  CHECK(peak.largest_blocks[1].dtype == "float32");
}

TEST_CASE("torch outputs: a capture that ends within an operator, and the next one") {
  auto first = begin();
  auto made = torch::ones({4, 4});
  first.end();
  auto second = begin();
  made = torch::ones({5, 5});
  CHECK(described(made) == description{"[5, 5]", "float32", requires_grad::no});
  second.end();
  CHECK(second.profile().space("cpu").anomalies.unknown_annotations.count == 0);
}

TEST_CASE("torch outputs: shapes without end leave names to others") {
  auto capture = begin();
  memprof::detail::output_labels labels;
  constexpr auto most = static_cast<std::int64_t>(memprof::detail::output_labels::max_shapes);
  const auto text_of = [&](const torch::Tensor& tensor) {
    return std::string{memprof::extend::event_sink{}.text_of(labels.find(tensor))};
  };
  const auto storage = torch::ones({most + 2});
  for (std::int64_t size = 1; size <= most; ++size) (void)labels.find(storage.narrow(0, 0, size));
  CHECK(text_of(storage.narrow(0, 0, most + 1)) ==
        "\x1f\x1f"
        "float32\x1f"
        "false");
  CHECK(text_of(storage.narrow(0, 0, most + 2)) ==
        "\x1f\x1f"
        "float32\x1f"
        "false");
  CHECK(text_of(storage.narrow(0, 0, 17)) ==
        "\x1f[17]\x1f"
        "float32\x1f"
        "false");
  check_no_anomalies(capture);
}

TEST_CASE("torch outputs: a session profile has shape and type of activations, and the graph of operators") {
  memprof::trace made;
  auto capture = begin_torch({.largest_blocks = 10, .trace = &made});
  torch::nn::Linear layer{torch::nn::LinearOptions{12, 5}};
  const auto input = torch::randn({7, 12});
  torch::Tensor hidden;
  {
    auto operators = memprof::track_pytorch_ops();
    auto scope = memprof::track_operation("forward");
    hidden = layer->forward(input);
  }
  memprof::memory_checkpoint("after_forward");
  capture.end();
  memprof::text_sink of_trace;
  (void)memprof::write_session(made, capture.profile(), of_trace);
  memprof::text_sink of_profile;
  (void)memprof::write_session(capture.profile(), of_profile);
  const auto session = nlohmann::json::parse(of_trace.text);
  const auto& snapshot = session.at("snapshots").at(0);
  CHECK(snapshot.at("checkpoint_name") == "after_forward");
  CHECK(snapshot == nlohmann::json::parse(of_profile.text).at("snapshots").at(0));
  // Weight, input, hidden, bias: 60, 84, 35 and 5 elements of 4 bytes.
  CHECK(snapshot.at("total_bytes") == 4 * (60 + 84 + 35 + 5));
  CHECK(snapshot.at("tensor_count") == 4);
  const auto& found = snapshot.at("device_breakdown").at("cpu").at("tensors").at(2);
  const auto expected = nlohmann::json{{"size_mb", 35 * 4 / 1048576.0}, {"size_bytes", 35 * 4},   {"shape", {7, 5}},
                                       {"dtype", "torch.float32"},      {"device", "cpu"},        {"requires_grad", true},
                                       {"operation", "aten::addmm"},    {"purpose", "activation"}};
  CHECK(found == expected);
  CHECK(session.at("operation_allocations").at("forward").at(0).at("tensor_delta") == 1);
  const auto& graph = session.at("operation_graph");
  const auto& children = graph.at("forward").at("child_operations");
  CHECK(std::find(children.begin(), children.end(), "aten::addmm") != children.end());
  CHECK(graph.at("aten::addmm").at("invocations") == 1);
  CHECK(graph.at("aten::addmm").at("tensor_details") == nlohmann::json::array({expected}));
  const auto& operators = session.at("pytorch_operations");
  const auto addmm = std::find_if(operators.begin(), operators.end(),
                                  [](const nlohmann::json& row) { return row.at("op_name") == "aten::addmm"; });
  REQUIRE(addmm != operators.end());
  CHECK(addmm->at("count") == 1);
  CHECK(addmm->at("cpu_memory_mb") == 35 * 4 / 1048576.0);
}

}  // namespace memprof_tests::torch_outputs
