#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/fit_text.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>

#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/event.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>

namespace memprof_tests::analysis_estimate_fit_search {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::decoder_model;
using memprof::find_fit;
using memprof::fit_answer;
using memprof::sought_size;
using memprof::training_setup;

namespace {

const decoder_model model{.layers = 2, .d_model = 16, .heads = 2, .vocabulary = 32};

/// A device whose tensors are as large as their elements.
memprof::device_description device_with(std::int64_t capacity, const char* space = "dram") {
  memprof::device_description device;
  device.name = "card";
  device.add({.name = space, .capacity = capacity});
  return device;
}

std::int64_t peak(const training_setup& setup) { return estimate_training_step(model, setup).space().cumulative_peak; }

}  // namespace

TEST_CASE("fit: the largest batch is the one that a linear peak has room for") {
  // Every activation has the batch as a factor, so the peak is a + b * batch.
  const std::int64_t one = peak({.batch_size = 1, .seq_len = 32});
  const std::int64_t slope = peak({.batch_size = 2, .seq_len = 32}) - one;
  REQUIRE(peak({.batch_size = 1000, .seq_len = 32}) == one + 999 * slope);
  for (const std::int64_t batch : {1, 2, 3, 7, 64, 1000}) {
    for (const std::int64_t spare : {std::int64_t{0}, slope - 1}) {
      const std::int64_t capacity = one + (batch - 1) * slope + spare;
      const fit_answer answer = find_fit(model, {.seq_len = 32, .device = device_with(capacity)}, sought_size::batch_size);
      CHECK(answer.size == batch);
      CHECK(answer.need == memprof::step_need{one + (batch - 1) * slope, std::nullopt, true});
      CHECK(answer.one_more == memprof::step_need{one + batch * slope, std::nullopt, false});
    }
  }
  const fit_answer none = find_fit(model, {.seq_len = 32, .device = device_with(one - 1)}, sought_size::batch_size);
  CHECK(none.size == 0);
  CHECK(none.need == memprof::step_need{one, std::nullopt, false});
  CHECK(!none.one_more);
}

TEST_CASE("fit: the longest sequence fits, and one longer does not, by trying all") {
  constexpr std::int64_t capacity = 1'000'000;
  std::int64_t longest = 0;
  while (peak({.batch_size = 2, .seq_len = longest + 1}) <= capacity) ++longest;
  const training_setup setup{.batch_size = 2, .device = device_with(capacity)};
  CHECK(find_fit(model, setup, sought_size::seq_len).size == longest);
  // A model may be made for no more.
  const fit_answer bounded = find_fit(model, setup, sought_size::seq_len, longest - 3);
  CHECK(bounded.size == longest - 3);
  CHECK(!bounded.one_more);
}

TEST_CASE("fit: a CUDA device is compared with what the caching allocator reserves, by trying all") {
  training_setup setup{.seq_len = 64, .device = device_with(64 << 20, "cuda:0")};
  std::int64_t largest = 0;
  for (setup.batch_size = 1; memprof::need_of(model, setup).fits; ++setup.batch_size) largest = setup.batch_size;
  const fit_answer answer = find_fit(model, setup, sought_size::batch_size);
  CHECK(answer.size == largest);
  REQUIRE(answer.need.reserved);
  CHECK(*answer.need.reserved >= answer.need.peak);
  CHECK(*answer.need.reserved <= 64 << 20);
  CHECK(*answer.need.reserved % (2 << 20) == 0);  // segments
  REQUIRE(answer.one_more);
  CHECK(*answer.one_more->reserved > 64 << 20);
  // Without the allocator more would fit.
  setup.device = device_with(64 << 20);
  CHECK(find_fit(model, setup, sought_size::batch_size).size > largest);
}

TEST_CASE("fit: the CUDA context is not the allocator's") {
  const memprof::device_description card = memprof::device_preset("gpu-24gb");
  const std::int64_t capacity = card.tensor_space().capacity;
  const std::int64_t context = memprof::cuda_context_of(card).bytes;
  // One block of whole 2 MiB, which the allocator takes as it is.
  const auto fits = [&](std::int64_t bytes) {
    memprof::allocation_sequence sequence{0};
    const memprof::extend::event next{0, 0x1000, static_cast<std::uint64_t>(bytes), 0, memprof::extend::event_kind::allocate,
                                      0, 0};
    sequence.events(&next, &next + 1, 1);
    return need_of(sequence, bytes, card).fits;
  };
  constexpr std::int64_t step = 2 << 20;
  const std::int64_t most = (capacity - context) / step * step;
  CHECK(fits(most));
  CHECK_FALSE(fits(most + step));
  CHECK(most + step < capacity);
}

TEST_CASE("fit: the parts of a step add up to what the allocator reserves and the context") {
  // Each tensor of parameters has a multiple of 512 bytes, to which the device would round.
  const decoder_model even{.layers = 2, .d_model = 128, .heads = 2, .vocabulary = 128};
  training_setup setup{.batch_size = 3, .seq_len = 64, .device = memprof::device_preset("gpu-24gb")};
  const memprof::predicted_fit step = memprof::predict_step(even, setup);
  const memprof::step_need need = memprof::need_of(even, setup);
  CHECK(step.prediction.reserved() == need.reserved);
  CHECK(step.prediction.besides() == memprof::cuda_context_of(setup.device).bytes);
  std::int64_t sum = 0;
  for (const memprof::memory_part& part : step.prediction.parts) sum += part.bytes;
  CHECK(sum == step.prediction.total());
  CHECK(sum == *need.reserved + step.prediction.besides());
  CHECK(step.fits() == need.fits);
  const memprof::memory_part& parameters = step.prediction.parts.at(1);
  CHECK(parameters.name == "parameters");
  CHECK(parameters.bytes == 4 * memprof::estimate_training_step(even, setup).parameters);  // float32
}

TEST_CASE("fit: NCCL's buffers are counted for each group of devices that communicates") {
  constexpr std::int64_t mib = 1 << 20;
  const auto counted = [](const memprof::parallel_degrees& parallel) {
    std::int64_t bytes = 0;
    for (const memprof::memory_part& part : memprof::nccl_parts(parallel)) bytes += part.bytes;
    return bytes;
  };
  CHECK(memprof::nccl_parts({}).empty());
  CHECK(counted({.data = 2}) == 544 * mib);  // as measured, NVIDIA/nccl#964
  CHECK(counted({.data = 4}) == 688 * mib);
  CHECK(counted({.tensor = 2, .pipeline = 4, .data = 8, .context = 1}) == (544 + 2 * 688) * mib);

  const decoder_model even{.layers = 2, .d_model = 128, .heads = 4, .vocabulary = 128};
  training_setup setup{.batch_size = 3, .seq_len = 64, .device = memprof::device_preset("gpu-24gb")};
  const std::int64_t context = memprof::cuda_context_of(setup.device).bytes;
  setup.parallel.data = 2;
  const memprof::predicted_fit step = memprof::predict_step(even, setup);
  const memprof::memory_part& part = step.prediction.parts.back();
  CHECK(part.name == "NCCL buffers");
  CHECK(part.least < part.bytes);
  CHECK(part.bytes < part.most);
  CHECK(step.prediction.besides() == context + 544 * mib);
  CHECK(step.prediction.reserved() == memprof::need_of(even, setup).reserved);

  // A block that fits beside the context alone does not beside NCCL, too.
  const std::int64_t capacity = setup.device.tensor_space().capacity;
  const auto fits_beside = [&](std::int64_t bytes, std::int64_t others) {
    memprof::allocation_sequence sequence{0};
    const memprof::extend::event next{0, 0x1000, static_cast<std::uint64_t>(bytes), 0, memprof::extend::event_kind::allocate,
                                      0, 0};
    sequence.events(&next, &next + 1, 1);
    return need_of(sequence, bytes, setup.device, others).fits;
  };
  CHECK(fits_beside(capacity - context - 600 * mib, 544 * mib));
  CHECK(fits_beside(capacity - context - 500 * mib, 0));
  CHECK_FALSE(fits_beside(capacity - context - 500 * mib, 544 * mib));
}

TEST_CASE("fit: recomputing blocks never fits less") {
  for (const std::int64_t capacity : {200'000, 1'000'000, 30'000'000}) {
    training_setup setup{.seq_len = 48, .device = device_with(capacity)};
    const std::int64_t kept = find_fit(model, setup, sought_size::batch_size).size;
    setup.recompute = memprof::recomputation_kind::blocks;
    CHECK(find_fit(model, setup, sought_size::batch_size).size >= kept);
  }
}

TEST_CASE("fit: a device without a capacity is refused") {
  CHECK_THROWS_MATCHES((void)find_fit(model, {}, sought_size::batch_size), memprof::error,
                       MessageMatches(ContainsSubstring("the device has no capacity")));
}

TEST_CASE("fit: the table says what fits and what one more would need") {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  const std::vector<memprof::fit_row> rows{
      {"all kept", {.size = 0, .need = {10 * gib, 11 * gib, false}, .one_more = {}}},
      {"blocks recomputed",
       {.size = 3, .need = {6 * gib, 7 * gib, true}, .one_more = memprof::step_need{8 * gib, 9 * gib, false}}},
      {"bounded", {.size = 5, .need = {gib, {}, true}, .one_more = {}}}};
  CHECK(memprof::to_text(rows, "Largest batch") ==
        "Activations       | Largest batch | Peak GiB | Reserved GiB | One more: peak | Reserved\n"
        "------------------+---------------+----------+--------------+----------------+---------\n"
        "all kept          | none          |       -  |       -      |  10.000        |  11.000 \n"
        "blocks recomputed | 3             |   6.000  |   7.000      |   8.000        |   9.000 \n"
        "bounded           | 5             |   1.000  |       -      |       -        |       - \n");
}

}  // namespace memprof_tests::analysis_estimate_fit_search
