#include <memprof/detail/error.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/step_analysis.hpp>
#include <memprof/toolkit/analysis/step_analysis_json.hpp>
#include <memprof/trace/device_description.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_step_analysis {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::analyze_spaces;
using memprof::analyzed_space;
using memprof::step_question;

namespace {

/// A profile with spaces of these names, whose peaks are 100, 200, ...
memprof::profile with_spaces(const std::vector<std::string>& names) {
  memprof::profile made;
  for (const std::string& name : names) {
    memprof::space_profile& space = made.spaces.emplace_back();
    space.name = name;
    space.cumulative_peak = 100 * static_cast<std::int64_t>(made.spaces.size());
  }
  return made;
}

/// Names of the spaces, each with the memory that its peak is compared with.
std::vector<std::pair<std::string, std::optional<std::int64_t>>> found(const std::vector<analyzed_space>& analyzed) {
  std::vector<std::pair<std::string, std::optional<std::int64_t>>> pairs;
  for (const analyzed_space& each : analyzed) pairs.emplace_back(each.usage().name, each.breakdown.device_memory);
  return pairs;
}

using pairs = std::vector<std::pair<std::string, std::optional<std::int64_t>>>;

memprof::device_space memory(std::string_view name, std::int64_t capacity, bool is_per_core = false) {
  memprof::device_space space;
  space.name = memprof::short_name{name};
  space.capacity = capacity;
  space.is_per_core = is_per_core;
  return space;
}

}  // namespace

TEST_CASE("step analysis: without a name it is of the space that summaries lead with") {
  CHECK(found(analyze_spaces(with_spaces({"cpu", "cuda:0", "cuda:1"}), {})) == pairs{{"cuda:0", std::nullopt}});
  CHECK(found(analyze_spaces(with_spaces({"cpu", "cuda:0", "dram"}), {})) == pairs{{"dram", std::nullopt}});
  CHECK(found(analyze_spaces(with_spaces({"cpu"}), {})) == pairs{{"cpu", std::nullopt}});
}

TEST_CASE("step analysis: a space by its name, and all of them") {
  step_question question;
  question.space = "cpu";
  const std::vector<analyzed_space> one = analyze_spaces(with_spaces({"cuda:0", "cpu"}), question);
  CHECK(found(one) == pairs{{"cpu", std::nullopt}});
  CHECK(one[0].breakdown.peak == 200);
  question.space = "all";
  CHECK(found(analyze_spaces(with_spaces({"cuda:0", "cpu"}), question)) ==
        pairs{{"cuda:0", std::nullopt}, {"cpu", std::nullopt}});
  question.space = "cuda:7";
  CHECK_THROWS_MATCHES(analyze_spaces(with_spaces({"cuda:0", "cpu"}), question), memprof::error,
                       MessageMatches(ContainsSubstring("cuda:7")));
  CHECK_THROWS_MATCHES(analyze_spaces({}, {}), memprof::error, MessageMatches(ContainsSubstring("no memory space")));
}

TEST_CASE("step analysis: no line of the text is wider than asked, and none is changed without") {
  memprof::profile made = with_spaces({"cuda:0", std::string(90, 's')});
  made.provenance.file = "runs/" + std::string(120, 'f') + ".json";
  made.segment_count = 1;
  made.segments.emplace_back().name = "A long name of a segment, with blanks, " + std::string(70, 'n');
  for (memprof::space_profile& space : made.spaces) space.segments.emplace_back().segment = made.segments[0].name;
  step_question question;
  question.space = "all";
  memprof::step_analysis all;
  all.spaces = analyze_spaces(std::move(made), question);
  const std::string whole = to_text(all, {});
  CHECK(whole == to_text(all.spaces, {}));
  CHECK_THAT(whole, ContainsSubstring(std::string(80, '=') + "\n") && ContainsSubstring(std::string(70, 'n')));
  for (const std::size_t columns : {60U, 80U, 100U}) {
    const std::string text = to_text(all, {}, columns);
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(memprof::detail::display_width(line) <= columns);
      CHECK(!line.ends_with(' '));
    }
    CHECK_THAT(text, ContainsSubstring("pass --model-size") && ContainsSubstring("A long"));
  }
}

TEST_CASE("step analysis: the device's memory is not that of the host") {
  step_question question;
  question.space = "all";
  question.sizes.device_memory = 150;
  CHECK(found(analyze_spaces(with_spaces({"cpu", "cuda:0"}), question)) == pairs{{"cpu", std::nullopt}, {"cuda:0", 150}});
  question.space = "cpu";  // asked for
  CHECK(found(analyze_spaces(with_spaces({"cpu", "cuda:0"}), question)) == pairs{{"cpu", 150}});
}

TEST_CASE("step analysis: a described device has the memory of its spaces' names, and else that of tensors for the leading one") {
  step_question question;
  question.space = "all";
  question.device.emplace();
  question.device->add(memory("dram", 1000)).add(memory("l1", 10, true)).add(memory("trace", 500));
  CHECK(found(analyze_spaces(with_spaces({"cpu", "cuda:0"}), question)) == pairs{{"cpu", std::nullopt}, {"cuda:0", 1000}});
  CHECK(found(analyze_spaces(with_spaces({"cpu", "dram", "l1", "trace"}), question)) ==
        pairs{{"cpu", std::nullopt}, {"dram", 1000}, {"l1", std::nullopt}, {"trace", 500}});
}

TEST_CASE("step analysis: all fit only if each known peak does; without a device nothing is said") {
  step_question question;
  question.space = "all";
  CHECK(memprof::all_fit(analyze_spaces(with_spaces({"dram", "trace"}), question)) == std::nullopt);
  question.device.emplace();
  question.device->add(memory("dram", 100)).add(memory("trace", 200));
  CHECK(memprof::all_fit(analyze_spaces(with_spaces({"dram", "trace", "cpu"}), question)) == std::optional{true});
  question.device.emplace();
  question.device->add(memory("dram", 100)).add(memory("trace", 199));
  CHECK(memprof::all_fit(analyze_spaces(with_spaces({"dram", "trace", "cpu"}), question)) == std::optional{false});
}

TEST_CASE("step analysis: causes stand under their file, in text and in JSON, and there is no key without any") {
  memprof::step_analysis analysis;
  analysis.spaces = analyze_spaces(with_spaces({"cuda:0"}), {});
  const std::string alone = to_text(analysis, {});
  CHECK(alone == to_text(analysis.spaces, memprof::breakdown_options{}));
  CHECK_FALSE(to_json(analysis).contains("reserved_causes"));
  memprof::reserved_causes causes;
  causes.space = "cuda:0";
  analysis.causes = {{"a\nb.memtrace", {causes}}, {"c.memtrace", {causes, causes}}};
  const nlohmann::ordered_json document = to_json(analysis);
  REQUIRE(document.at("reserved_causes").size() == 3);
  CHECK(document.at("reserved_causes")[0].at("file") == "a\nb.memtrace");
  CHECK(document.at("reserved_causes")[1].at("file") == "c.memtrace");
  CHECK(document.at("reserved_causes")[2].at("space") == "cuda:0");
  const std::string text = to_text(analysis, {});
  CHECK(text.starts_with(alone));
  CHECK_THAT(text, ContainsSubstring("\na\\nb.memtrace\n") && ContainsSubstring("\nc.memtrace\n"));
}

}  // namespace memprof_tests::analysis_step_analysis
