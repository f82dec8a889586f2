#pragma once

#include <nano_gpt/model_config.hpp>

#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace nano_gpt {

/// What the command line can set. The defaults train for about ten seconds.
struct options {
  model_config model = named_configs[0].model;
  std::size_t batch_size = named_configs[0].batch_size;
  std::size_t micro_batches = 1;  ///< per step; their gradients are accumulated
  std::size_t steps = named_configs[0].steps;
  std::uint64_t seed = 1;
  memprof::dtype dtype = memprof::dtype::float32;  ///< of parameters, gradients, moments and activations
  memprof::run_mode mode = memprof::run_mode::normal;
  memprof::device_description device;         ///< determines the bytes of tensors; empty: those of their elements
  std::optional<std::filesystem::path> text;  ///< none: lighthouse.txt
  std::optional<std::filesystem::path> json;  ///< where to write the profile
  std::optional<std::filesystem::path> html;  ///< where to write the page
  std::string trace_file;                     ///< receives all events as they happen; empty: none
  bool record_uses = false;                   ///< whether traces have the uses of tensors
  bool free_late = false;                     ///< keep what a step no longer needs: see `frees_early`
  bool track_memory = false;                  ///< capture only the first step, as tt-train's flag of this name
  memprof::trace* trace = nullptr;            ///< receives all events, for the page
  bool help = false;

  /// The memory space in which tensors count.
  [[nodiscard]] std::string_view memory_space() const { return device.empty() ? "cpu" : device.tensor_space().name.view(); }
};

/// Parses the arguments after the program's name. Throws `input_error`, or `memprof::error` about a device, for the first invalid
/// one.
[[nodiscard]] options parse_options(std::span<const char* const> arguments);

/// The output of `--help`.
[[nodiscard]] std::string usage();

/// Throws `input_error` unless the file that `option` names can be opened for writing. Neither changes an existing file nor
/// leaves a new one behind.
void require_writable(std::string_view option, const std::filesystem::path& file);

}  // namespace nano_gpt
