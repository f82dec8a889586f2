#include "captures.hpp"
#include "invocations.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace memprof_tests::torch_operations {

namespace {

memprof::capture_guard begin() { return begin_torch(); }

std::int64_t self_allocated(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? -1 : found->usage[0].self_allocated;
}

std::int64_t allocated(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? -1 : found->usage[0].allocated;
}

}  // namespace

TEST_CASE("torch operations: a block belongs to the innermost operator, below the program's scopes") {
  const at::Tensor left = at::ones({8, 16});
  const at::Tensor right = at::ones({16, 4});
  auto capture = begin();
  at::Tensor product;
  {
    auto scope = memprof::track_operation<"attention">();
    auto inner = memprof::track_operation<"qkv">();
    product = at::mm(left, right);
  }
  const at::Tensor outside = at::empty({10});
  capture.end();
  CHECK(self_allocated(capture.profile(), "attention/qkv/aten::mm") == 8 * 4 * 4);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 40);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
  const memprof::live_set& peak = capture.profile().space("cpu").live_at_peak;
  REQUIRE(peak.by_operation.size() == 2);
  CHECK(peak.by_operation[0].owner == "attention/qkv/aten::mm");
}

TEST_CASE("torch operations: what an operator calls nests in it") {
  const at::Tensor input = at::ones({2, 8});
  const at::Tensor weight = torch::ones({4, 8}, torch::requires_grad());
  const at::Tensor bias = torch::ones({4}, torch::requires_grad());
  auto capture = begin();
  const at::Tensor output = at::linear(input, weight, bias);
  capture.end();
  CHECK(self_allocated(capture.profile(), "aten::linear/aten::addmm") == 2 * 4 * 4);
  CHECK(allocated(capture.profile(), "aten::linear") == 2 * 4 * 4);
}

TEST_CASE("torch operations: the backward pass of a scope is one row, named after it") {
  const at::Tensor input = at::ones({16, 8});
  const at::Tensor first = torch::ones({8, 4}, torch::requires_grad());
  const at::Tensor second = torch::ones({4, 2}, torch::requires_grad());
  auto capture = begin();
  at::Tensor loss;
  {
    auto forward = memprof::track_operation<"forward">();
    at::Tensor hidden;
    {
      auto scope = memprof::track_operation<"attention.qkv">();
      hidden = at::mm(input, first);
    }
    auto scope = memprof::track_operation<"mlp">();
    loss = at::mm(hidden, second);
  }
  const at::Tensor gradient = at::ones({16, 2});
  {
    auto backward = memprof::track_operation<"backward">();
    loss.backward(gradient);
  }
  capture.end();
  const memprof::profile& profile = capture.profile();
  // mm has two products: 8 x 4 for the weight, none for the input, which needs no gradient; 4 x 2 and 16 x 4 for the second.
  CHECK(allocated(profile, "backward/gradients of attention.qkv") == 8 * 4 * 4);
  CHECK(allocated(profile, "backward/gradients of mlp") == (4 * 2 + 16 * 4) * 4);
  CHECK(self_allocated(profile, "backward/gradients of mlp/MmBackward0/aten::mm") == (4 * 2 + 16 * 4) * 4);
  CHECK(profile.anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch operations: a backward pass on another thread finds the scopes of the forward pass") {
  const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  auto capture = begin();
  at::Tensor product;
  {
    auto scope = memprof::track_operation<"mlp">();
    product = at::mm(weight, weight);
  }
  const at::Tensor gradient = at::ones({8, 8});
  std::thread other{[&] { product.backward(gradient); }};
  other.join();
  capture.end();
  // Two products; the engine adds the second to the first in place.
  CHECK(allocated(capture.profile(), "gradients of mlp") == 2 * 8 * 8 * 4);
  CHECK(invocations_of(capture.profile(), "gradients of mlp/MmBackward0/aten::mm") == 2);
}

TEST_CASE("torch operations: a node that the program calls itself has its row as well") {
  const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  const at::Tensor gradient = at::ones({8, 8});
  auto capture = begin();
  at::Tensor product;
  {
    auto scope = memprof::track_operation<"mlp">();
    product = at::mm(weight, gradient);
  }
  (*product.grad_fn())({gradient});
  const at::Tensor after = at::empty({5});
  capture.end();
  CHECK(self_allocated(capture.profile(), "gradients of mlp/MmBackward0/aten::mm") == 8 * 8 * 4);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 20);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch operations: without a scope in the forward pass a node has its own name") {
  const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  auto capture = begin();
  at::mm(weight, at::ones({8, 8})).backward(at::ones({8, 8}));
  capture.end();
  CHECK(self_allocated(capture.profile(), "MmBackward0/aten::mm") == 8 * 8 * 4);
}

TEST_CASE("torch operations: scopes stay balanced when a capture begins or ends within an operator") {
  struct capturing : torch::autograd::Function<capturing> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
      auto capture = begin();  // within the operators of the engine
      const at::Tensor inside = gradients[0].clone();
      {
        auto scope = memprof::track_operation<"inside">();
        const at::Tensor again = gradients[0].clone();
      }
      capture.end();
      CHECK(capture.profile().anomalies == memprof::event_anomalies{});
      CHECK(invocations_of(capture.profile(), "aten::clone") > 0);
      CHECK(invocations_of(capture.profile(), "inside/aten::clone") > 0);
      return {gradients[0]};
    }
  };
  const at::Tensor weight = torch::ones({4}, torch::requires_grad());
  capturing::apply(weight).sum().backward();
}

TEST_CASE("torch operations: one that outlives its capture closes nothing of the next") {
  static std::optional<memprof::capture_guard> second;
  struct ending : torch::autograd::Function<ending> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
      memprof::end_capture();
      second.emplace(begin());
      return {gradients[0]};
    }
  };
  const at::Tensor weight = torch::ones({4}, torch::requires_grad());
  const at::Tensor gradient = at::ones({4});
  auto first = begin();
  ending::apply(weight).backward(gradient);
  const at::Tensor plain = at::empty({4});
  second->end();
  CHECK(self_allocated(second->profile(), "aten::empty") == 16);
  CHECK(second->profile().anomalies == memprof::event_anomalies{});
  second.reset();
}

TEST_CASE("torch operations: an operator that throws ends its scope") {
  auto capture = begin();
  CHECK_THROWS(at::mm(at::ones({2, 3}), at::ones({2, 3})));
  const at::Tensor after = at::empty({4});
  capture.end();
  CHECK(self_allocated(capture.profile(), "aten::empty") == 16);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch operations: RECORD_USER_SCOPE names a part of the program, for its gradients too") {
  const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  const at::Tensor gradient = at::ones({8, 8});
  auto capture = begin();
  at::Tensor product;
  {
    RECORD_USER_SCOPE("encoder");
    product = at::mm(weight, gradient);
  }
  const at::Tensor outside = at::mm(weight, gradient);
  product.backward(gradient);
  outside.backward(gradient);
  capture.end();
  CHECK(self_allocated(capture.profile(), "encoder/aten::mm") == 8 * 8 * 4);
  CHECK(self_allocated(capture.profile(), "gradients of encoder/MmBackward0/aten::mm") == 8 * 8 * 4);
  CHECK(self_allocated(capture.profile(), "MmBackward0/aten::mm") == 8 * 8 * 4);
}

TEST_CASE("torch operations: more nested operators than are kept belong to the innermost that is") {
  auto capture = begin();
  const auto nest = [](const auto& self, int depth) -> at::Tensor {
    if (depth == 0) return at::empty({5});
    RECORD_USER_SCOPE("level");
    return self(self, depth - 1);
  };
  const at::Tensor deep = nest(nest, 200);
  const at::Tensor after = at::empty({6});
  capture.end();
  CHECK(self_allocated(capture.profile(), "aten::empty") == 24);
  CHECK(capture.profile().space("cpu").cumulative_current == 44);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch operations: torch_allocations counts without them") {
  auto capture = begin_torch_allocations();
  auto scope = memprof::track_operation<"mine">();
  const at::Tensor tensor = at::ones({4});
  capture.end();
  CHECK(capture.profile().operations.size() == 1);
  CHECK(self_allocated(capture.profile(), "mine") == 16);
}

TEST_CASE("torch operations: observers of others run beside, and may remove all callbacks") {
  static int calls = 0;
  calls = 0;
  auto capture = begin();
  at::addGlobalCallback(at::RecordFunctionCallback{[](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
    ++calls;
    return nullptr;
  }});
  const at::Tensor seen_by_both = at::empty({4});
  CHECK(calls == 1);
  at::clearCallbacks();
  const at::Tensor seen_by_none = at::empty({5});
  capture.end();
  CHECK(calls == 1);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 16);
  CHECK(capture.profile().space("cpu").cumulative_current == 36);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch operations: an asynchronous operator opens no scope, which its end on another thread could not close") {
  auto capture = begin();
  const auto communicate = [] {  // as c10d does
    at::RecordFunction function{at::RecordScope::USER_SCOPE};
    function._setAsync();
    function.before("gloo:all_reduce");
    std::thread{[&] { function.end(); }}.join();
  };
  for (int count = 0; count < 200; ++count) communicate();
  const at::Tensor after = at::empty({10});
  CHECK(memprof::detail::this_torch_thread()->open_count == 0);
  CHECK(memprof::extend::event_sink{}.innermost_name() == 0);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 40);
  CHECK(invocations_of(capture.profile(), "gloo:all_reduce") == 0);
}

}  // namespace memprof_tests::torch_operations
