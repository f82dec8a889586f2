#include <memprof/toolkit/page/estimate_picture.hpp>

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace memprof_tests::report_estimate_picture {

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("estimate picture: each bucket has a bar in both precisions") {
  const std::string script = memprof::bucket_picture_script(memprof::estimate_shape({}), "it's.png");
  CHECK(contains(script, "set terminal pngcairo noenhanced size 1600,800"));
  CHECK(contains(script, "set output 'it''s.png'"));
  CHECK(contains(script, "set title 'Memory By Bucket'.\"\\n\".'B=64, T=1024, D=768, H=8, L=12, V=33283'"));
  CHECK(contains(script, "'input-projects' 0, 'others' 1, 'output-project' 2, 'per-layer-attn' 3, 'per-layer-mlp' 4"));
  CHECK(contains(script, "$fp32 << END_OF_BARS\n0 6.750000000\n1 0.761779785\n2 8.125732422\n3 48.000000000\n4 11.250000000\n"));
  CHECK(contains(script, "$bf16 << END_OF_BARS\n0 3.375000000\n1 0.761779785\n2 4.062866211\n3 24.000000000\n4 5.625000000\n"));
}

TEST_CASE("estimate picture: the largest operations are on top, as many as are asked for") {
  const memprof::shape_estimate estimate = memprof::estimate_shape({});
  const std::string script = memprof::contributors_picture_script(estimate, 3, "top.png");
  CHECK(contains(script, "set title 'Top 3 Contributors'"));
  CHECK(contains(script, "size 1920,640 "));
  CHECK(contains(script, "'per-layer-attn:dec_layers.*.multi_head_attention.softmax.in(scores)' 0, "));
  CHECK(contains(script, "'per-layer-mlp:dec_layers.*.linear1' 2)"));
  CHECK(!contains(script, "output_proj"));
  CHECK(contains(script, "set yrange [2.6:-0.6]"));
  CHECK(contains(script, "$fp32 << END_OF_BARS\n0 24.000000000\n1 24.000000000\n2 9.000000000\nEND_OF_BARS\n"));
  CHECK(contains(memprof::contributors_picture_script(estimate, 12, "top.png"), "size 1920,736 "));  // 64 * 9 + 160
  CHECK(contains(memprof::contributors_picture_script(estimate, 0, "top.png"), "plot NaN notitle"));
}

}  // namespace memprof_tests::report_estimate_picture
