#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

bool has_caching_allocator(const device_description& device) noexcept {
  return !device.empty() && device.tensor_space().name.view().starts_with("cuda");
}

std::vector<memory_part> nccl_parts(const parallel_degrees& parallel) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  memory_part part{.name = "NCCL buffers", .is_of_allocator = false};
  for (const std::int64_t devices : {parallel.tensor, parallel.pipeline, parallel.data, parallel.context}) {
    if (devices <= 1) continue;
    part.bytes += (devices == 2 ? 544 : 688) * mib;
    part.least += 142 * mib;
    part.most += 1'055 * mib;
  }
  if (part.bytes == 0) return {};
  part.source = "NVIDIA/nccl#964, 4 A100 with NVLink; 4 published out-of-memory messages of processes on several GPUs";
  return {part};
}

step_need need_of(const allocation_sequence& sequence, std::int64_t peak, const device_description& device,
                  std::int64_t besides) {
  const std::int64_t capacity = device.tensor_space().capacity;
  if (!has_caching_allocator(device)) return {.peak = peak, .reserved = std::nullopt, .fits = peak <= capacity};
  const std::int64_t context = std::min(cuda_context_of(device).bytes + besides, capacity);
  const memory_fit fit = fit_memory(sequence, {.capacity = capacity, .context = context});
  const caching_allocator_stats& stats = fit.fits() ? fit.stats : fit.unlimited_stats;
  return {.peak = peak, .reserved = stats.reserved_bytes.peak, .fits = fit.fits()};
}

step_need need_of(const decoder_model& model, training_setup setup) {
  if (setup.pipeline_stage < 0) setup.pipeline_stage = estimate_training_step(model, setup).pipeline_stage;
  allocation_sequence sequence{extend::cpu_space};  // the first space of the estimate
  const training_estimate estimate = estimate_training_step(model, setup, &sequence);
  const memory_prediction others{nccl_parts(setup.parallel)};
  return need_of(sequence, estimate.space().cumulative_peak, setup.device, others.besides());
}

predicted_fit predict_step(const decoder_model& model, training_setup setup) {
  if (setup.pipeline_stage < 0) setup.pipeline_stage = estimate_training_step(model, setup).pipeline_stage;
  allocation_sequence sequence{extend::cpu_space};
  const training_estimate estimate = estimate_training_step(model, setup, &sequence);
  return predict_fit(sequence, estimate.step, estimate.space().name, setup.device, {}, {}, nccl_parts(setup.parallel));
}

fit_answer find_fit(const decoder_model& model, training_setup setup, sought_size sought, std::int64_t longest) {
  constexpr std::int64_t most = 100'000'000;
  if (setup.device.empty() || setup.device.tensor_space().capacity == 0) detail::raise("find_fit: the device has no capacity");
  const std::int64_t limit = sought == sought_size::seq_len && longest != 0 ? longest : most;
  const auto need_with = [&](std::int64_t size) {
    (sought == sought_size::batch_size ? setup.batch_size : setup.seq_len) = size;
    return need_of(model, setup);
  };
  fit_answer answer{.need = need_with(1), .one_more = {}};
  if (!answer.need.fits) return answer;
  answer.size = 1;
  std::int64_t failing = limit + 1;
  const auto attempt = [&](std::int64_t size) {
    const step_need need = need_with(size);
    if (need.fits) {
      answer.size = size;
      answer.need = need;
    } else {
      failing = size;
      answer.one_more = need;
    }
  };
  while (2 * answer.size < failing) attempt(2 * answer.size);
  while (failing - answer.size > 1) attempt(answer.size + (failing - answer.size) / 2);
  return answer;
}

}  // namespace memprof::inline MEMPROF_ABI
