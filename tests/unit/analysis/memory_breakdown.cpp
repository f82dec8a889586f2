#include <memprof/analysis/memory_breakdown.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <string>

using memprof::break_down;
using memprof::memory_breakdown;
using memprof::memory_summary;
using memprof::peak_part;

namespace {

/// A summary whose cumulative values follow from peaks and changes.
class training {
 public:
  training& phase(const std::string& name, std::int64_t peak, std::int64_t change) {
    memprof::segment_usage segment;
    segment.segment = name;
    segment.segment_peak = peak;
    segment.segment_change = change;
    if (current_ + peak > summary_.overall_peak) {
      summary_.overall_peak = current_ + peak;
      summary_.peak_segment = summary_.segments.size();
    }
    current_ += change;
    segment.cumulative_peak = summary_.overall_peak;
    segment.cumulative_current = current_;
    summary_.final_usage = current_;
    summary_.segments.push_back(segment);
    return *this;
  }

  training& parameters(std::int64_t count) {
    summary_.parameters = count;
    return *this;
  }

  [[nodiscard]] const memory_summary& summary() const { return summary_; }

 private:
  memory_summary summary_;
  std::int64_t current_ = 0;
};

training one_step() {
  return training{}
      .phase("MODEL_CREATION", 110, 100)
      .phase("OPTIMIZER_CREATION", 200, 200)
      .phase("FORWARD_PASS", 55, 50)
      .phase("BACKWARD_PASS", 80, 60);
}

bool remarks(const memory_breakdown& breakdown, const std::string& part) {
  for (const std::string& remark : breakdown.remarks) {
    if (remark.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("breakdown: sizes are those of the script's definitions") {
  const memory_breakdown result = break_down(one_step().parameters(48).summary());
  CHECK(result.model.actual == 100);
  CHECK(result.model.expected == 96);  // two bytes a parameter
  CHECK(result.optimizer.actual == 200);
  CHECK(result.optimizer.expected == 192);
  CHECK(result.activations == 50);
  CHECK(result.gradients.actual == 110);  // 410 after the backward pass, 300 after the optimizer
  CHECK(result.gradients.expected == 96);
  CHECK(result.peak == 430);  // 350 before the backward pass, and 80
  CHECK(result.device_memory == 12'884'901'888);
  CHECK(*result.model.difference_percent() == Catch::Approx(100.0 * 4 / 96));
  CHECK(result.remarks.empty());
}

TEST_CASE("breakdown: the peak's parts have the expected sizes, or the measured ones on request") {
  const memory_summary summary = one_step().parameters(48).summary();
  const memory_breakdown expected = break_down(summary);
  CHECK(expected.part(peak_part::model) == 96);
  CHECK(expected.part(peak_part::optimizer) == 192);
  CHECK(expected.part(peak_part::activations) == 50);
  CHECK(expected.part(peak_part::gradients) == 80);
  CHECK(expected.part(peak_part::other) == 430 - 96 - 192 - 50 - 80);
  CHECK(expected.excess() == 0);

  const memory_breakdown actual = break_down(summary, {.use_actual_sizes = true});
  CHECK(actual.part(peak_part::model) == 100);
  CHECK(actual.part(peak_part::optimizer) == 200);
  CHECK(actual.part(peak_part::other) == 0);
  CHECK(actual.accounted() == 430);
}

TEST_CASE("breakdown: the device memory is what is given, or else a profile's capacity, or else 12 GiB") {
  using memprof::device_memory_source;
  memory_summary summary = one_step().summary();
  CHECK(break_down(summary).device_memory_from == device_memory_source::assumed);
  summary.capacity = 860;
  CHECK(break_down(summary).device_memory == 860);
  CHECK(break_down(summary).device_memory_from == device_memory_source::profile);
  CHECK(!remarks(break_down(summary), "capacity of 860 bytes"));
  const memory_breakdown given = break_down(summary, {.device_memory = 1000});
  CHECK(given.device_memory == 1000);
  CHECK(given.device_memory_from == device_memory_source::option);
  CHECK(remarks(given, "capacity of 860 bytes"));
  CHECK(!remarks(break_down(summary, {.device_memory = 860}), "capacity of 860 bytes"));
}

TEST_CASE("breakdown: given sizes come before computed ones") {
  memprof::breakdown_options options;
  options.model_size = 1000;
  CHECK(break_down(one_step().parameters(48).summary(), options).optimizer.expected == 2000);
  CHECK(break_down(one_step().parameters(48).summary(), options).gradients.expected == 1000);
  options.optimizer_size = 7;
  options.gradients_size = 0;
  options.device_memory = 860;
  const memory_breakdown result = break_down(one_step().summary(), options);
  CHECK(result.optimizer.expected == 7);
  CHECK(result.gradients.expected == 0);
  CHECK(result.gradients.difference_percent() == 0.0);  // as the script says, where nothing is expected
  CHECK(*result.usage_percent() == Catch::Approx(50.0));
}

TEST_CASE("breakdown: a peak fits a device that is as large, and whether a negative one fits is unknown") {
  memory_summary summary = one_step().summary();
  REQUIRE(summary.overall_peak == 430);
  CHECK(break_down(summary, {.device_memory = 430}).fits() == true);
  CHECK(break_down(summary, {.device_memory = 429}).fits() == false);
  summary.overall_peak = -1;
  CHECK(!break_down(summary, {.device_memory = 430}).fits());
  CHECK(!break_down(summary, {.device_memory = 430}).usage_percent());
}

TEST_CASE("breakdown: where no model size is known, nothing is expected and the peak is divided as measured") {
  const memory_breakdown result = break_down(one_step().summary());
  CHECK(!result.model.expected);
  CHECK(!result.optimizer.expected);
  CHECK(!result.gradients.expected);
  CHECK(!result.model.difference_percent());
  CHECK(result.part(peak_part::model) == 100);
  CHECK(result.part(peak_part::optimizer) == 200);
  CHECK(remarks(result, "divided with the measured size of the model"));
}

TEST_CASE("breakdown: micro-batches keep the activations of one run of forward passes, and the gradients of all") {
  const memory_breakdown result = break_down(training{}
                                                 .phase("MODEL_CREATION", 100, 100)
                                                 .phase("OPTIMIZER_CREATION", 200, 200)
                                                 .phase("FORWARD_PASS_micro_0", 55, 50)
                                                 .phase("BACKWARD_PASS_micro_0", 80, 60)
                                                 .phase("FORWARD_PASS_micro_1", 45, 40)
                                                 .phase("BACKWARD_PASS_micro_1", 10, -38)
                                                 .summary());
  CHECK(result.activations == 50);
  CHECK(result.gradients.actual == 60 + 50 - 38 + 40);
  CHECK(result.part(peak_part::gradients) == 80);
}

TEST_CASE("breakdown: forward passes that follow each other keep their activations together") {
  const memory_breakdown result = break_down(training{}
                                                 .phase("FORWARD_PASS", 50, 50)
                                                 .phase("FORWARD_PASS", 40, 40)
                                                 .phase("BACKWARD_PASS", 5, -90)
                                                 .phase("FORWARD_PASS", 70, 70)
                                                 .summary());
  CHECK(result.activations == 90);
}

TEST_CASE("breakdown: a model made in two segments is their sum") {
  CHECK(break_down(training{}.phase("MODEL_CREATION", 5, 5).phase("MODEL_CREATION", 7, 6).summary()).model.actual == 11);
}

TEST_CASE("breakdown: missing phases leave out what they would tell, and are named") {
  const memory_breakdown result = break_down(training{}.phase("MODEL_LOAD", 10, 10).phase("FORWARD_PASS", 5, 5).summary());
  CHECK(!result.model.actual);
  CHECK(!result.optimizer.actual);
  CHECK(!result.gradients.actual);
  CHECK(result.activations == 5);
  CHECK(result.part(peak_part::other) == 10);
  CHECK(remarks(result, "no segment MODEL_CREATION, OPTIMIZER_CREATION, BACKWARD_PASS"));
  CHECK(break_down(memory_summary{}).peak == 0);
}

TEST_CASE("breakdown: parts above the peak are told as an excess, and other is not negative") {
  memprof::breakdown_options options;
  options.model_size = 200;
  const memory_breakdown result = break_down(one_step().summary(), options);
  CHECK(result.accounted() == 200 + 400 + 50 + 80);
  CHECK(result.excess() == 730 - 430);
  CHECK(result.part(peak_part::other) == 0);
}

TEST_CASE("breakdown: a forward pass that frees more than it allocates has negative activations") {
  const memory_breakdown result = break_down(
      training{}.phase("MODEL_CREATION", 100, 100).phase("FORWARD_PASS", 0, -30).phase("BACKWARD_PASS", 0, 0).summary());
  CHECK(result.activations == -30);
  CHECK(result.part(peak_part::other) == 30);
}

TEST_CASE("breakdown: a peak outside the backward pass is told, as its division mixes two moments") {
  const memory_breakdown result = break_down(
      training{}.phase("MODEL_CREATION", 100, 100).phase("FORWARD_PASS", 90, 50).phase("BACKWARD_PASS", 20, 0).summary());
  CHECK(remarks(result, "the peak is in FORWARD_PASS, not in a backward pass"));
  CHECK(!remarks(break_down(one_step().summary()), "not in a backward pass"));
}

TEST_CASE("breakdown: with a profile's categories the parts are what was live at the peak") {
  memory_summary summary = one_step().parameters(48).summary();
  memprof::live_set& live = summary.live_at_peak.emplace();
  live.bytes = 430;
  live.by_category = {{"optimizer_state", 190, 2}, {"parameter", 95, 3}, {"activation", 60, 1}, {"gradient", 55, 1},
                      {"temporary", 20, 1},        {"input", 7, 1},      {"other", 3, 1}};
  const memory_breakdown result = break_down(summary);
  CHECK(result.parts_are_live_at_peak);
  CHECK(result.part(peak_part::optimizer) == 190);
  CHECK(result.part(peak_part::model) == 95);
  CHECK(result.part(peak_part::activations) == 60);
  CHECK(result.part(peak_part::gradients) == 55);
  CHECK(result.part(peak_part::other) == 30);
  CHECK(result.accounted() + result.part(peak_part::other) == result.peak);
  CHECK(remarks(result, "other is of the categories temporary, input, other"));
}

TEST_CASE("breakdown: a profile without categories is divided by its phases") {
  memory_summary summary = one_step().summary();
  summary.live_at_peak.emplace().by_category = {{"other", 430, 9}};
  const memory_breakdown result = break_down(summary, {.use_actual_sizes = true});
  CHECK(!result.parts_are_live_at_peak);
  CHECK(result.part(peak_part::model) == 100);
  CHECK(remarks(result, "no block of the profile has a category"));
}

TEST_CASE("breakdown: sums of impossible numbers stay at the ends, they do not wrap") {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  memory_summary summary;
  summary.segments.resize(4);
  for (memprof::segment_usage& segment : summary.segments) {
    segment.segment_change = greatest;
    segment.segment_peak = greatest;
    segment.cumulative_current = -greatest;
  }
  summary.segments[0].segment = "MODEL_CREATION";
  summary.segments[1].segment = "MODEL_CREATION";
  summary.segments[2].segment = "OPTIMIZER_CREATION";
  summary.segments[3].segment = "BACKWARD_PASS";
  summary.segments[3].cumulative_current = greatest;
  const memory_breakdown result = break_down(summary, {.use_actual_sizes = true});
  CHECK(result.model.actual == greatest);
  CHECK(result.gradients.actual == greatest);
  CHECK(result.accounted() == greatest);
}
