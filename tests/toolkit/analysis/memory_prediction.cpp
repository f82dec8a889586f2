#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/library_workspace.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_json.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/event.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::analysis_memory_prediction {

using memprof::device_preset;
using memprof::memory_part;
using memprof::memory_prediction;
using memprof::predict_fit;
using memprof::predict_memory;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A run with blocks of these bytes at its peak in cuda:0.
memprof::profile run_with(std::vector<memprof::owned_bytes> categories) {
  memprof::profile run;
  memprof::space_profile space;
  space.name = "cuda:0";
  for (const memprof::owned_bytes& row : categories) {
    space.cumulative_peak += row.bytes;
    space.live_at_peak.by_category.push_back(row);
  }
  run.spaces.push_back(space);
  return run;
}

memprof::device_description card(std::int64_t capacity) {
  memprof::device_description device;
  device.name = "card";
  return device.add({.name = "cuda:0", .capacity = capacity});
}

std::int64_t bytes_of(const memory_prediction& prediction, std::string_view name) {
  for (const memory_part& part : prediction.parts) {
    if (part.name == name) return part.bytes;
  }
  return 0;
}

/// Judges a run of one block, which the allocator takes from the device as it is: it has at least 10 MiB, in whole 2 MiB.
memprof::predicted_fit fit_of(std::int64_t bytes, const memprof::device_description& device,
                              std::optional<std::int64_t> context = {}) {
  memprof::allocation_sequence sequence{0};
  const memprof::extend::event next{0, 0x1000, static_cast<std::uint64_t>(bytes), 0, memprof::extend::event_kind::allocate, 0, 0};
  sequence.events(&next, &next + 1, 1);
  return predict_fit(sequence, run_with({{"activation", bytes}}), "cuda:0", device, {}, context);
}

}  // namespace

TEST_CASE("memory prediction: the parts are the categories, what the allocator adds, and the context") {
  memprof::profile run = run_with({{"parameter", 100}, {"gradient", 90}, {"optimizer_state", 200}, {"other", 50}});
  run.facts.push_back(memprof::extend::to_table<memprof::library_workspace>(
      {{"cuda:0", "cuBLAS", 20}, {"cuda:0", "cuBLASLt", 10}, {"cuda:1", "cuBLAS", 7}}));
  const memory_prediction made = predict_memory(run, "cuda:0", 600, card(10'000), 1'000);
  CHECK(made.parts == std::vector<memory_part>{{"CUDA context", 1'000, 1'000, 1'000, false},
                                               {"cuBLAS workspaces", 30, 30, 30},
                                               {"parameters", 100, 100, 100},
                                               {"gradients", 90, 90, 90},
                                               {"optimizer state", 200, 200, 200},
                                               {"other tensors", 20, 20, 20},
                                               {"rounding and fragmentation", 160, 160, 160}});
  CHECK(made.reserved() == 600);
  CHECK(made.besides() == 1'000);
  CHECK(made.total() == 1'600);
  CHECK(parts_text(made).starts_with("CUDA context < 0.01, "));
}

TEST_CASE("memory prediction: workspaces that were made after the peak are not among what was live there") {
  memprof::profile run = run_with({{"parameter", 100}, {"other", 50}});
  run.facts.push_back(memprof::extend::to_table<memprof::library_workspace>({{"cuda:0", "cuBLAS", 80}}));
  const memory_prediction made = predict_memory(run, "cuda:0", 150, card(10'000), 0);
  CHECK(bytes_of(made, "cuBLAS workspaces") == 50);
  CHECK(made.total() == 150);
}

TEST_CASE("memory prediction: the context is that of the preset's card, the user's number, or not known") {
  const memprof::profile run = run_with({{"activation", 5 * mib}});
  const memory_part known = predict_memory(run, "cuda:0", 0, device_preset("gpu-141gb")).parts.front();
  CHECK(known.bytes == 804'061'184);  // docs/accuracy_h200.md
  CHECK(known.most == 804'061'184);
  CHECK(known.least == 648'871'936);
  CHECK_FALSE(known.source.empty());

  const memory_part said = predict_memory(run, "cuda:0", 0, device_preset("gpu-141gb"), 7 * mib).parts.front();
  CHECK(said == memory_part{"CUDA context", 7 * mib, 7 * mib, 7 * mib, false});

  // Another device with that name, whose capacity is not the preset's.
  memprof::device_description other = device_preset("gpu-141gb");
  other.spaces[0].capacity /= 2;
  for (const memprof::device_description& unknown : {other, card(8'000 * mib), device_preset("wormhole-12gb")}) {
    const memory_prediction made = predict_memory(run, "cuda:0", 6 * mib, unknown);
    CHECK_FALSE(made.parts.front().is_known());
    CHECK(made.total() == 6 * mib);
    CHECK(sources_text(made) == std::vector<std::string>{"CUDA context: not known for this device, and not counted"});
    CHECK(to_json(made).at(0).at("most_bytes").is_null());
  }
}

TEST_CASE("memory prediction: each preset of a GPU has a context, and it is named who measured it") {
  for (const std::string_view name : memprof::device_preset_names) {
    const memprof::cuda_context context = memprof::cuda_context_of(device_preset(name));
    INFO(name);
    CHECK(context.is_known() == name.starts_with("gpu-"));
    CHECK(context.least <= context.bytes);
  }
}

TEST_CASE("memory prediction: what cuDNN takes is an interval where it was measured, and else said not to be known") {
  memprof::profile run = run_with({{"activation", 5 * mib}});
  run.facts.push_back(memprof::extend::to_table<memprof::approximated_operation>({{"aten::convolution", "its workspace", 3, 0}}));
  const memory_prediction measured = predict_memory(run, "cuda:0", 6 * mib, device_preset("gpu-40gb"));
  CHECK(measured.parts.back().name == "cuDNN workspaces");
  CHECK(measured.besides() == (1'669 + 148) * mib);  // docs/accuracy_gpu.md
  CHECK(measured.most_besides() == (1'669 + 1'274) * mib);
  CHECK(measured.least_besides() == (498 + 22) * mib);
  CHECK(measured.total() == measured.besides() + 6 * mib);

  const memory_prediction unknown = predict_memory(run, "cuda:0", 6 * mib, device_preset("gpu-24gb"));
  CHECK(unknown.besides() == 504 * mib);
  CHECK(sources_text(unknown).back() == "cuDNN workspaces: not known for this device, and not counted");
  CHECK(predict_memory(run_with({}), "cuda:0", 0, device_preset("gpu-24gb")).parts.size() == 1);
}

TEST_CASE("memory prediction: a run fits beside the context, and certainly if the answer is the same with all that is known") {
  const memprof::device_description device = device_preset("gpu-24gb");
  const std::int64_t capacity = device.tensor_space().capacity;
  REQUIRE(capacity == 24'207 * mib);
  // 24,207 - 504 = 23,703, and 24,207 - 473 = 23,734; blocks have whole 2 MiB.
  const auto judged = [&](std::int64_t mebibytes) {
    const memprof::predicted_fit made = fit_of(mebibytes * mib, device);
    CHECK(made.prediction.total() == (mebibytes + 504) * mib);
    CHECK(made.fit.first_failure.has_value() != made.fits());
    return std::string{made.is_certain ? "" : "probably "} + (made.fits() ? "fits" : "does not fit");
  };
  CHECK(judged(23'702) == "fits");
  CHECK(judged(23'704) == "probably does not fit");
  CHECK(judged(23'734) == "probably does not fit");
  CHECK(judged(23'736) == "does not fit");
  CHECK(judged(24'206) == "does not fit");
}

TEST_CASE("memory prediction: what is not known is not counted against a device") {
  const memprof::predicted_fit made = fit_of(100 * mib, card(100 * mib));
  CHECK(made.fits());
  CHECK(made.is_certain);
  CHECK_FALSE(fit_of(100 * mib, card(100 * mib), mib).fits());
  CHECK_FALSE(fit_of(20 * mib, card(100 * mib), 200 * mib).fits());
}

TEST_CASE("memory prediction: in words, the parts have the unit of their sum, and sources their interval") {
  const memory_prediction made = fit_of(2'048 * mib, device_preset("gpu-24gb")).prediction;
  CHECK(parts_text(made) == "CUDA context 0.492, activations 2.00 GiB");
  CHECK(sources_text(made) ==
        std::vector<std::string>{"CUDA context 473 MiB to 504 MiB: 3 published out-of-memory messages, RTX 4090"});
  CHECK(memprof::parts_text({}).empty());
}

TEST_CASE("memory prediction: what private pools hold free is a part of its own") {
  const memory_prediction made = predict_memory(run_with({{"activation", 100}}), "cuda:0", 600, card(10'000), 0, {}, 300);
  CHECK(bytes_of(made, "free in private pools") == 300);
  CHECK(bytes_of(made, "rounding and fragmentation") == 200);
  CHECK(made.reserved() == 600);
  // Where most is live, the pools may have held less.
  CHECK(predict_memory(run_with({{"activation", 400}}), "cuda:0", 600, card(10'000), 0, {}, 300).reserved() == 600);
}

}  // namespace memprof_tests::analysis_memory_prediction
