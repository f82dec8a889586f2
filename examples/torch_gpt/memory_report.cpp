#include <torch_gpt/cuda_capture.hpp>
#include <torch_gpt/memory_report.hpp>

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_fit_text.hpp>
#include <memprof/trace/device_presets.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace torch_gpt {

namespace {

/// "cpu" or "cuda", without limits, or a preset with its limits.
[[nodiscard]] memprof::device_description device_named(const std::string& name) {
  if (name != "cpu" && name != "cuda") return memprof::device_preset(name);
  memprof::device_description device;
  device.name = std::string_view{name};
  return device;
}

/// The options that a program on a GPU would have: PyTorch reads them from the environment.
[[nodiscard]] memprof::caching_allocator_options allocator_options(std::int64_t capacity) {
  const char* const settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(settings == nullptr ? "" : settings);
  options.capacity = capacity;
  return options;
}

}  // namespace

memory_report::memory_report(const options& options) : options_(options), capture_(begin()) {}

memprof::capture_guard memory_report::begin() {
  memprof::capture_options wanted;
  wanted.device = device_named(options_.device);
  if (options_.fit) wanted.trace = &trace_;
  if (options_.trace_file) wanted.trace_file = *options_.trace_file;
  if (options_.no_dispatch) return memprof::begin_capture<memprof::torch_no_dispatch>(wanted);
  return options_.torch_device().is_cuda() ? begin_cuda_capture(wanted) : memprof::begin_capture<memprof::torch_backend>(wanted);
}

void memory_report::print() {
  capture_.end();
  memprof::print_memory_usage();
  if (options_.fit) print_fit();
  if (options_.json) memprof::write_json(capture_.profile(), *options_.json);
}

void memory_report::print_fit() const {
  if (trace_.left_out() != 0) {
    std::printf("Whether it fits is unknown: the system had no memory to keep the last %zu events.\n", trace_.left_out());
    return;
  }
  const std::string space = options_.torch_device().is_cpu() ? "cpu" : "cuda:0";
  memprof::allocation_sequence sequence{memprof::memory_space{space}.id()};
  trace_.visit(sequence);
  const memprof::memory_fit fit = memprof::fit_memory(sequence, allocator_options(*options_.fit));
  const std::string operation = fit.first_failure ? memprof::operation_path(sequence, fit.first_failure->operation) : "";
  std::fputs(("On a GPU, what is in " + space + " here: " + memprof::to_text(fit, operation)).c_str(), stdout);
}

}  // namespace torch_gpt
