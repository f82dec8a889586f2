#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>
#include <memprof/trace/dtype.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::vector<step_phase> phases_of(const space_profile& space) {
  std::vector<step_phase> phases;
  std::int64_t live = 0;
  for (const segment_usage& usage : space.segments) {
    if (usage.segment == "END_TRACE") continue;
    auto phase = std::find_if(phases.begin(), phases.end(), [&](const step_phase& known) { return known.name == usage.segment; });
    if (phase == phases.end()) phase = phases.insert(phase, {.name = usage.segment});
    ++phase->count;
    phase->peak = std::max(phase->peak, live + usage.segment_peak);
    phase->end = live = usage.cumulative_current;
  }
  return phases;
}

namespace detail {

std::string model_text(const decoder_model& model, std::int64_t parameters) {
  std::string text{decoder_family_names[static_cast<std::size_t>(model.family)]};
  const auto add = [&](std::string_view name, std::int64_t value) {
    text += ", " + std::string{name} + '=' + std::to_string(value);
  };
  add("L", model.layers);
  add("D", model.d_model);
  add("H", model.heads);
  add("KV", model.key_value_heads());
  add("M", model.mlp_channels());
  add("V", model.vocabulary);
  if (model.experts != 0) add("experts", model.experts);
  if (model.experts != 0) add("experts-per-token", model.experts_per_token);
  return text + (model.tied_output ? ", tied output" : "") + ", " + with_thousands(std::to_string(parameters)) + " parameters";
}

namespace {

std::string setup_text(const training_setup& setup, std::int64_t stage) {
  std::string text = "B=" + std::to_string(setup.batch_size) + ", T=" + std::to_string(setup.seq_len);
  const auto add = [&](std::string_view name, std::string_view value) {
    text += ", " + std::string{name} + '=' + std::string{value};
  };
  const auto add_if = [&](bool condition, std::string_view name, std::int64_t value) {
    if (condition) add(name, std::to_string(value));
  };
  add_if(setup.micro_batches != 1, "micro-batches", setup.micro_batches);
  add("dtype", to_string(setup.type));
  if (setup.gradient_type) add("gradients", to_string(*setup.gradient_type));
  add("optimizer", optimizer_kind_names[static_cast<std::size_t>(setup.optimizer)]);
  if (setup.master_weights) add("master-weights", "fp32");
  if (setup.state_type && !setup.master_weights) add("state", to_string(*setup.state_type));
  add("attention", attention_kind_names[static_cast<std::size_t>(setup.attention)]);
  add("recompute", recomputation_kind_names[static_cast<std::size_t>(setup.recompute)]);
  if (setup.float32_logits) add("logits", "fp32");
  add_if(setup.parallel.tensor != 1, "tensor-parallel", setup.parallel.tensor);
  add_if(setup.parallel.pipeline != 1, "pipeline-parallel", setup.parallel.pipeline);
  add_if(setup.parallel.pipeline != 1, "stage", stage);
  add_if(setup.parallel.data != 1, "data-parallel", setup.parallel.data);
  add_if(setup.parallel.context != 1, "context-parallel", setup.parallel.context);
  add_if(setup.parallel.zero_stage != 0, "zero", setup.parallel.zero_stage);
  return text;
}

}  // namespace

std::string gibibytes_text(std::int64_t bytes) { return decimal(static_cast<double>(bytes) / 0x1p30, 3) + " GiB"; }

namespace {

/// Bytes of owners at the peak as rows: GiB, and the share of the peak.
std::string owner_table(std::string_view title, const vector<owned_bytes>& owners, std::int64_t peak, std::size_t most,
                        std::size_t columns) {
  std::vector<std::vector<std::string>> rows{{std::string{title}, "GiB", "Share"}};
  const auto add = [&](const std::string& name, std::int64_t bytes) {
    const double share = peak == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(peak);
    // In the width of "100.0": what would round to zero is "< 0.1", as in a summary.
    const std::string text = share > 0 && share < 0.05 ? "< 0.1" : right_aligned(decimal(share, 1), 5);
    rows.push_back({name.empty() ? "(outside every operation)" : name, gibibytes(bytes), text + " %"});
  };
  std::int64_t shown = 0;
  for (const owned_bytes& owner : owners) {
    if (rows.size() > most) break;
    add(owner.owner, owner.bytes);
    shown += owner.bytes;
  }
  if (shown != peak) add("others", peak - shown);
  return aligned_table(std::move(rows), columns);
}

/// "Peak: 5.297 GiB (5,687,836,672 B) in BACKWARD_PASS, operation loss".
std::string peak_text(const training_estimate& estimate) {
  const space_profile& space = estimate.space();
  std::string where;
  if (space.peak_segment >= 0) {
    where = " in " + estimate.step.segments[static_cast<std::size_t>(space.peak_segment)].name +
            (space.peak_operation.empty() ? ", outside every operation" : ", operation " + space.peak_operation);
  }
  return "Peak: " + gibibytes_text(space.cumulative_peak) + " (" + exact_bytes(space.cumulative_peak) + ")" + where + '\n';
}

/// Whether a CUDA device has room for all parts, and the parts.
std::string parts_room_text(const space_profile& space, const predicted_fit& room) {
  const std::int64_t spare = space.capacity - room.prediction.total();
  std::string text = room.is_certain ? "" : "probably ";
  text += room.fits() ? "fits, " + gibibytes_text(std::max<std::int64_t>(spare, 0)) + " to spare\n"
                      : "does not fit, " + gibibytes_text(-spare) + " too much\n";
  text += "Parts: " + parts_text(room.prediction) + '\n';
  for (const std::string& source : sources_text(room.prediction)) text += "Besides: " + source + '\n';
  return text;
}

/// Whether the device has room for the peak, and if not, where it is full first.
std::string room_text(const training_estimate& estimate, const predicted_fit* predicted) {
  const space_profile& space = estimate.space();
  if (space.capacity == 0) return {};
  const std::int64_t room = space.capacity - space.cumulative_peak;
  const std::string device =
      "Device: " + estimate.step.device + ", " + gibibytes_text(space.capacity) + " of " + space.name + ": ";
  if (predicted != nullptr) return device + parts_room_text(space, *predicted);
  if (room >= 0) return device + "fits, " + gibibytes_text(room) + " to spare\n";
  return device + "does not fit, " + gibibytes_text(-room) + " too much; full first " +
         (space.first_shortfall.operation.empty() ? "outside every operation" : "in " + space.first_shortfall.operation) + '\n';
}

}  // namespace
}  // namespace detail

std::string to_text(const training_estimate& estimate, const decoder_model& model, const training_setup& setup,
                    const predicted_fit* room, std::size_t columns) {
  constexpr std::size_t max_owners = 12;
  const space_profile& space = estimate.space();
  std::vector<std::vector<std::string>> rows{{"Phase", "Count", "Peak GiB", "End GiB"}};
  for (const step_phase& phase : phases_of(space)) {
    rows.push_back({phase.name, std::to_string(phase.count), detail::gibibytes(phase.peak), detail::gibibytes(phase.end)});
  }
  const live_set& live = space.live_at_peak;
  const std::string text = "Training Step (estimated, nothing is run)\nModel: " + detail::model_text(model, estimate.parameters) +
                           "\nSetup: " + detail::setup_text(setup, estimate.pipeline_stage) + '\n' + detail::peak_text(estimate) +
                           detail::room_text(estimate, room);
  return detail::folded(text, columns) + '\n' + detail::aligned_table(std::move(rows), columns) + '\n' +
         detail::owner_table("Category at the peak", live.by_category, live.bytes, detail::category_names.size(), columns) +
         '\n' + detail::owner_table("Operation at the peak", live.by_operation, live.bytes, max_owners, columns);
}

}  // namespace memprof::inline MEMPROF_ABI
