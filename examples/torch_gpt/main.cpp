#include <nano_gpt/corpus.hpp>
#include <nano_gpt/input_error.hpp>
#include <torch_gpt/train.hpp>

#include <memprof/detail/byte_size.hpp>
#include <memprof/trace/device_presets.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace {

using nano_gpt::input_error;
using torch_gpt::options;

constexpr int exit_bad_input = 2;

struct number_option {
  std::string_view name;
  std::int64_t& (*value)(options&);
  std::string_view meaning;
};

constexpr std::array<number_option, 7> number_options{{
    {"--layers", [](options& o) -> std::int64_t& { return o.model.layers; }, "transformer blocks"},
    {"--heads", [](options& o) -> std::int64_t& { return o.model.heads; }, "attention heads per block; must divide --d-model"},
    {"--d-model", [](options& o) -> std::int64_t& { return o.model.d_model; }, "width of the residual stream"},
    {"--seq-len", [](options& o) -> std::int64_t& { return o.model.seq_len; }, "bytes of text per sequence"},
    {"--batch-size", [](options& o) -> std::int64_t& { return o.batch_size; }, "sequences per step"},
    {"--steps", [](options& o) -> std::int64_t& { return o.steps; }, "optimizer steps"},
    {"--seed", [](options& o) -> std::int64_t& { return o.seed; }, "seed for initial weights and batches"},
}};

std::int64_t parse_number(std::string_view name, std::string_view text) {
  constexpr std::int64_t largest = 1'000'000'000;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > largest) {
    throw input_error{std::string{name} + " cannot be '" + std::string{text} + "': give a whole number from 1 to " +
                      std::to_string(largest)};
  }
  return value;
}

torch_gpt::family parse_family(std::string_view text) {
  if (text == "gpt") return torch_gpt::family::gpt;
  if (text == "llama") return torch_gpt::family::llama;
  throw input_error{"--model cannot be '" + std::string{text} + "': give gpt or llama"};
}

/// Returns false if there is no such option.
bool set_option(options& result, std::string_view name, std::string_view value) {
  for (const number_option& option : number_options) {
    if (option.name != name) continue;
    option.value(result) = parse_number(name, value);
    return true;
  }
  if (name == "--model") {
    result.model.kind = parse_family(value);
  } else if (name == "--text") {
    result.text = value;
  } else if (name == "--json") {
    result.json = value;
  } else if (name == "--trace-file") {
    result.trace_file = value;
  } else if (name == "--device") {
    result.device = value;
  } else if (name == "--fit") {
    result.fit = memprof::parse_byte_size(value);
  } else {
    return false;
  }
  return true;
}

void check(const options& given) {
  const torch_gpt::model_config& model = given.model;
  if (model.d_model % model.heads != 0) {
    throw input_error{"--heads " + std::to_string(model.heads) + " does not divide --d-model " + std::to_string(model.d_model)};
  }
  if (model.is_llama() && model.d_model / model.heads % 2 != 0) {
    throw input_error{"--model llama needs heads of even width: try --d-model " + std::to_string(2 * model.d_model)};
  }
  if (given.device != "cpu" && given.device != "cuda" && !given.no_dispatch) {
    throw input_error{"--device " + given.device + " needs --no-dispatch: without it there are cpu and cuda"};
  }
  if (given.device == "cuda" && !given.no_dispatch && !torch::cuda::is_available()) {
    throw input_error{"--device cuda: libtorch finds no GPU here; use --no-dispatch, which needs none"};
  }
  if (given.device != "cpu" && given.device != "cuda" &&
      !memprof::device_preset(given.device).tensor_space().name.view().starts_with("cuda")) {
    throw input_error{"--device " + given.device + " is no GPU: give cpu, cuda or a preset such as gpu-24gb"};
  }
  // Checks now, not after the training. Appending nothing does not change an existing file.
  if (given.json && !std::ofstream{*given.json, std::ios::app}) {
    throw input_error{"cannot write '" + *given.json + "': check --json, its folder and the permissions"};
  }
}

options parse_options(std::span<const char* const> arguments) {
  options result;
  for (std::size_t index = 0; index < arguments.size();) {
    const std::string_view name = arguments[index++];
    if (name == "--help" || name == "-h") {
      result.help = true;
      return result;
    }
    if (name == "--no-dispatch") {
      result.no_dispatch = true;
      continue;
    }
    const std::string_view value = index < arguments.size() ? arguments[index++] : "";
    if (!set_option(result, name, value)) throw input_error{"unknown option '" + std::string{name} + "': --help lists all"};
    if (value.empty()) throw input_error{std::string{name} + " needs a value: --help shows an example"};
  }
  check(result);
  return result;
}

void print_usage() {
  options defaults;
  std::puts(
      "Trains a GPT or a Llama of libtorch on the bytes of a text, and reports where its memory went.\n\n"
      "  torch_gpt --model llama --layers 2 --text war_and_peace.txt --json profile.json\n");
  std::puts("  --model NAME   gpt or llama (gpt)");
  for (const number_option& option : number_options) {
    std::printf("  %-14s %.*s (%lld)\n", (std::string{option.name} + " N").c_str(), static_cast<int>(option.meaning.size()),
                option.meaning.data(), static_cast<long long>(option.value(defaults)));
  }
  std::puts(
      "  --text FILE    text to learn (lighthouse.txt of examples/nano_gpt)\n"
      "  --json FILE    where to write the profile (nowhere)\n"
      "  --trace-file FILE  where to write all events as they happen (nowhere)\n"
      "  --no-dispatch  compute and allocate nothing, only count what would be allocated\n"
      "  --device NAME  cpu or cuda; with --no-dispatch also a preset such as gpu-24gb, and no GPU is needed (cpu)\n"
      "  --fit SIZE     say whether the training fits on a GPU of that size, such as 24GB, or where it fails\n"
      "  --help         show this text");
}

void run(std::span<const char* const> arguments) {
  const options given = parse_options(arguments);
  if (given.help) return print_usage();
  const torch_gpt::token_text text{given.text ? nano_gpt::read_text(*given.text) : nano_gpt::read_default_text()};
  if (text.size() <= given.model.seq_len) {
    throw input_error{"the text has " + std::to_string(text.size()) + " bytes but --seq-len " +
                      std::to_string(given.model.seq_len) + " needs more: give a longer text or a shorter sequence"};
  }
  torch_gpt::train(given, text);
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    run(std::span<const char* const>{arguments, static_cast<std::size_t>(argument_count)}.subspan(argument_count > 0 ? 1 : 0));
    return 0;
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "torch_gpt: %s\n", failure.what());
    return exit_bad_input;
  }
}
