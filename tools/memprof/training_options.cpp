#include "training_options.hpp"

#include "complain.hpp"
#include "option_values.hpp"

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/device_json.hpp>
#include <memprof/toolkit/estimate/decoder_config_json.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/dtype.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

template <std::size_t Count>
std::vector<std::string> names_in(const std::array<std::string_view, Count>& names) {
  return {names.begin(), names.end()};
}

/// "a, b, c"
template <std::size_t Count>
std::string listed_names(const std::array<std::string_view, Count>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string{name};
  return text;
}

template <class E, std::size_t Count>
E enumerator(const std::string& name, const std::array<std::string_view, Count>& names) {
  return static_cast<E>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// An option whose value is the name of an enumerator.
template <class E, std::size_t Count, class Target>
void add_choice(CLI::App& command, const std::string& option, const std::array<std::string_view, Count>& names, Target& target,
                const std::string& meaning) {
  command
      .add_option_function<std::string>(
          option, [&names, &target](const std::string& chosen) { target = enumerator<E>(chosen, names); }, meaning)
      ->check(one_of("value", names_in(names)))
      ->type_name("NAME");
}

/// Accepts only decimal numbers; "010" would otherwise be eight.
std::string fault_of_number(const std::string& text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const std::string_view digits = std::string_view{text}.substr(sign);
  const bool is_decimal = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos &&
                          (digits.size() == 1 || digits.front() != '0');
  return is_decimal ? "" : "'" + text + "' is not a whole decimal number";
}

template <class Number>
void add_number(CLI::App& command, const std::string& option, Number& target, const std::string& meaning) {
  command.add_option(option, target, meaning)->check(CLI::Validator{fault_of_number, ""})->type_name("N");
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// A model built like GPT-2 with the dimensions of a shape.
memprof::decoder_model model_of(const memprof::decoder_shape& shape) {
  memprof::detail::check(shape);
  return {.layers = shape.layers, .d_model = shape.d_model, .heads = shape.n_heads, .vocabulary = shape.vocab_size()};
}

/// The options for the dimensions of a decoder.
constexpr std::array<std::pair<const char*, std::int64_t memprof::decoder_shape::*>, 7> sizes{{
    {"--batch-size", &memprof::decoder_shape::batch_size},
    {"--seq-len", &memprof::decoder_shape::seq_len},
    {"--d-model", &memprof::decoder_shape::d_model},
    {"--n-heads", &memprof::decoder_shape::n_heads},
    {"--layers", &memprof::decoder_shape::layers},
    {"--base-vocab-size", &memprof::decoder_shape::base_vocab_size},
    {"--num-special-tokens", &memprof::decoder_shape::num_special_tokens},
}};

/// Says which of the given dimensions a configuration file overrides.
void say_what_is_overridden(const std::string& path, const decoder_options& given, const memprof::decoder_shape& used,
                            const CLI::App& command) {
  for (const auto& [option, size] : sizes) {
    if (command.get_option_no_throw(option) == nullptr || command.count(option) == 0 || given.shape.*size == used.*size) continue;
    print_error(command.get_name().c_str(), std::string{option} + " " + std::to_string(given.shape.*size) + " is ignored: '" +
                                                path + "' sets it to " + std::to_string(used.*size));
  }
}

chosen_decoder read_config(const std::string& path, const decoder_options& options, const CLI::App& command) {
  const std::string text = memprof::detail::read_whole_file(path, memprof::detail::max_bytes_by_hand);
  const memprof::decoder_config config = memprof::parse_decoder_config(text, options.shape, path);
  say_what_is_overridden(path, options, config.shape, command);
  return {config.shape, config.model ? *config.model : model_of(config.shape), config.longest_sequence, config.model.has_value()};
}

/// A published decoder, with the dimensions given along with it in place of its own.
chosen_decoder published(const decoder_options& options, const CLI::App& command) {
  const memprof::named_decoder& named = memprof::find_decoder(options.config);
  chosen_decoder result{
      .shape = options.shape, .model = named.model, .longest_sequence = named.seq_len, .has_architecture = true};
  const auto is_given = [&](const char* option) {
    return command.get_option_no_throw(option) != nullptr && command.count(option) > 0;
  };
  if (is_given("--layers")) result.model.layers = options.shape.layers;
  if (is_given("--d-model")) result.model.d_model = options.shape.d_model;
  if (is_given("--n-heads")) result.model.heads = options.shape.n_heads;
  if (is_given("--base-vocab-size")) result.model.vocabulary = options.shape.base_vocab_size;
  if (!is_given("--batch-size")) result.shape.batch_size = 1;
  if (!is_given("--seq-len")) result.shape.seq_len = named.seq_len;
  result.shape.layers = result.model.layers;
  result.shape.d_model = result.model.d_model;
  result.shape.n_heads = result.model.heads;
  result.shape.base_vocab_size = result.model.vocabulary;
  result.shape.num_special_tokens = 0;
  return result;
}

}  // namespace

void decoder_options::add(CLI::App& command) {
  add_number(command, "--batch-size", shape.batch_size, "sequences per batch (default: 64; 1 for a published decoder)");
  add_number(command, "--seq-len", shape.seq_len, "tokens per sequence (default: 1024; what a published decoder was made for)");
  add_number(command, "--d-model", shape.d_model, "width of the residual stream (default: 768)");
  add_number(command, "--n-heads", shape.n_heads, "attention heads; must divide the width (default: 8)");
  add_number(command, "--layers", shape.layers, "transformer blocks (default: 12)");
  add_number(command, "--base-vocab-size", shape.base_vocab_size,
             "size of the vocabulary without special tokens (default: 33280)");
  add_number(command, "--num-special-tokens", shape.num_special_tokens, "number of special tokens (default: 3)");
  std::string known;
  for (const memprof::named_decoder& decoder : memprof::named_decoders)
    known += (known.empty() ? "" : ", ") + std::string{decoder.name};
  CLI::Option* const named =
      command.add_option("--config", config, "a published decoder (" + known + "), or a file as for --run-config")
          ->type_name("NAME|FILE");
  command
      .add_option("--run-config", run_config,
                  "run_config.json of a training run, which overrides all of the above, or config.json of Hugging Face")
      ->type_name("FILE")
      ->excludes(named);
}

chosen_decoder choose_decoder(const decoder_options& options, const CLI::App& command) {
  if (command.count("--run-config") > 0) return read_config(options.run_config, options, command);
  if (command.count("--config") == 0) return {options.shape, model_of(options.shape), 0, false};
  return is_file(options.config) ? read_config(options.config, options, command) : published(options, command);
}

void setup_options::add(CLI::App& command) {
  add_choice<memprof::dtype>(
      command, "--dtype", memprof::dtype_names, setup.type,
      "type of parameters, gradients and activations: " + listed_names(memprof::dtype_names) + " (default: fp32)");
  add_choice<memprof::dtype>(command, "--gradient-dtype", memprof::dtype_names, setup.gradient_type,
                             "type of gradients, as for --dtype (default: that of --dtype)");
  add_choice<memprof::dtype>(command, "--state-dtype", memprof::dtype_names, setup.state_type,
                             "type of the optimizer's state, as for --dtype (default: that of --dtype)");
  command.add_flag("--master-weights", setup.master_weights, "keep a float32 copy of all parameters in the optimizer");
  add_choice<memprof::optimizer_kind>(command, "--optimizer", memprof::optimizer_kind_names, setup.optimizer,
                                      listed_names(memprof::optimizer_kind_names) + " (default: adamw)");
  add_choice<memprof::attention_kind>(command, "--attention", memprof::attention_kind_names, setup.attention,
                                      "whether attention keeps its probabilities (plain), never makes them (fused), or makes "
                                      "them twice (recomputed) (default: plain)");
  command
      .add_flag("--recompute{blocks}", recompute,
                "keep only the input of each block and run the block twice; --recompute=selective: also keep fused attention and "
                "every second matrix product, as torchtitan does (with --torch)")
      ->check(one_of("value", names_in(memprof::recomputation_kind_names)))
      ->each([this](const std::string& chosen) {
        setup.recompute = enumerator<memprof::recomputation_kind>(chosen, memprof::recomputation_kind_names);
      });
  command.add_flag("--float32-logits", setup.float32_logits, "the loss copies the logits to float32 first (with --torch)");
  command.add_flag_callback(
      "--torch", [this] { setup.layers = memprof::torch_layers; },
      "count layers as in eager PyTorch, not as in examples/nano_gpt");
  add_number(command, "--micro-batches", setup.micro_batches, "batches per step, whose gradients are accumulated (default: 1)");
  add_number(command, "--tensor-parallel", setup.parallel.tensor, "devices that share each layer (default: 1)");
  add_number(command, "--pipeline-parallel", setup.parallel.pipeline, "pipeline stages of consecutive layers (default: 1)");
  add_number(command, "--pipeline-stage", setup.pipeline_stage,
             "pipeline stage to estimate (default: the one with the greatest peak)");
  add_number(command, "--data-parallel", setup.parallel.data, "number of replicas (default: 1)");
  add_number(command, "--context-parallel", setup.parallel.context, "devices that share each sequence (default: 1)");
  add_number(command, "--zero", setup.parallel.zero_stage,
             "what replicas, and devices that share a sequence, shard: 1 optimizer state, 2 also gradients, 3 also parameters "
             "(default: 0, nothing)");
}

memprof::training_estimate estimate_with_trace(const memprof::decoder_model& model, memprof::training_setup setup,
                                               memprof::trace& events) {
  if (setup.pipeline_stage < 0 && setup.parallel.pipeline > 1)
    setup.pipeline_stage = memprof::estimate_training_step(model, setup).pipeline_stage;
  memprof::training_estimate estimate = memprof::estimate_training_step(model, setup, nullptr, &events);
  if (events.left_out() != 0) memprof::detail::raise("out of memory recording the events of a step");
  return estimate;
}

memprof::device_description device_of(const std::string& preset_file_or_size) {
  const auto& presets = memprof::device_preset_names;
  const bool is_preset = std::find(presets.begin(), presets.end(), preset_file_or_size) != presets.end();
  if (is_preset || is_file(preset_file_or_size)) return memprof::find_device(preset_file_or_size);
  if (preset_file_or_size.empty() || preset_file_or_size.front() < '0' || preset_file_or_size.front() > '9') {
    return memprof::find_device(preset_file_or_size);  // fails, listing the presets
  }
  constexpr std::int64_t cuda_block = 512;
  memprof::device_description device;
  device.name = std::string_view{preset_file_or_size}.substr(0, 31);
  device.add({.name = "cuda:0",
              .capacity = memprof::parse_byte_size(preset_file_or_size),
              .alignment = cuda_block,
              .size_multiple = cuda_block});
  return device;
}

}  // namespace memprof_tool
