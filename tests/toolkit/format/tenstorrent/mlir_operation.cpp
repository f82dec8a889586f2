#include <memprof/toolkit/format/tenstorrent/mlir_operation.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace memprof_tests::format_mlir_operation {

using memprof::mlir_operation;
using memprof::mlir_tensor;
using memprof::parse_mlir_operation;

namespace {

TEST_CASE("mlir operation: a real line has its result, operands, attributes, types and place") {
  // From an issue of tt-mlir (6909).
  const auto got = parse_mlir_operation(
      R"mlir(%3 = "ttnn.to_layout"(%arg2) <{layout = #ttnn.layout<tile>}> : (tensor<1x128x512x512xf32, #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 65536 + d1 * 512 + d2, d3), <1x1>, memref<65536x512xf32, #ttnn.buffer_type<dram>>, <interleaved>>>) -> tensor<1x128x512x512xf32> loc("reshape.20_in_0_layout"))mlir");
  REQUIRE(got);
  CHECK(got->result == "%3");
  CHECK(got->name == "ttnn.to_layout");
  CHECK(got->inputs == std::vector<std::string>{"%arg2"});
  CHECK(got->attributes == "layout = #ttnn.layout<tile>");
  CHECK(got->input_types.starts_with("tensor<1x128x512x512xf32, #ttnn.ttnn_layout<(d0"));
  CHECK(got->input_types.ends_with("<interleaved>>>"));
  CHECK(got->output_type == "tensor<1x128x512x512xf32>");
  CHECK(got->input_tensors == std::vector<mlir_tensor>{{"1x128x512x512", "f32"}});
  CHECK(got->output_tensors == got->input_tensors);
  CHECK(got->loc == "reshape.20_in_0_layout");
}

TEST_CASE("mlir operation: results may be missing or several, names unquoted, operands in brackets") {
  const auto freed =
      parse_mlir_operation(R"("ttnn.deallocate"(%arg1) <{force = false}> : (tensor<2xbf16>) -> () loc("f.mlir":10:9))");
  REQUIRE(freed);
  CHECK(freed->result.empty());
  CHECK(freed->output_type == "()");
  CHECK(freed->output_tensors.empty());
  CHECK(freed->loc == "f.mlir:10:9");
  const auto loaded =
      parse_mlir_operation("%1 = ttcore.load_cached(@main_const_eval_0, [%arg0, %arg1]) : (tensor<f32>) -> tensor<?x4xf8E4M3FN>");
  REQUIRE(loaded);
  CHECK(loaded->name == "ttcore.load_cached");
  CHECK(loaded->inputs == std::vector<std::string>{"@main_const_eval_0", "[%arg0, %arg1]"});
  CHECK(loaded->input_tensors == std::vector<mlir_tensor>{{"", "f32"}});
  CHECK(loaded->output_tensors == std::vector<mlir_tensor>{{"?x4", "f8E4M3FN"}});
  CHECK(loaded->loc.empty());
  const auto several = parse_mlir_operation(
      R"(%0:2 = "ttnn.split"(%a, %b) : (tensor<4xi32>, tensor<4xi32>) -> (tensor<2xi32>, tensor<2x1xi32>) loc(#loc7))");
  REQUIRE(several);
  CHECK(several->result == "%0:2");
  CHECK(several->output_tensors == std::vector<mlir_tensor>{{"2", "i32"}, {"2x1", "i32"}});
}

TEST_CASE("mlir operation: the place is the outermost name") {
  const auto loc = [](const std::string& text) { return parse_mlir_operation("\"a.b\"() : () -> () loc(" + text + ")")->loc; };
  CHECK(loc(R"("add.6")") == "add.6");
  CHECK(loc(R"("reduce.864_mean"("reduce.864"))") == "reduce.864_mean");
  CHECK(loc(R"(fused<"x">["a", "b"])") == "x");
  CHECK(loc(R"(callsite("inner" at "outer"))") == "inner");
  CHECK(loc("unknown").empty());
  CHECK(loc("#loc").empty());
}

TEST_CASE("mlir operation: brackets in strings, arrows and nested attributes do not mislead") {
  const auto got = parse_mlir_operation(
      R"(%1 = "a.b"(%0) <{s = "x) loc(\"no\") : }>", m = affine_map<(d0) -> (d0 >= 0)>, n = {k = 1}}> : (i32) -> i32 loc("yes"))");
  REQUIRE(got);
  CHECK(got->attributes == R"(s = "x) loc(\"no\") : }>", m = affine_map<(d0) -> (d0 >= 0)>, n = {k = 1})");
  CHECK(got->loc == "yes");
  CHECK(got->output_type == "i32");
}

TEST_CASE("mlir operation: of a text that is cut off there is what came, and no text is none") {
  const std::string whole = R"(%1 = "a.b"(%0, %2) <{x = 1}> : (tensor<2xf32>) -> tensor<2xf32> loc("here"))";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto got = parse_mlir_operation(whole.substr(0, size));
    CHECK(got.has_value() == (size >= whole.find('(') + 1));
    if (got) CHECK(got->name == "a.b");
  }
  for (const char* text : {"", "%", "%1 =", "= x", "\"a.b(%0)", "a b(c)", "(%0)", "%1 = a.b"})
    CHECK_FALSE(parse_mlir_operation(text));
}

}  // namespace

}  // namespace memprof_tests::format_mlir_operation
