#include <memprof/format/torch_snapshot_records.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>

namespace memprof_tests::format_torch_snapshot {

namespace {

using memprof::detail::short_function_name;

}  // namespace

TEST_CASE("torch snapshot: functions of C++ lose arguments, template arguments and result", "[format]") {
  CHECK(short_function_name("at::native::empty_cuda(c10::ArrayRef<long>, std::optional<bool>)") == "at::native::empty_cuda");
  CHECK(short_function_name("void torch::f<std::function<void (at::Tensor&&)> >(at::Tensor const&, at::Tensor&)") == "torch::f");
  CHECK(short_function_name("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)") ==
        "torch::autograd::Node::operator()");
  CHECK(short_function_name("at::(anonymous namespace)::add(at::Tensor const&)") == "at::(anonymous namespace)::add");
  CHECK(short_function_name("_object* torch::wrap_<&torch::add>(_object*, _object*)") == "torch::wrap_");
  CHECK(short_function_name("std::error_code::default_error_condition() const") == "std::error_code::default_error_condition");
  CHECK(short_function_name("c10::wrap_<c10::X<at::Tensor (int), &f>, int>::call(int)") == "c10::wrap_::call");
  for (const char* const python : {"forward", "<module>", "<lambda>", "PyNumber_Add", ""})
    CHECK(short_function_name(python) == python);
  // Not a name of any language; the rest is all that matters.
  for (const char* const odd : {"(", ")))(((", "<<<::", "operator", "operator<", "a::operator", "::"})
    (void)short_function_name(odd);
}

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
