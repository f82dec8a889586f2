#include <memprof/toolkit/format/tables/markdown.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof_tests::report_markdown {

namespace {

memprof::profile training(const char* name) {
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.segments.emplace_back().name = name;
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cpu";
  space.segments.resize(1);
  space.segments[0].segment_peak = 2048;
  space.segments[0].segment_change = 1024;
  space.cumulative_peak = 2048;
  space.peak_segment = 0;
  space.live_at_peak.bytes = 2048;
  space.live_at_peak.by_operation = {{"a|b", 2048, 1}};
  return profile;
}

}  // namespace

TEST_CASE("markdown: answers are bold, tables are tables, and names are code") {
  CHECK(memprof::to_markdown(training("STEP_1")) ==
        "# Memory profile\n"
        "\n"
        "**memprof**: 1 segment, 0 ns\n"
        "\n"
        "**Peak**: **2.00 KiB (2,048 B)** of `cpu` at 0 ns in `STEP_1`\n"
        "\n"
        "**Owners**\n"
        "\n"
        "| Bytes | Share | Blocks | Operation | Category |\n"
        "|---:|---:|---:|---|---|\n"
        "| 2.00 KiB | 100 % | 1 block | `a\\|b` |  |\n"
        "\n"
        "**At end**: nothing live\n"
        "\n"
        "**Accuracy**: **exact**: no event lost or unmatched\n"
        "\n"
        "**Segments** in `cpu`\n"
        "\n"
        "| Segment | Count | Peak, first | last | min | max | mean | Change, first | last | min | max | mean |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        "| `STEP_1` | 1 | 2.00 KiB | 2.00 KiB | 2.00 KiB | 2.00 KiB | 2.00 KiB | +1.00 KiB | +1.00 KiB | +1.00 KiB | +1.00 KiB | "
        "+1.00 KiB |\n");
}

TEST_CASE("markdown: no name leaves its cell or its code") {
  for (const char* const name : {"`", "``` x", "| --- |", "a\nb", "<script>", "*", "\\"}) {
    const std::string text = memprof::to_markdown(training(name));
    INFO(text);
    const std::size_t row = text.rfind("| `");
    REQUIRE(row != std::string::npos);
    std::size_t bars = 0;
    for (std::size_t at = row; at < text.size(); ++at) bars += text[at] == '|' && text[at - 1] != '\\' ? 1 : 0;
    CHECK(bars == 13);
    CHECK(std::count(text.begin() + static_cast<std::ptrdiff_t>(row), text.end(), '\n') == 1);
  }
  CHECK(memprof::detail::markdown_code("a`b", false) == "``a`b``");
  CHECK(memprof::detail::markdown_code("`", false) == "`` ` ``");
  CHECK(memprof::detail::markdown_text("a_b*[x](y)<z>") == "a\\_b\\*\\[x\\](y)\\<z\\>");
}

}  // namespace memprof_tests::report_markdown
