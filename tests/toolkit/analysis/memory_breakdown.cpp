#include <memprof/toolkit/analysis/memory_breakdown.hpp>

#include <memprof/detail/vector.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace memprof_tests::analysis_memory_breakdown {

using memprof::memory_breakdown;
using memprof::peak_part;

namespace {

/// The breakdown of a profile's first space.
memory_breakdown break_down(const memprof::profile& profile, const memprof::breakdown_options& options = {}) {
  return memprof::break_down(profile, profile.spaces.front(), options);
}

/// A profile as a log gives it, whose cumulative values follow from peaks and changes.
class training {
 public:
  training() {
    profile_.exact = true;
    profile_.complete = true;
    profile_.provenance.format = "tracker_log";
    profile_.provenance.rounding = 10486;
    profile_.provenance.absent = {"live_at_peak"};
    profile_.spaces.emplace_back().name = "dram";
  }

  training& phase(const std::string& name, std::int64_t peak, std::int64_t change) {
    memprof::segment_usage segment;
    segment.segment = name;
    segment.segment_peak = peak;
    segment.segment_change = change;
    memprof::space_profile& space = profile_.spaces.front();
    if (space.cumulative_current + peak > space.cumulative_peak) {
      space.cumulative_peak = space.cumulative_current + peak;
      space.peak_segment = static_cast<std::int64_t>(space.segments.size());
    }
    space.cumulative_current += change;
    segment.cumulative_peak = space.cumulative_peak;
    segment.cumulative_current = space.cumulative_current;
    space.segments.push_back(segment);
    profile_.segments.push_back({name, 0, 0});
    return *this;
  }

  training& parameters(std::int64_t count) {
    profile_.facts = {memprof::extend::to_table<memprof::model_parameters>({{count}})};
    return *this;
  }

  /// What was live at the peak of the last segment, or of the whole capture.
  training& live_at_last_peak(memprof::vector<memprof::owned_bytes> by_category) {
    profile_.spaces.front().segments.back().live_at_peak.by_category = std::move(by_category);
    return *this;
  }
  training& live_at_overall_peak(memprof::vector<memprof::owned_bytes> by_category) {
    profile_.provenance = {};
    profile_.spaces.front().live_at_peak.by_category = std::move(by_category);
    return *this;
  }

  [[nodiscard]] const memprof::profile& profile() const { return profile_; }

 private:
  memprof::profile profile_;
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
  const memory_breakdown result = break_down(one_step().parameters(48).profile());
  CHECK(result.model.actual == 100);
  CHECK(result.model.expected == 96);  // two bytes a parameter
  CHECK(result.optimizer.actual == 200);
  CHECK(result.optimizer.expected == 192);
  CHECK(result.activations.actual == 50);
  CHECK(result.gradients.actual == 110);  // 410 after the backward pass, 300 after the optimizer
  CHECK(result.gradients.expected == 96);
  CHECK(result.peak == 430);  // 350 before the backward pass, and 80
  CHECK(result.model.from == memprof::size_source::phases);
  CHECK(*result.model.difference_percent() == Catch::Approx(100.0 * 4 / 96));
  CHECK(result.remarks.empty());
}

TEST_CASE("breakdown: the peak's parts have the expected sizes, or the measured ones on request") {
  const memprof::profile summary = one_step().parameters(48).profile();
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

TEST_CASE("breakdown: the device memory is what is given, or else a profile's capacity, or else unknown, and so is the fit") {
  using memprof::device_memory_source;
  memprof::profile profile = one_step().profile();
  profile.provenance.format.clear();
  const memory_breakdown nameless = break_down(profile);
  CHECK(nameless.device_memory_from == device_memory_source::none);
  CHECK(!nameless.device_memory);
  CHECK(!nameless.fits());
  CHECK(!nameless.usage_percent());
  profile.spaces.front().capacity = 860;
  CHECK(break_down(profile).device_memory == 860);
  CHECK(break_down(profile).device_memory_from == device_memory_source::profile);
  CHECK(!remarks(break_down(profile), "capacity of 860 bytes"));
  const memory_breakdown given = break_down(profile, {.device_memory = 1000});
  CHECK(given.device_memory == 1000);
  CHECK(given.device_memory_from == device_memory_source::option);
  CHECK(remarks(given, "capacity of 860 bytes"));
  CHECK(!remarks(break_down(profile, {.device_memory = 860}), "capacity of 860 bytes"));
  profile.spaces.front().capacity_is_per_core = true;
  CHECK(!break_down(profile).device_memory);
  // analyze_memory.py, which reads the tracker's logs, assumes 12 * 1024^3 bytes.
  profile.provenance.format = "tracker_log";
  CHECK(break_down(profile).device_memory == 12'884'901'888);
  CHECK(break_down(profile).device_memory_from == device_memory_source::assumed);
  profile.provenance.format = "summary_text";
  CHECK(!break_down(profile).device_memory);
}

TEST_CASE("breakdown: given sizes come before computed ones") {
  memprof::breakdown_options options;
  options.model_size = 1000;
  CHECK(break_down(one_step().parameters(48).profile(), options).optimizer.expected == 2000);
  CHECK(break_down(one_step().parameters(48).profile(), options).gradients.expected == 1000);
  options.optimizer_size = 7;
  options.gradients_size = 0;
  options.device_memory = 860;
  const memory_breakdown result = break_down(one_step().profile(), options);
  CHECK(result.optimizer.expected == 7);
  CHECK(result.gradients.expected == 0);
  CHECK(result.gradients.difference_percent() == 0.0);  // as the script says, where nothing is expected
  CHECK(*result.usage_percent() == Catch::Approx(50.0));
}

TEST_CASE("breakdown: a peak fits a device that is as large, and whether a negative one fits is unknown") {
  memprof::profile profile = one_step().profile();
  REQUIRE(profile.spaces.front().cumulative_peak == 430);
  CHECK(break_down(profile, {.device_memory = 430}).fits() == true);
  CHECK(break_down(profile, {.device_memory = 429}).fits() == false);
  profile.spaces.front().cumulative_peak = -1;
  CHECK(!break_down(profile, {.device_memory = 430}).fits());
  CHECK(!break_down(profile, {.device_memory = 430}).usage_percent());
}

TEST_CASE("breakdown: where no model size is known, nothing is expected and the peak is divided as measured") {
  const memory_breakdown result = break_down(one_step().profile());
  CHECK(!result.model.expected);
  CHECK(!result.optimizer.expected);
  CHECK(!result.gradients.expected);
  CHECK(!result.model.difference_percent());
  CHECK(result.part(peak_part::model) == 100);
  CHECK(result.part(peak_part::optimizer) == 200);
  CHECK(remarks(result, "divided using the measured size of the model"));
}

TEST_CASE("breakdown: micro-batches keep the activations of one run of forward passes, and the gradients of all") {
  const memory_breakdown result = break_down(training{}
                                                 .phase("MODEL_CREATION", 100, 100)
                                                 .phase("OPTIMIZER_CREATION", 200, 200)
                                                 .phase("FORWARD_PASS_micro_0", 55, 50)
                                                 .phase("BACKWARD_PASS_micro_0", 80, 60)
                                                 .phase("FORWARD_PASS_micro_1", 45, 40)
                                                 .phase("BACKWARD_PASS_micro_1", 10, -38)
                                                 .profile());
  CHECK(result.activations.actual == 50);
  CHECK(result.gradients.actual == 60 + 50 - 38 + 40);
  CHECK(result.part(peak_part::gradients) == 80);
}

TEST_CASE("breakdown: forward passes that follow each other keep their activations together") {
  const memory_breakdown result = break_down(training{}
                                                 .phase("FORWARD_PASS", 50, 50)
                                                 .phase("FORWARD_PASS", 40, 40)
                                                 .phase("BACKWARD_PASS", 5, -90)
                                                 .phase("FORWARD_PASS", 70, 70)
                                                 .profile());
  CHECK(result.activations.actual == 90);
}

TEST_CASE("breakdown: a model made in two segments is their sum") {
  CHECK(break_down(training{}.phase("MODEL_CREATION", 5, 5).phase("MODEL_CREATION", 7, 6).profile()).model.actual == 11);
}

TEST_CASE("breakdown: missing phases leave out what they would tell, and are named") {
  const memory_breakdown result = break_down(training{}.phase("MODEL_LOAD", 10, 10).phase("FORWARD_PASS", 5, 5).profile());
  CHECK(!result.model.actual);
  CHECK(!result.optimizer.actual);
  CHECK(!result.gradients.actual);
  CHECK(result.activations.actual == 5);
  CHECK(result.part(peak_part::other) == 10);
  CHECK(remarks(result, "no segment MODEL_CREATION, OPTIMIZER_CREATION, BACKWARD_PASS"));
  CHECK(break_down(training{}.profile()).peak == 0);
}

TEST_CASE("breakdown: parts above the peak are reported as an excess, and other is not negative") {
  memprof::breakdown_options options;
  options.model_size = 200;
  const memory_breakdown result = break_down(one_step().profile(), options);
  CHECK(result.accounted() == 200 + 400 + 50 + 80);
  CHECK(result.excess() == 730 - 430);
  CHECK(result.part(peak_part::other) == 0);
}

TEST_CASE("breakdown: a forward pass that frees more than it allocates has negative activations") {
  const memory_breakdown result = break_down(
      training{}.phase("MODEL_CREATION", 100, 100).phase("FORWARD_PASS", 0, -30).phase("BACKWARD_PASS", 0, 0).profile());
  CHECK(result.activations.actual == -30);
  CHECK(result.part(peak_part::other) == 30);
}

TEST_CASE("breakdown: a peak outside the backward pass is reported, as its division mixes two moments") {
  const memory_breakdown result = break_down(
      training{}.phase("MODEL_CREATION", 100, 100).phase("FORWARD_PASS", 90, 50).phase("BACKWARD_PASS", 20, 0).profile());
  CHECK(remarks(result, "the peak is in FORWARD_PASS, not in a backward pass"));
  CHECK(!remarks(break_down(one_step().profile()), "not in a backward pass"));
}

TEST_CASE("breakdown: with a profile's categories the parts are what was live at the peak") {
  const memory_breakdown result = break_down(one_step()
                                                 .parameters(48)
                                                 .live_at_overall_peak({{"optimizer_state", 190, 2},
                                                                        {"parameter", 95, 3},
                                                                        {"activation", 60, 1},
                                                                        {"gradient", 55, 1},
                                                                        {"temporary", 20, 1},
                                                                        {"input", 7, 1},
                                                                        {"other", 3, 1}})
                                                 .profile());
  CHECK(result.parts_are_live_at_peak);
  CHECK(result.part(peak_part::optimizer) == 190);
  CHECK(result.part(peak_part::model) == 95);
  CHECK(result.part(peak_part::activations) == 60);
  CHECK(result.part(peak_part::gradients) == 55);
  CHECK(result.part(peak_part::other) == 30);
  CHECK(result.accounted() + result.part(peak_part::other) == result.peak);
  CHECK(remarks(result, "other consists of the categories temporary, input, other"));
}

TEST_CASE("breakdown: an optimizer that makes its state in the first step has the size of that state") {
  // As libtorch's Adam: nothing is allocated where it is made. The peak is in the second step's backward pass.
  const memory_breakdown result =
      break_down(training{}
                     .phase("MODEL_CREATION", 100, 100)
                     .phase("OPTIMIZER_CREATION", 0, 0)
                     .phase("FORWARD_PASS", 50, 50)
                     .phase("BACKWARD_PASS", 60, 50)
                     .phase("OPTIMIZER_STEP", 200, 200)
                     .live_at_last_peak({{"optimizer_state", 200, 2}, {"parameter", 100, 3}, {"gradient", 100, 1}})
                     .phase("FORWARD_PASS", 50, 50)
                     .live_at_overall_peak({{"optimizer_state", 200, 2}, {"parameter", 100, 3}, {"activation", 50, 1}})
                     .profile());
  CHECK(result.optimizer.actual == 200);
  CHECK(result.optimizer.from == memprof::size_source::categories);
  CHECK(result.part(peak_part::optimizer) == 200);
}

TEST_CASE("breakdown: with categories, neither a leak nor a batch is a gradient or an activation") {
  // The forward pass keeps 50 of activations, 7 of a batch and 3 that leak; the backward pass leaves 100 of gradients and
  // those 10.
  const memory_breakdown result = break_down(
      training{}
          .phase("MODEL_CREATION", 100, 100)
          .phase("OPTIMIZER_CREATION", 200, 200)
          .phase("FORWARD_PASS", 60, 60)
          .live_at_last_peak(
              {{"optimizer_state", 200, 2}, {"parameter", 100, 3}, {"activation", 50, 1}, {"input", 7, 1}, {"other", 3, 1}})
          .phase("BACKWARD_PASS", 100, 50)
          .live_at_overall_peak({{"optimizer_state", 200, 2},
                                 {"parameter", 100, 3},
                                 {"gradient", 100, 1},
                                 {"activation", 50, 1},
                                 {"input", 7, 1},
                                 {"other", 3, 1}})
          .profile());
  CHECK(result.gradients.actual == 100);  // by phases 410 - 300 = 110
  CHECK(result.activations.actual == 50);
}

TEST_CASE(
    "breakdown: a size without a block of its category comes from the phases, and only phases that would tell one are missed") {
  const memory_breakdown result =
      break_down(training{}
                     .phase("START", 100, 100)
                     .phase("OPTIMIZER_CREATION", 200, 200)
                     .live_at_overall_peak({{"parameter", 100, 3}, {"gradient", 9, 1}, {"activation", 5, 1}})
                     .profile());
  CHECK(result.model.from == memprof::size_source::categories);
  CHECK(result.optimizer.actual == 200);
  CHECK(result.optimizer.from == memprof::size_source::phases);
  CHECK(!remarks(result, "no segment"));
}

TEST_CASE("breakdown: a profile without categories is divided by its phases") {
  const memory_breakdown result =
      break_down(one_step().live_at_overall_peak({{"other", 430, 9}}).profile(), {.use_actual_sizes = true});
  CHECK(!result.parts_are_live_at_peak);
  CHECK(result.part(peak_part::model) == 100);
  CHECK(remarks(result, "no block live at the peak has a category"));
}

TEST_CASE("breakdown: of a long run, of which few segments are kept, phases have the sums and extremes of all") {
  memprof::profile profile = training{}
                                 .phase("MODEL_CREATION", 100, 100)
                                 .phase("OPTIMIZER_CREATION", 200, 200)
                                 .phase("FORWARD_PASS", 50, 50)
                                 .phase("FORWARD_PASS", 40, 40)
                                 .phase("BACKWARD_PASS", 80, 10)
                                 .profile();
  // The two forward passes are not neighbours: a thousand segments between them were not kept.
  profile.segment_count = 1005;
  for (std::size_t index = 0; index < 5; ++index) {
    profile.segments[index].number = static_cast<std::int64_t>(index < 3 ? index : index + 1000);
  }
  memprof::space_profile& space = profile.spaces.front();
  profile.segments_by_name.resize(3);
  space.segments_by_name.resize(3);
  space.segments_by_name[0].segment = "MODEL_CREATION";
  space.segments_by_name[0].segment_change.sum = 107;  // another was not kept
  space.segments_by_name[1].segment = "BACKWARD_PASS_micro_0";
  space.segments_by_name[1].cumulative_current.last = 900;
  space.segments_by_name[1].segment_peak.greatest = 81;
  profile.segments_by_name[1].last_number = 1004;
  space.segments_by_name[2].segment = "BACKWARD_PASS_micro_1";
  space.segments_by_name[2].cumulative_current.last = 700;
  space.segments_by_name[2].segment_peak.greatest = 95;
  profile.segments_by_name[2].last_number = 1003;
  space.segments_by_name.emplace_back().segment = "OPTIMIZER_CREATION";
  space.segments_by_name.back().cumulative_current.last = 300;
  const memory_breakdown result = break_down(profile);
  CHECK(result.model.actual == 107);
  CHECK(result.activations.actual == 50);
  CHECK(result.gradients.actual == 900 - 300);
  CHECK(result.part(peak_part::gradients) == 95);
}

TEST_CASE("breakdown: sums of impossible numbers stay at the ends, they do not wrap") {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  memprof::profile profile;
  profile.exact = true;
  memprof::space_profile& summary = profile.spaces.emplace_back();
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
  const memory_breakdown result = break_down(profile, {.use_actual_sizes = true});
  CHECK(result.model.actual == greatest);
  CHECK(result.gradients.actual == greatest);
  CHECK(result.accounted() == greatest);
}

}  // namespace memprof_tests::analysis_memory_breakdown
