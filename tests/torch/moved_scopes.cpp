#include "captures.hpp"
#include "invocations.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/csrc/autograd/record_function_ops.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>

namespace memprof_tests::torch_moved_scopes {

// Scopes that begin on one thread and end on another, as the profiler's `record_function` does with a future.

namespace {

/// A scope of the program that ends where its future is completed.
class moved_scope {
 public:
  explicit moved_scope(const char* name)
      : record_(torch::autograd::profiler::record_function_enter_new(name)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get())),
        after_(torch::autograd::profiler::_call_end_callbacks_on_fut_new(record_, future_)) {}

  void end() {
    future_->markCompleted(c10::IValue{1});
    after_->wait();
  }
  void end_on_another_thread() {
    std::thread{[this] { end(); }}.join();
  }

 private:
  c10::intrusive_ptr<torch::autograd::profiler::PythonRecordFunction> record_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  c10::intrusive_ptr<c10::ivalue::Future> after_;
};

void allocate(std::int64_t bytes) { (void)at::empty({bytes}, torch::kByte); }

std::int64_t self_allocated(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? 0 : found->usage[0].self_allocated;
}

void check_nothing_is_open() {
  CHECK(memprof::detail::this_torch_thread()->open_count == 0);
  CHECK(memprof::extend::event_sink{}.innermost_name() == 0);
  CHECK(memprof::abi_1::this_thread.innermost_scope == 0);
}

}  // namespace

TEST_CASE("torch moved scopes: one that ends on another thread is closed by the next operator of its own") {
  auto capture = begin_torch();
  for (int count = 0; count < 200; ++count) {  // more than are kept of one thread
    moved_scope scope{"waiting"};
    allocate(10);
    scope.end_on_another_thread();
  }
  allocate(20);
  check_nothing_is_open();
  CHECK(self_allocated(capture.profile(), "waiting/aten::empty") == 200 * 10);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 20);
  CHECK(invocations_of(capture.profile(), "waiting") == 200);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch moved scopes: one that ends on its own thread is closed at once") {
  auto capture = begin_torch();
  moved_scope scope{"waiting"};
  allocate(10);
  scope.end();
  check_nothing_is_open();
  allocate(20);
  CHECK(self_allocated(capture.profile(), "waiting/aten::empty") == 10);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 20);
}

TEST_CASE("torch moved scopes: what the program has open within goes on until it ends") {
  auto capture = begin_torch();
  moved_scope scope{"waiting"};
  {
    auto within = memprof::track_operation<"within">();
    scope.end_on_another_thread();
    allocate(10);
  }
  allocate(20);
  check_nothing_is_open();
  CHECK(self_allocated(capture.profile(), "waiting/within/aten::empty") == 10);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 20);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch moved scopes: one that outlives the scope around it closes none of those that came after") {
  for (const bool is_elsewhere : {true, false}) {
    auto capture = begin_torch();
    std::optional<moved_scope> scope;
    {
      auto step = memprof::track_operation<"step">();
      scope.emplace("waiting");
      allocate(10);
    }
    {
      auto next = memprof::track_operation<"next">();
      {
        auto inner = memprof::track_operation<"inner">();  // as deep as the moved scope was
        is_elsewhere ? scope->end_on_another_thread() : scope->end();
        allocate(20);
        allocate(30);
      }
      allocate(40);
    }
    allocate(50);
    check_nothing_is_open();
    CHECK(self_allocated(capture.profile(), "step/waiting/aten::empty") == 10);
    CHECK(self_allocated(capture.profile(), "step/waiting/next/inner/aten::empty") == 50);  // it was still open around "next"
    CHECK(self_allocated(capture.profile(), "step/waiting/next/aten::empty") == 40);
    CHECK(self_allocated(capture.profile(), "aten::empty") == 50);
    CHECK(capture.profile().anomalies == memprof::event_anomalies{});
  }
}

TEST_CASE("torch moved scopes: one that ends after the capture, or on a thread of its own after its thread has gone, is let go") {
  std::optional<moved_scope> late;
  {
    auto capture = begin_torch();
    std::thread{[&] { late.emplace("of a thread that ends"); }}.join();
    late->end();
    late.emplace("late");
  }
  late->end_on_another_thread();
  auto capture = begin_torch();
  allocate(10);
  check_nothing_is_open();
  CHECK(self_allocated(capture.profile(), "aten::empty") == 10);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

}  // namespace memprof_tests::torch_moved_scopes
