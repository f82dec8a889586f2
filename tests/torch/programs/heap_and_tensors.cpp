// A program with `new_delete.hpp` and tensors, compiled without NDEBUG as many are while they are written: each byte counts once,
// and what libtorch's headers withhold from such programs is said.

#include <memprof/backend/new_delete.hpp>
#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#if defined(NDEBUG)
#error "this program is about builds without NDEBUG"
#endif

namespace {

int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("fault: %s\n", what);
  ++faults;
}

std::int64_t live_bytes(const memprof::capture_guard& capture) { return capture.profile().space("cpu").cumulative_current; }

/// Three steps of a model, from its making to its end. The first run of it makes what libtorch keeps.
memprof::profile train(bool is_annotated) {
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  {
    torch::nn::Linear model{8, 8};
    if (is_annotated) memprof::annotate_module(model, "transformer.block.0.attention");
    for (int step = 0; step < 3; ++step) {
      model->forward(at::ones({2, 8})).sum().backward();
      memprof::snapshot("STEP");
    }
  }
  capture.end();
  return capture.profile();
}

void check_annotations_are_hidden() {
  (void)train(false);
  const memprof::space_profile plain = train(false).space("cpu");
  const memprof::space_profile annotated = train(true).space("cpu");
  check(annotated.anomalies.unmatched_frees.count == plain.anomalies.unmatched_frees.count,
        "what annotations keep with a parameter is hidden when it is freed");
  check(annotated.segments.size() == plain.segments.size(), "both have the same segments");
  for (std::size_t index = 0; index < plain.segments.size(); ++index) {
    check(annotated.segments[index].allocations == plain.segments[index].allocations,
          "annotations allocate nothing that is seen");
    check(annotated.segments[index].cumulative_current == plain.segments[index].cumulative_current, "and leave nothing");
  }
}

}  // namespace

int main() {
  constexpr std::int64_t elements = 1 << 20;
  constexpr std::int64_t tensor_bytes = 4 * elements;
  constexpr std::int64_t slack = 64 * 1024;  // what libtorch takes from the heap for one tensor, and more

  (void)at::ones({2, 2}).mm(at::ones({2, 2}));  // what it makes once and keeps
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  const auto heap_block = std::make_unique<char[]>(1 << 20);
  const std::int64_t before = live_bytes(capture);
  check(before >= 1 << 20, "the C++ heap is counted");
  {
    const at::Tensor tensor = at::empty({elements});
    const std::int64_t with_tensor = live_bytes(capture);
    check(with_tensor >= before + tensor_bytes, "the tensor is counted");
    check(with_tensor < before + tensor_bytes + slack, "the tensor is not counted twice");
  }
  {
    auto ops = memprof::track_pytorch_ops();
    (void)at::ones({2, 2}).mm(at::ones({2, 2}));
  }
  check(live_bytes(capture) < before + slack, "the tensor's end is counted");
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  check(cpu.anomalies.unmatched_frees.count == 0, "what the profiler allocates for libtorch's observers is hidden as a whole");
  check(capture.profile().anomalies == memprof::event_anomalies{}, "no event is lost");
  bool is_said = false;
  for (const memprof::pytorch_operation& row : memprof::rows_of<memprof::pytorch_operation>(capture.profile().facts)) {
    is_said = is_said || (row.name == "aten::mm" && row.input_shapes == "(unknown: the program is compiled without NDEBUG)");
  }
  check(is_said, "shapes that cannot be read are said to be unknown");
  check_annotations_are_hidden();
  return faults == 0 ? 0 : 1;
}
