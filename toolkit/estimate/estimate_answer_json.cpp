#include <memprof/config.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_json.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>
#include <memprof/toolkit/analysis/summary_json.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_answer_json.hpp>
#include <memprof/toolkit/estimate/estimate_json.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/toolkit/estimate/training_step_json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

estimated_bytes sum_of_buckets(const shape_estimate& estimate) {
  estimated_bytes sum;
  for (const estimated_bytes& bucket : estimate.buckets) {
    sum.parameters += bucket.parameters;
    sum.fp32_bytes += bucket.fp32_bytes;
    sum.bf16_bytes += bucket.bf16_bytes;
  }
  return sum;
}

/// Indices of the buckets, most bytes first.
std::array<std::size_t, estimate_bucket_names.size()> buckets_by_size(const shape_estimate& estimate) {
  std::array<std::size_t, estimate_bucket_names.size()> order{};
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return estimate.buckets[left].bf16_bytes > estimate.buckets[right].bf16_bytes;
  });
  return order;
}

nlohmann::ordered_json byte_values(nlohmann::ordered_json of, const estimated_bytes& bytes) {
  of.emplace("parameters", bytes.parameters);
  of.emplace("fp32_bytes", bytes.fp32_bytes);
  of.emplace("bf16_bytes", bytes.bf16_bytes);
  return of;
}

nlohmann::ordered_json forward_value(const shape_estimate& estimate) {
  constexpr std::size_t most_operations = 12;
  nlohmann::ordered_json buckets = nlohmann::ordered_json::array();
  for (const std::size_t index : buckets_by_size(estimate))
    buckets.push_back(byte_values({{"bucket", estimate_bucket_names[index]}}, estimate.buckets[index]));
  std::vector<const estimated_operation*> sorted;
  for (const estimated_operation& each : estimate.operations) sorted.push_back(&each);
  std::stable_sort(sorted.begin(), sorted.end(), [](const estimated_operation* left, const estimated_operation* right) {
    return left->total.bf16_bytes > right->total.bf16_bytes;
  });
  if (sorted.size() > most_operations) sorted.resize(most_operations);
  nlohmann::ordered_json operations = nlohmann::ordered_json::array();
  for (const estimated_operation* const each : sorted) {
    operations.push_back(byte_values(
        {{"operation", each->name}, {"bucket", to_string(each->bucket)}, {"count", each->count}, {"shape", each->shape}},
        each->total));
  }
  nlohmann::ordered_json value = byte_values({}, sum_of_buckets(estimate));
  value.emplace("buckets", std::move(buckets));
  value.emplace("operation_count", estimate.operations.size());
  value.emplace("operations", std::move(operations));
  return value;
}

/// Without `room`, the device is compared with the peak.
std::string step_sentence(const training_estimate& step, const predicted_fit* room) {
  if (room == nullptr) return summary_sentence(step.step);
  profile unlimited = step.step;
  for (space_profile& space : unlimited.spaces) space.capacity = 0;
  return summary_sentence(unlimited) + "; " + short_bytes(room->prediction.total()) + " with all parts " +
         (room->fits() ? "fit " : "do not fit ") + short_bytes(step.space().capacity);
}

std::string step_caveat(const predicted_fit* room) {
  std::string text = "the step leaves out workspaces of libraries, communication buffers and dropout";
  if (room == nullptr) return text + ", the device's context and its allocator";
  for (const std::string& source : sources_text(room->prediction)) text += "; " + source;
  return text + "; its summary compares the device with tensors alone";
}

nlohmann::ordered_json room_value(const predicted_fit& room) {
  return {{"fits", room.fits()},
          {"certain", room.is_certain},
          {"reserved_bytes", room.prediction.reserved()},
          {"total_bytes", room.prediction.total()},
          {"parts", to_json(room.prediction)}};
}

nlohmann::ordered_json step_value(const training_estimate& step, const predicted_fit* room) {
  return {{"parameters", step.parameters},
          {"pipeline_stage", step.pipeline_stage},
          {"phases", to_json(step).at("phases")},
          {"device", room == nullptr ? nlohmann::ordered_json{} : room_value(*room)},
          {"summary", summary_json(step.step)}};
}

}  // namespace
}  // namespace detail

std::string forward_sentence(const shape_estimate& estimate) {
  using namespace detail;
  const estimated_bytes sum = sum_of_buckets(estimate);
  const std::size_t greatest = buckets_by_size(estimate).front();
  return "a forward pass keeps " + short_and_exact_bytes(sum.bf16_bytes) + " in bf16, " + short_and_exact_bytes(sum.fp32_bytes) +
         " in fp32; " + std::string{estimate_bucket_names[greatest]} + " has " +
         short_percent(estimate.buckets[greatest].bf16_bytes, sum.bf16_bytes) + " of it";
}

nlohmann::ordered_json estimate_answer_json(const shape_estimate& estimate, const training_estimate* step,
                                            const predicted_fit* room) {
  std::vector<std::string> caveats{
      "estimated from the model's dimensions, nothing was run",
      "the forward pass is what it keeps for the backward pass: without parameters, gradients, optimizer and temporary tensors"};
  caveats.push_back(step == nullptr ? "a training step needs more; --step estimates one" : detail::step_caveat(room));
  nlohmann::ordered_json document{{"format", estimate_json_format},
                                  {"version", estimate_json_version},
                                  {"verdict", step == nullptr ? forward_sentence(estimate) : detail::step_sentence(*step, room)},
                                  {"caveats", caveats},
                                  {"config", to_json(estimate).at("config")},
                                  {"forward", detail::forward_value(estimate)},
                                  {"step", nullptr}};
  if (step != nullptr) document["step"] = detail::step_value(*step, room);
  return document;
}

}  // namespace memprof::inline MEMPROF_ABI
