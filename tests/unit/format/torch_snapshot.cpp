#include <memprof/format/torch_snapshot_records.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>

namespace memprof_tests::format_torch_snapshot {

TEST_CASE("torch snapshot: frames that PyTorch's viewer hides are left out, and stacks are kept once", "[format]") {
  memprof::detail::torch_stacks stacks;
  CHECK(stacks.frame("torch::unwind::unwind()", "??", 0) == 0);
  CHECK(stacks.frame("PyEval_EvalFrame", "", 0) == 0);
  CHECK(stacks.frame("call", "/build/aten/src/ATen/core/boxing/impl.h", 3) == 0);
  const memprof::label forward = stacks.frame("forward", R"(D:\model\net.py)", 54);
  CHECK(stacks.name(forward) == "forward (net.py:54)");
  CHECK(stacks.name(stacks.frame("at::add(at::Tensor)", "??", 0)) == "at::add");
  const std::uint32_t outer = stacks.within(0, forward);
  CHECK(stacks.within(outer, forward) != outer);
  CHECK(stacks.within(outer, forward) == stacks.within(outer, forward));
  CHECK(stacks.within(outer, 0) == outer);
}

}  // namespace memprof_tests::format_torch_snapshot
