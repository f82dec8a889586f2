// gpu_accuracy real TRAINING              trains on the GPU under a capture and compares each phase with getDeviceStats
// gpu_accuracy simulated TRAINING DEVICE  runs the same program without data, with the model of the caching allocator
// gpu_accuracy list                       lists the trainings
//
// Prints peaks of the GPU, in bytes, as NAME=NUMBER: `benchmarks/gpu/run` makes a table of them. Exit status 1: a phase of the
// real training differs from getDeviceStats; 2: something else went wrong.

#include "training.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_cuda.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/trace/trace.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int exit_differs = 1;
constexpr int exit_error = 2;

void print(const char* name, std::int64_t bytes) { std::printf("%s=%lld\n", name, static_cast<long long>(bytes)); }

/// Peak bytes as counted by `getDeviceStats`.
struct device_peaks {
  std::int64_t requested = 0;
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
};

/// The peaks since the last call.
device_peaks take_device_peaks() {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
  c10::cuda::CUDACachingAllocator::resetPeakStats(0);
  return {stats.requested_bytes[0].peak, stats.allocated_bytes[0].peak, stats.reserved_bytes[0].peak};
}

bool is_equal(std::string_view phase, const char* what, std::int64_t captured, std::int64_t device) {
  if (captured == device) return true;
  std::fprintf(stderr, "gpu_accuracy: %.*s: %s is %lld in the profile and %lld in getDeviceStats\n",
               static_cast<int>(phase.size()), phase.data(), what, static_cast<long long>(captured),
               static_cast<long long>(device));
  return false;
}

/// Compares blocks and reserved bytes of all phases. PyTorch counts requested bytes until no stream uses them any more.
bool equals_device(const memprof::profile& profile, const std::vector<device_peaks>& device) {
  const memprof::active_profile& active = profile.space("cuda:0").active;
  const memprof::reserved_profile& reserved = profile.space("cuda:0").reserved;
  bool is_equal_everywhere = true;
  for (std::size_t phase = 0; phase < device.size(); ++phase) {
    const std::string& name = profile.segments.at(phase).name;
    is_equal_everywhere &= is_equal(name, "the peak", active.segments.at(phase).peak, device[phase].requested);
    is_equal_everywhere &= is_equal(name, "the reserved peak", reserved.segments.at(phase).peak, device[phase].reserved);
  }
  return is_equal_everywhere;
}

int train_really(const gpu_accuracy::training& wanted) {
  if (!torch::cuda::is_available()) throw std::runtime_error{"libtorch finds no GPU here"};
  (void)at::empty({1}, at::kCUDA);  // initialises CUDA, so that statistics exist but nothing is in use
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(0);

  std::vector<device_peaks> phases;
  auto capture = memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>();
  gpu_accuracy::train(wanted, [&](std::string_view phase) {
    torch::cuda::synchronize();
    memprof::snapshot(phase);
    phases.push_back(take_device_peaks());
  });
  capture.end();

  device_peaks overall;
  for (const device_peaks& phase : phases) {
    overall.requested = std::max(overall.requested, phase.requested);
    overall.allocated = std::max(overall.allocated, phase.allocated);
    overall.reserved = std::max(overall.reserved, phase.reserved);
  }
  print("captured", capture.profile().space("cuda:0").active.peak);
  print("requested", overall.requested);
  print("allocated", overall.allocated);
  print("reserved", overall.reserved);
  print("phases", static_cast<std::int64_t>(phases.size()));
  return equals_device(capture.profile(), phases) ? 0 : exit_differs;
}

/// `device` is any name that begins with "cuda"; if it contains the name of a Hopper or Blackwell GPU, the cuBLAS workspace is
/// larger.
int simulate(const gpu_accuracy::training& wanted, std::string_view device) {
  memprof::trace events;
  memprof::capture_options options;
  options.device.name = device;
  options.trace = &events;
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>(options);
  gpu_accuracy::train(wanted, [](std::string_view phase) { memprof::snapshot(phase); });
  capture.end();
  if (events.left_out() != 0) throw std::runtime_error{"out of memory recording the events"};

  memprof::allocation_sequence sequence{"cuda:0"};
  events.visit(sequence);
  const char* const settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  const memprof::memory_fit fit =
      memprof::fit_memory(sequence, memprof::parse_cuda_alloc_conf(settings == nullptr ? "" : settings));
  print("requested", fit.unlimited_stats.requested_bytes.peak);
  print("allocated", fit.unlimited_stats.allocated_bytes.peak);
  print("reserved", fit.unlimited_stats.reserved_bytes.peak);
  print("estimated_operators",
        static_cast<std::int64_t>(memprof::rows_of<memprof::approximated_operation>(capture.profile().facts).size()));
  return 0;
}

int run(std::span<const char* const> arguments) {
  const std::string_view mode = arguments.empty() ? std::string_view{} : arguments[0];
  if (mode == "list" && arguments.size() == 1) {
    for (const gpu_accuracy::training& known : gpu_accuracy::trainings) std::puts(known.name.data());
    return 0;
  }
  if (mode == "real" && arguments.size() == 2) return train_really(gpu_accuracy::find_training(arguments[1]));
  if (mode == "simulated" && arguments.size() == 3) return simulate(gpu_accuracy::find_training(arguments[1]), arguments[2]);
  throw std::invalid_argument{"usage: gpu_accuracy real TRAINING | simulated TRAINING DEVICE | list"};
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    return run(
        std::span<const char* const>{arguments, static_cast<std::size_t>(argument_count)}.subspan(argument_count > 0 ? 1 : 0));
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "gpu_accuracy: %s\n", failure.what());
    return exit_error;
  }
}
